#include <algorithm>
#include <cmath>
#include <cstring>
#include <dic/correlate.hpp>
#include <limits>
#include <ostream>
#include <random>

#include "correlate/backend.hpp"
#include "support/backend_test.hpp"
#include "support/correlate_cases.hpp"

// Tests every registered variant against the definition in float64, over types and shapes.
namespace dic {
namespace {

using namespace test;

struct Truth {
  const TestImage& reference;
  const TestImage& search;
  const TestImage* mask;
  const Case& c;
  std::int64_t r, w;  // indices of reference and window

  bool inside(int y, int x) const {  // window coordinates
    const PatchPosition& at = c.windows[w];
    const int py = at.y + y, px = at.x + x;
    return y >= 0 && y < c.search_h && x >= 0 && x < c.search_w && py >= 0 && px >= 0 &&
           py < search.view.height && px < search.view.width;
  }
  bool counts(int i, int j) const {
    const PatchPosition& at = c.references[r];
    return !mask || mask->get(at.y + i, at.x + j) != 0;
  }
  double ref(int i, int j) const { return reference.get(c.references[r].y + i, c.references[r].x + j); }
  double win(int y, int x) const {
    return inside(y, x) ? search.get(c.windows[w].y + y, c.windows[w].x + x) : 0;
  }

  double sum(int dy, int dx) const {
    double total = 0;
    for (int i = 0; i < c.ref_h; ++i)
      for (int j = 0; j < c.ref_w; ++j)
        if (counts(i, j)) total += ref(i, j) * win(i + dy, j + dx);
    return total;
  }
  bool defined(int dy, int dx) const { return inside(dy, dx) && inside(dy + c.ref_h - 1, dx + c.ref_w - 1); }
  double criterion(Criterion m, int dy, int dx) const {
    if (m == Criterion::cross_correlation) return sum(dy, dx);
    if (!defined(dy, dx)) return m == Criterion::ssd ? std::numeric_limits<float>::max() : 0;
    double n = 0, mean_r = 0, mean_s = 0;
    for (int i = 0; i < c.ref_h; ++i)
      for (int j = 0; j < c.ref_w; ++j)
        if (counts(i, j)) n += 1, mean_r += ref(i, j), mean_s += win(i + dy, j + dx);
    mean_r = m == Criterion::zncc ? mean_r / n : 0;
    mean_s = m == Criterion::zncc ? mean_s / n : 0;
    double rs = 0, rr = 0, ss = 0, difference = 0;
    for (int i = 0; i < c.ref_h; ++i)
      for (int j = 0; j < c.ref_w; ++j) {
        if (!counts(i, j)) continue;
        const double a = ref(i, j) - mean_r, b = win(i + dy, j + dx) - mean_s;
        rs += a * b, rr += a * a, ss += b * b, difference += (a - b) * (a - b);
      }
    if (m == Criterion::ssd) return difference;
    return rr > 1e-9 && ss > 1e-9 ? rs / std::sqrt(rr * ss) : 0;
  }
};

std::pair<std::int64_t, std::int64_t> pair_of(const Case& c, std::int64_t k) {
  const auto n = static_cast<std::int64_t>(c.references.size());
  const auto m = static_cast<std::int64_t>(c.windows.size());
  switch (c.pairing) {
    case Pairing::one_to_one:
      return {k, k};
    case Pairing::one_to_many:
      return {0, k};
    case Pairing::n_to_mn:
      return {k * n / m, k};
    case Pairing::n_to_m:
      break;
  }
  return {k / m, k % m};
}

double value_at(const Surfaces& s, std::int64_t pair, int y, int x) {
  const std::ptrdiff_t i = static_cast<std::ptrdiff_t>(y) * s.nx + x;
  switch (s.type) {
    case Surfaces::Type::u32:
      return s.surface<std::uint32_t>(pair)[i];
    case Surfaces::Type::u64:
      return static_cast<double>(s.surface<std::uint64_t>(pair)[i]);
    case Surfaces::Type::i64:
      return static_cast<double>(s.surface<std::int64_t>(pair)[i]);
    case Surfaces::Type::f32:
      return s.surface<float>(pair)[i];
    case Surfaces::Type::f64:
      break;
  }
  return s.surface<double>(pair)[i];
}

double tolerance(Criterion criterion, ScalarType type, double expected) {
  const bool real = type == ScalarType::f32 || type == ScalarType::f64;
  if (criterion == Criterion::cross_correlation) {
    if (!real) return 0;
    return type == ScalarType::f64 ? 1e-12 * std::abs(expected) + 1e-7 : 1e-6 * std::abs(expected) + 1e-2;
  }
  return criterion == Criterion::ssd ? 3e-6 * std::abs(expected) + 1e-6 : 3e-6;
}

/// Additional rounding of sums of reals on a GPU: floats are added in another order, in one chain of
/// additions per overlap; the error of a transform is smaller but affects all shifts. Assumes roundings of
/// random sign.
double gpu_rounding(const Truth& truth) {
  const Case& c = truth.c;
  const ScalarType type = truth.reference.view.type;
  if (type != ScalarType::f32 && type != ScalarType::f64) return 0;
  double reference = 0, window = 0;
  for (int i = 0; i < c.ref_h; ++i)
    for (int j = 0; j < c.ref_w; ++j) reference += std::pow(truth.ref(i, j), 2);
  for (int y = 0; y < c.search_h; ++y)
    for (int x = 0; x < c.search_w; ++x) window += std::pow(truth.win(y, x), 2);
  const double unit = std::ldexp(1, type == ScalarType::f32 ? -24 : -53);
  return unit * std::sqrt(c.ref_h * c.ref_w) * std::sqrt(reference * window);
}

void expect_definition(Correlator& correlator, const Case& c, const TestImage& reference,
                       const TestImage& search, Criterion criterion, const std::string& variant,
                       const TestImage* mask = nullptr, double more_of_scores = 0) {
  CorrelateRequest request = request_of(c, reference.view, search.view, criterion, variant);
  if (mask) request.reference_mask = {&mask->view, 1};
  Surfaces s;
  correlator.surfaces(request, s);
  ASSERT_EQ(s.ny, c.shifts.ny());
  ASSERT_EQ(s.nx, c.shifts.nx());
  for (std::int64_t k = 0; k < s.pairs; ++k) {
    const auto [r, w] = pair_of(c, k);
    const Truth truth{reference, search, mask, c, r, w};
    double more = more_of_scores;
    if (criterion == Criterion::cross_correlation)
      more = variant.starts_with("cuda-") ? gpu_rounding(truth) : 0;
    for (int y = 0; y < s.ny; ++y)
      for (int x = 0; x < s.nx; ++x) {
        const int dy = c.shifts.dy_min + y, dx = c.shifts.dx_min + x;
        const double expected = truth.criterion(criterion, dy, dx);
        ASSERT_NEAR(value_at(s, k, y, x), expected,
                    tolerance(criterion, reference.view.type, expected) + more)
            << variant << " " << to_string(criterion) << " pair " << k << " dy " << dy << " dx " << dx;
      }
  }
}

struct VariantCase {
  dic::CorrelateVariant info;
  ScalarType type;
};

void PrintTo(const VariantCase& c, std::ostream* out) { *out << c.info.name << " " << to_string(c.type); }

/// All variants but those that only score: they may round more and require more of images, and have their own
/// tests.
std::vector<VariantCase> variant_cases() {
  std::vector<VariantCase> cases;
  for (const auto& info : dic::correlate_variants())
    if (std::count(info.criteria.begin(), info.criteria.end(), Criterion::cross_correlation) > 0)
      for (ScalarType type : info.types) cases.push_back({info, type});
  return cases;
}

class EveryVariant : public ::testing::TestWithParam<VariantCase> {
 protected:
  void SetUp() override {
    skip_without_device_of(GetParam().info.backend);
    if (IsSkipped() || HasFatalFailure()) return;
    correlator_ = std::make_unique<Correlator>(GetParam().info.backend, 2);
  }
  ScalarType type() const { return GetParam().type; }
  const std::string& name() const { return GetParam().info.name; }
  bool small_transforms() const { return name() == "cuda-fft-fused"; }
  bool on_gpu() const { return GetParam().info.backend == "cuda"; }

  bool can(Pairing pairing, Criterion criterion) const {
    const auto& info = GetParam().info;
    return std::count(info.pairings.begin(), info.pairings.end(), pairing) > 0 &&
           std::count(info.criteria.begin(), info.criteria.end(), criterion) > 0;
  }
  void check(const Case& c, const TestImage& reference, const TestImage& search,
             const TestImage* mask = nullptr, double more_of_scores = 0) {
    for (Criterion criterion :
         {Criterion::cross_correlation, Criterion::zncc, Criterion::ncc, Criterion::ssd})
      if (can(c.pairing, criterion)) {
        ASSERT_NO_FATAL_FAILURE(
            expect_definition(*correlator_, c, reference, search, criterion, name(), mask, more_of_scores));
      }
  }

  std::unique_ptr<Correlator> correlator_;
};

class EveryVariantWithMasks : public EveryVariant {};
class EveryCpuVariant : public EveryVariant {};

std::vector<VariantCase> variant_cases_if(bool (*fits)(const dic::CorrelateVariant&)) {
  std::vector<VariantCase> cases = variant_cases();
  std::erase_if(cases, [&](const VariantCase& c) { return !fits(c.info); });
  return cases;
}

std::string name_of(const ::testing::TestParamInfo<VariantCase>& tested) {
  std::string name = tested.param.info.name + "_" + std::string(to_string(tested.param.type));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Registered, EveryVariant, ::testing::ValuesIn(variant_cases()), name_of);
INSTANTIATE_TEST_SUITE_P(Registered, EveryVariantWithMasks,
                         ::testing::ValuesIn(variant_cases_if([](const dic::CorrelateVariant& variant) {
                           return variant.masks;
                         })),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Registered, EveryCpuVariant,
                         ::testing::ValuesIn(variant_cases_if([](const dic::CorrelateVariant& variant) {
                           return variant.backend == "cpu";
                         })),
                         name_of);

TEST_P(EveryVariant, EqualsTheDefinitionAtManySizes) {
  const TestImage reference = noise(90, 80, type(), 1), search = noise(97, 83, type(), 2);
  for (const auto& [h, w] :
       {std::pair{1, 1}, {1, 40}, {7, 7}, {8, 5}, {31, 31}, {32, 32}, {33, 33}, {34, 19}, {5, 66}}) {
    SCOPED_TRACE(testing::Message() << h << " x " << w);
    Case c{.ref_h = h, .ref_w = w, .search_h = h + 6, .search_w = w + 9};
    c.shifts = Shifts::valid({c.ref_w, c.ref_h}, {c.search_w, c.search_h});
    c.references = {{0, 3, 2}, {0, 90 - w, 80 - h}};
    c.windows = {{0, 1, 5}, {0, 97 - c.search_w, 83 - c.search_h}};
    check(c, reference, search);
  }
}

TEST_P(EveryVariant, TakesAllOverlapsAndShiftsBeyond) {
  const TestImage reference = noise(20, 20, type(), 3, 0), search = noise(30, 30, type(), 4, 0);
  Case c{.ref_h = 9, .ref_w = 6, .search_h = 11, .search_w = 8};
  c.references = {{0, 0, 0}};
  c.windows = {{0, 10, 12}};
  for (const Shifts& shifts : {Shifts::full({6, 9}, {8, 11}), Shifts{-9, 11, -14, 13}, Shifts{20, 24, 30, 31},
                               Shifts{-2, -2, 1, 1}}) {
    c.shifts = shifts;
    check(c, reference, search);
  }
}

TEST_P(EveryVariant, TakesAPatchAsLargeAsItsWindow) {
  const TestImage reference = noise(33, 31, type(), 5), search = noise(33, 31, type(), 6);
  Case c{.ref_h = 31,
         .ref_w = 33,
         .search_h = 31,
         .search_w = 33,
         .references = {{0, 0, 0}},
         .windows = {{0, 0, 0}}};
  check(c, reference, search);
}

TEST_P(EveryVariant, TreatsWhatIsOutsideTheImageAsOutside) {
  const TestImage reference = noise(40, 40, type(), 7), search = noise(40, 36, type(), 8);
  Case c{.ref_h = 7, .ref_w = 9, .search_h = 15, .search_w = 16, .shifts = {-2, 9, -1, 10}};
  for (int y : {-100, -12, -3, 10, 28, 35, 60})
    for (int x : {-100, -14, -5, 10, 30, 38, 60}) {
      c.windows.push_back({0, x, y});
      c.references.push_back({0, 4, 5});
    }
  check(c, reference, search);
}

TEST_P(EveryVariant, DoesEveryForm) {
  const TestImage reference = noise(50, 50, type(), 9), search = noise(60, 60, type(), 10);
  Case c{.ref_h = 11, .ref_w = 13, .search_h = 16, .search_w = 17, .shifts = {0, 4, 0, 5}};
  const std::vector<PatchPosition> three = {{0, 0, 0}, {0, 20, 11}, {0, 37, 39}};
  const std::vector<PatchPosition> six = {{0, 0, 1}, {0, 20, 3},  {0, 40, 40},
                                          {0, 7, 8}, {0, 30, 30}, {0, 43, 44}};
  for (const auto& [pairing, references, windows] : {std::tuple{Pairing::one_to_one, three, three},
                                                     {Pairing::one_to_many, {{0, 20, 11}}, six},
                                                     {Pairing::n_to_mn, three, six},
                                                     {Pairing::n_to_m, three, six}}) {
    c.pairing = pairing;
    c.references = references;
    c.windows = windows;
    check(c, reference, search);
  }
}

TEST_P(EveryVariantWithMasks, LeavesOutWhatDoesNotCount) {
  const TestImage reference = noise(40, 40, type(), 11), search = noise(50, 50, type(), 12);
  TestImage mask = noise(40, 40, ScalarType::u8, 13);
  for (int y = 0; y < 40; ++y)
    for (int x = 0; x < 40; ++x) mask.set(y, x, mask.get(y, x) < 90 ? 0 : mask.get(y, x));
  Case c{.ref_h = 15, .ref_w = 33, .search_h = 20, .search_w = 40, .shifts = {0, 7, 0, 5}};
  c.references = {{0, 0, 0}, {0, 7, 25}};
  c.windows = {{0, 3, 3}, {0, 10, 30}};
  check(c, reference, search, &mask);
  c.shifts = {-3, 9, -2, 3};
  check(c, reference, search, &mask);
}

TEST_P(EveryVariantWithMasks, ManyShiftsOfALargeMask) {
  // Sums of the window slide from row to row, for whole vectors of shifts.
  const TestImage reference = noise(50, 50, type(), 11), search = noise(150, 120, type(), 12);
  TestImage mask(50, 50, ScalarType::u8);
  for (int y = 0; y < 50; ++y)
    for (int x = 0; x < 50; ++x) mask.set(y, x, std::abs(x - y) < 30 && (x + 2 * y) % 7 != 0);
  Case c{.ref_h = 40,
         .ref_w = 37,
         .search_h = 60,
         .search_w = 130,
         .shifts = Shifts::valid({37, 40}, {130, 60})};
  c.references = {{0, 9, 3}};
  c.windows = {{0, 11, 40}};
  check(c, reference, search, &mask);
}

TEST_P(EveryVariantWithMasks, NothingCountsUnderAnEmptyMask) {
  const TestImage reference = noise(20, 20, type(), 11), search = noise(30, 30, type(), 12);
  const TestImage mask(20, 20, ScalarType::u8);
  Case c{.ref_h = 9,
         .ref_w = 9,
         .search_h = 12,
         .search_w = 12,
         .shifts = {0, 3, 0, 3},
         .references = {{0, 1, 1}},
         .windows = {{0, 3, 3}}};
  CorrelateRequest request = request_of(c, reference.view, search.view, Criterion::zncc, name());
  request.reference_mask = {&mask.view, 1};
  std::vector<Peak> peaks;
  correlator_->peaks(request, peaks);
  EXPECT_FALSE(peaks[0].found);
}

TEST_P(EveryVariant, TilesLargeSearches) {
  if (small_transforms()) GTEST_SKIP() << name() << " does transforms of at most 128x128";
  const TestImage reference = noise(70, 70, type(), 14), search = noise(401, 333, type(), 15);
  Case c{.pairing = Pairing::n_to_m, .ref_h = 12, .ref_w = 10, .search_h = 333, .search_w = 401};
  c.shifts = Shifts::valid({10, 12}, {401, 333});
  c.references = {{0, 30, 11}};
  c.windows = {{0, 0, 0}};
  check(c, reference, search);
}

TEST_P(EveryVariant, FindsPlantedPeaks) {
  TestImage search = noise(200, 160, type(), 16);
  const TestImage reference = noise(100, 100, type(), 17);
  Case c{.ref_h = 21, .ref_w = 25, .search_h = 60, .search_w = 70, .shifts = {0, 45, 0, 39}};
  const std::vector<std::pair<int, int>> planted = {{0, 0}, {39, 45}, {17, 3}, {1, 45}};
  for (std::size_t k = 0; k < planted.size(); ++k) {
    c.references.push_back({0, static_cast<int>(10 * k), 5});
    c.windows.push_back({0, k % 2 ? 110 : 10, k / 2 ? 90 : 10});
    for (int i = 0; i < c.ref_h; ++i)
      for (int j = 0; j < c.ref_w; ++j)
        search.set(c.windows[k].y + planted[k].first + i, c.windows[k].x + planted[k].second + j,
                   reference.get(5 + i, static_cast<int>(10 * k) + j));
  }
  for (Criterion criterion : {Criterion::zncc, Criterion::ncc, Criterion::ssd}) {
    if (!can(c.pairing, criterion)) continue;
    std::vector<Peak> peaks;
    correlator_->peaks(request_of(c, reference.view, search.view, criterion, name()), peaks);
    ASSERT_EQ(peaks.size(), planted.size());
    for (std::size_t k = 0; k < planted.size(); ++k) {
      EXPECT_TRUE(peaks[k].found);
      EXPECT_EQ(peaks[k].dy, planted[k].first) << to_string(criterion);
      EXPECT_EQ(peaks[k].dx, planted[k].second);
      EXPECT_NEAR(peaks[k].score, criterion == Criterion::ssd ? 0 : 1, 1e-5);
      EXPECT_EQ(peaks[k].at_border, k != 2);
      EXPECT_EQ(peaks[k].neighbourhood[4], peaks[k].score);
      const Truth truth{
          reference, search, nullptr, c, static_cast<std::int64_t>(k), static_cast<std::int64_t>(k)};
      for (int i = 0; i < 9; ++i) {
        const int dy = peaks[k].dy + i / 3 - 1, dx = peaks[k].dx + i % 3 - 1;
        const bool in = dy >= 0 && dy <= 39 && dx >= 0 && dx <= 45;
        const double expected = in ? truth.criterion(criterion, dy, dx) : peaks[k].score;
        EXPECT_NEAR(peaks[k].neighbourhood[i], expected, 3e-7 * std::max(1.0, std::abs(expected)));
      }
    }
  }
}

TEST_P(EveryVariant, GivesTiesToTheFirstShiftAndReportsTheSecond) {
  // The same patch at four places, none of them near another.
  TestImage search(80, 70, type());
  const TestImage patch = noise(8, 8, type(), 18);
  for (const auto& [y, x] : {std::pair{50, 3}, {9, 60}, {9, 20}, {50, 40}})
    for (int i = 0; i < 8; ++i)
      for (int j = 0; j < 8; ++j) search.set(y + i, x + j, patch.get(i, j));
  Case c{.ref_h = 8,
         .ref_w = 8,
         .search_h = 70,
         .search_w = 80,
         .references = {{0, 0, 0}},
         .windows = {{0, 0, 0}}};
  c.shifts = Shifts::valid({8, 8}, {80, 70});
  for (Criterion criterion : {Criterion::zncc, Criterion::ssd}) {
    if (!can(c.pairing, criterion)) continue;
    std::vector<Peak> peaks;
    correlator_->peaks(request_of(c, patch.view, search.view, criterion, name()), peaks);
    EXPECT_EQ(peaks[0].dy, 9);
    EXPECT_EQ(peaks[0].dx, 20);
    EXPECT_NEAR(peaks[0].second_score, peaks[0].score, 3e-6);
  }
}

TEST_P(EveryVariant, ScoresOfFlatSaturatedAndFaintAreasStayInRange) {
  if (small_transforms()) GTEST_SKIP() << name() << " does transforms of at most 128x128";
  TestImage search = noise(160, 120, type(), 19);
  const bool real = type() == ScalarType::f32 || type() == ScalarType::f64;
  const double high = type() == ScalarType::u8 ? 255 : (type() == ScalarType::u16 ? 65535 : 100000);
  std::mt19937 random(20);
  for (int y = 0; y < 120; ++y)
    for (int x = 0; x < 160; ++x) {
      if (x < 50) search.set(y, x, 0);                 // a flat part
      if (x >= 50 && x < 100) search.set(y, x, high);  // a saturated part
      // a part of one grey level
      if (x >= 60 && x < 90 && y >= 40) search.set(y, x, high - (random() % 50 == 0));
    }
  Case c{.pairing = Pairing::one_to_many, .ref_h = 13, .ref_w = 13, .search_h = 120, .search_w = 160};
  c.shifts = Shifts::valid({13, 13}, {160, 120});
  c.references = {{0, 65, 60}};
  c.windows = {{0, 0, 0}};
  // With contrast of one grey level in 100000, cuda-fft loses digits and cuda-masked takes the window for
  // flat.
  const bool fft = name() == "cuda-fft" && real, masked = name() == "cuda-masked" && real;
  if (!fft && !masked) check(c, search, search, nullptr, on_gpu() ? 4e-6 : 0);
  if (!can(c.pairing, Criterion::zncc)) return;

  std::vector<Peak> peaks;
  correlator_->peaks(request_of(c, search.view, search.view, Criterion::zncc, name()), peaks);
  EXPECT_EQ(peaks[0].dx, 65);
  EXPECT_EQ(peaks[0].dy, 60);
  EXPECT_NEAR(peaks[0].score, 1, (real ? 1e-6 : 1e-7) + (fft ? 1e-4 : 0));

  c.references = {{0, 10, 10}};  // a flat reference has no peak
  Surfaces s;
  correlator_->surfaces(request_of(c, search.view, search.view, Criterion::zncc, name()), s);
  EXPECT_TRUE(std::all_of(s.surface<float>(0), s.surface<float>(0) + c.shifts.count(),
                          [](float v) { return v == 0; }));
  correlator_->peaks(request_of(c, search.view, search.view, Criterion::zncc, name()), peaks);
  EXPECT_FALSE(peaks[0].found);
}

TEST_P(EveryCpuVariant, OnlyScoresThatDoNotMatterMayBeBounds) {
  if (small_transforms()) GTEST_SKIP() << name() << " does transforms of at most 128x128";
  // Faint noise: transforms leave nearly all scores uncertain.
  const bool real = type() == ScalarType::f32 || type() == ScalarType::f64;
  TestImage search = noise(160, 120, type(), 19);
  std::mt19937 random(20);
  for (int y = 0; y < 120; ++y)
    for (int x = 50; x < 160; ++x) search.set(y, x, 200 + (random() % 50 == 0));
  Case c{.pairing = Pairing::one_to_many, .ref_h = 13, .ref_w = 13, .search_h = 120, .search_w = 160};
  c.shifts = Shifts::valid({13, 13}, {160, 120});
  c.references = {{0, 75, 60}};
  c.windows = {{0, 0, 0}};
  for (const Criterion criterion : {Criterion::zncc, Criterion::ncc})
    for (const float least : {0.3F, 0.9F, 2.0F}) {
      if (!can(c.pairing, criterion)) continue;
      CorrelateRequest request = request_of(c, search.view, search.view, criterion, name());
      Surfaces exact, some;
      correlator_->surfaces(request, exact);
      request.least_score = least;
      correlator_->surfaces(request, some);
      const int nx = exact.nx, ny = exact.ny;
      const float *a = exact.surface<float>(0), *b = some.surface<float>(0);
      const float highest = *std::max_element(a, a + nx * ny);
      for (int y = 0; y < ny; ++y)
        for (int x = 0; x < nx; ++x) {
          const int k = y * nx + x;
          bool matters = a[k] == highest;
          for (int j = std::max(y - 1, 0); j <= std::min(y + 1, ny - 1); ++j)
            for (int i = std::max(x - 1, 0); i <= std::min(x + 1, nx - 1); ++i)
              matters |= a[j * nx + i] >= least;
          if (matters) {
            ASSERT_NEAR(b[k], a[k], real ? 1e-6 : 0) << x << ' ' << y;
          } else {
            ASSERT_LT(b[k], std::min(least, std::nextafter(highest, 9.0F))) << x << ' ' << y;
            ASSERT_GE(b[k], a[k] - 2e-6F) << x << ' ' << y;
          }
        }
    }
}

TEST_P(EveryCpuVariant, IsTheSameForAnyNumberOfThreads) {
  const TestImage reference = noise(128, 128, type(), 21), search = noise(300, 280, type(), 22);
  Case few{.ref_h = 20, .ref_w = 20, .search_h = 280, .search_w = 300, .shifts = {0, 280, 0, 260}};
  few.references = {{0, 30, 30}};
  few.windows = {{0, 0, 0}};
  Case many{.ref_h = 15, .ref_w = 15, .search_h = 19, .search_w = 19, .shifts = {0, 4, 0, 4}};
  for (int k = 0; k < 200; ++k) {
    many.references.push_back({0, k % 100, k % 90});
    many.windows.push_back({0, k, k});
  }
  for (const Case& c : {few, many}) {
    std::vector<std::vector<std::byte>> results;
    std::vector<std::vector<Peak>> peaks;
    for (int threads : {1, 2, 5}) {
      Correlator correlator("cpu", threads);
      Surfaces s;
      correlator.surfaces(request_of(c, reference.view, search.view, Criterion::zncc, name()), s);
      results.push_back(s.bytes);
      peaks.emplace_back();
      correlator.peaks(request_of(c, reference.view, search.view, Criterion::zncc, name()), peaks.back());
    }
    for (int other : {1, 2}) {
      EXPECT_TRUE(results[0] == results[other]);
      for (std::size_t k = 0; k < peaks[0].size(); ++k) {
        EXPECT_EQ(peaks[0][k].dx, peaks[other][k].dx);
        EXPECT_EQ(peaks[0][k].dy, peaks[other][k].dy);
        EXPECT_EQ(peaks[0][k].score, peaks[other][k].score);
      }
    }
  }
}

TEST_P(EveryVariant, EmptyBatchesAndEmptyShiftsAreFine) {
  if (!can(Pairing::one_to_one, Criterion::zncc)) GTEST_SKIP() << name() << " does not score single pairs";
  const TestImage image = noise(20, 20, type(), 23);
  Case c{.ref_h = 5, .ref_w = 5, .search_h = 9, .search_w = 9, .shifts = {0, 4, 0, 4}};
  std::vector<Peak> peaks(3);
  Surfaces s;
  correlator_->peaks(request_of(c, image.view, image.view, Criterion::zncc, name()), peaks);
  EXPECT_TRUE(peaks.empty());
  correlator_->surfaces(request_of(c, image.view, image.view, Criterion::zncc, name()), s);
  EXPECT_TRUE(s.bytes.empty());
  c.references = c.windows = {{0, 0, 0}};
  c.shifts = Shifts::valid({5, 5}, {9, 3});
  correlator_->peaks(request_of(c, image.view, image.view, Criterion::zncc, name()), peaks);
  ASSERT_EQ(peaks.size(), 1u);
  EXPECT_FALSE(peaks[0].found);
}

}  // namespace
}  // namespace dic
