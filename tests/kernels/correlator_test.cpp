#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Correlator("cuda"): scores and peaks against float64 formulas straight from their definitions.
namespace dic::test {
namespace {

template <typename T>
constexpr ScalarType scalar_type = std::is_same_v<T, std::uint8_t>    ? ScalarType::u8
                                   : std::is_same_v<T, std::uint16_t> ? ScalarType::u16
                                   : std::is_same_v<T, std::int32_t>  ? ScalarType::i32
                                   : std::is_same_v<T, float>         ? ScalarType::f32
                                                                      : ScalarType::f64;

template <typename T>
std::vector<ImageView> views(const Side& side, const std::vector<T>& values, int bit_depth) {
  std::vector<ImageView> all;
  for (int p = 0; p < side.images; ++p)
    all.push_back({values.data() + static_cast<std::size_t>(p) * side.image_h * side.image_w, scalar_type<T>,
                   side.image_w, side.image_h, static_cast<std::ptrdiff_t>(side.image_w * sizeof(T)),
                   bit_depth});
  return all;
}

/// A case with its images, and the request that asks for it.
template <typename T>
struct Problem {
  Case c;
  std::vector<T> reference, search;
  std::vector<std::uint8_t> mask;  ///< of the reference's images; empty: every element counts
  std::vector<ImageView> reference_views, search_views, mask_views;

  explicit Problem(Case the_case) : c(std::move(the_case)) {
    reference = random_pixels<T>(c.reference, 3);
    search = random_pixels<T>(c.search, 4);
  }
  std::string variant;  ///< empty: the planner's choice
  int bit_depth = 0;
  double slack = 0;  ///< what a score may be off beyond float rounding

  CorrelateRequest request(Criterion criterion) {
    reference_views = views(c.reference, reference, bit_depth);
    search_views = views(c.search, search, bit_depth);
    CorrelateRequest request;
    request.pairing = c.pairing;
    request.reference = {reference_views, c.reference.positions, {c.reference.w, c.reference.h}};
    request.search = {search_views, c.search.positions, {c.search.w, c.search.h}};
    request.shifts = c.shifts;
    request.criterion = criterion;
    request.variant = variant;
    mask_views = mask.empty() ? std::vector<ImageView>{} : views(c.reference, mask, 0);
    request.reference_mask = mask_views;
    return request;
  }

  /// Score of one shift, larger is better; NaN where it is not defined.
  double score(Criterion criterion, std::int64_t k, int dy, int dx) const {
    const Pixels<T> a{c.reference, reference}, b{c.search, search};
    const auto [r, s] = pair_at(c, k);
    const int h = c.reference.h, w = c.reference.w;
    if (!b.holds(s, dy, dx, h, w)) return std::nan("");
    const Pixels<std::uint8_t> counting{c.reference, mask};
    const auto counts = [&](int y, int x) { return mask.empty() || counting.at(r, y, x) != 0; };
    long double n = 0, mean_a = 0, mean_b = 0, ab = 0, aa = 0, bb = 0, ssd = 0;
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x)
        if (counts(y, x)) ++n, mean_a += a.at(r, y, x), mean_b += b.at(s, y + dy, x + dx);
    const bool zero_mean = criterion == Criterion::zncc;
    mean_a = zero_mean ? mean_a / n : 0, mean_b = zero_mean ? mean_b / n : 0;
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        if (!counts(y, x)) continue;
        const long double p = a.at(r, y, x) - mean_a, q = b.at(s, y + dy, x + dx) - mean_b;
        ab += p * q, aa += p * p, bb += q * q;
        ssd += (p - q) * (p - q);
      }
    }
    if (criterion == Criterion::ssd) return static_cast<double>(-ssd);
    const long double power = aa * bb;
    return power > 0 ? static_cast<double>(ab / std::sqrt(power)) : std::nan("");
  }
  std::vector<double> scores(Criterion criterion, std::int64_t k) const {
    std::vector<double> all;
    for (int dy = c.shifts.dy_min; dy <= c.shifts.dy_max; ++dy)
      for (int dx = c.shifts.dx_min; dx <= c.shifts.dx_max; ++dx) all.push_back(score(criterion, k, dy, dx));
    return all;
  }
};

double tolerance(Criterion criterion, double want, double slack) {
  return slack + (criterion == Criterion::ssd ? 1e-6 * std::abs(want) : 2e-6);
}

double value_of(double score, Criterion criterion) {
  if (std::isnan(score)) return criterion == Criterion::ssd ? std::numeric_limits<float>::max() : 0.0;
  return criterion == Criterion::ssd ? -score : score;
}

template <typename T>
void check_surfaces(Correlator& correlator, Problem<T>& problem, Criterion criterion) {
  SCOPED_TRACE(problem.c.name + " " + std::string(to_string(criterion)) + " " +
               std::string(to_string(scalar_type<T>)));
  Surfaces got;
  got.bytes.assign(17, std::byte{0xa5});
  correlator.surfaces(problem.request(criterion), got);
  ASSERT_EQ(got.pairs, problem.c.pairs);
  for (std::int64_t k = 0; k < got.pairs; ++k) {
    const std::vector<double> want = problem.scores(criterion, k);
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double value = value_of(want[i], criterion);
      ASSERT_NEAR(got.surface<float>(k)[i], value, tolerance(criterion, value, problem.slack))
          << "pair " << k << " shift " << i;
    }
  }
}

template <typename T>
void check_peaks(Correlator& correlator, Problem<T>& problem, Criterion criterion) {
  SCOPED_TRACE(problem.c.name + " " + std::string(to_string(criterion)) + " " +
               std::string(to_string(scalar_type<T>)));
  std::vector<Peak> got(3, Peak{.dx = 77, .found = true});
  correlator.peaks(problem.request(criterion), got);
  ASSERT_EQ(std::ssize(got), problem.c.pairs);
  const Shifts shifts = problem.c.shifts;
  for (std::int64_t k = 0; k < problem.c.pairs; ++k) {
    SCOPED_TRACE("pair " + std::to_string(k));
    const std::vector<double> want = problem.scores(criterion, k);
    const auto at = [&](int dx, int dy) {
      const bool inside =
          dx >= shifts.dx_min && dx <= shifts.dx_max && dy >= shifts.dy_min && dy <= shifts.dy_max;
      return inside ? want[(dy - shifts.dy_min) * shifts.nx() + dx - shifts.dx_min] : std::nan("");
    };
    double best = std::nan(""), second = std::nan("");
    const Peak& peak = got[k];
    for (int dy = shifts.dy_min; dy <= shifts.dy_max; ++dy) {
      for (int dx = shifts.dx_min; dx <= shifts.dx_max; ++dx) {
        best = std::fmax(best, at(dx, dy));
        if (std::abs(dx - peak.dx) > 2 || std::abs(dy - peak.dy) > 2) second = std::fmax(second, at(dx, dy));
      }
    }
    ASSERT_EQ(peak.found, !std::isnan(best));
    if (!peak.found) {
      ASSERT_EQ(peak.score, 0.0f);
      continue;
    }
    const double value = value_of(best, criterion), slack = tolerance(criterion, value, problem.slack);
    ASSERT_NEAR(peak.score, value, slack);
    ASSERT_NEAR(at(peak.dx, peak.dy), best, 2 * slack) << "not the best shift";
    ASSERT_NEAR(peak.second_score, std::isnan(second) ? 0.0 : value_of(second, criterion),
                tolerance(criterion, value_of(second, criterion), problem.slack));
    ASSERT_EQ(peak.at_border, peak.dx == shifts.dx_min || peak.dx == shifts.dx_max ||
                                  peak.dy == shifts.dy_min || peak.dy == shifts.dy_max);
    for (int i = 0; i < 9; ++i) {
      const double neighbour = at(peak.dx + i % 3 - 1, peak.dy + i / 3 - 1);
      const double shown = std::isnan(neighbour) ? peak.score : value_of(neighbour, criterion);
      ASSERT_NEAR(peak.neighbourhood[i], shown, tolerance(criterion, shown, problem.slack))
          << "neighbour " << i;
    }
  }
}

constexpr Criterion scored[] = {Criterion::zncc, Criterion::ncc, Criterion::ssd};

/// False where a variant that was asked for by name refuses the job.
template <typename T>
bool can_do(Problem<T>& problem, Criterion criterion) {
  if (problem.variant.empty()) return true;
  const CorrelateShape shape = correlate::check_request(problem.request(criterion)).shape();
  return correlate::unsupported_reason(correlate::backend_named("cuda"), problem.variant, shape).empty();
}

template <typename T>
void check_all_measures(Correlator& correlator, const std::string& variant = "") {
  for (const Case& c : ncc_cases()) {
    if (c.pairs * c.shifts.count() * c.reference.h * c.reference.w > 30'000'000) continue;
    Problem<T> problem(c);
    problem.variant = variant;
    for (const Criterion criterion : scored) {
      if (!can_do(problem, criterion)) continue;
      check_surfaces(correlator, problem, criterion);
      check_peaks(correlator, problem, criterion);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

using CudaCorrelator = GpuTest;

TEST_F(CudaCorrelator, U8) {
  Correlator c("cuda");
  check_all_measures<std::uint8_t>(c, "cuda-u8-tensor");
  check_all_measures<std::uint8_t>(c, "cuda-few-shifts");
  check_all_measures<std::uint8_t>(c, "cuda-basic");
}
TEST_F(CudaCorrelator, U16) {
  Correlator c("cuda");
  check_all_measures<std::uint16_t>(c, "cuda-u16-tensor");
  check_all_measures<std::uint16_t>(c, "cuda-basic");
}
TEST_F(CudaCorrelator, I32) {
  Correlator c("cuda");
  check_all_measures<std::int32_t>(c);
}
TEST_F(CudaCorrelator, F32) {
  Correlator c("cuda");
  check_all_measures<float>(c);
}

/// What cuda-f32-tensor may be off: rounding of operands, in the instruction and of the sums of its turns,
/// for windows whose mean lies `offset` from that of all that was staged; and of the integers of which it
/// makes variances, for elements up to `reach` from the mean.
double split_bound(const Side& reference, double offset, double reach, double deviation) {
  const double steps = ((reference.h + 4) / 4) * ((reference.w + 7) / 4), n = reference.h * reference.w;
  return std::ldexp(
      (35 + steps / 4) * std::hypot(1, offset / deviation) + 2 * std::max(n / 1024, 0.5) * reach / deviation,
      -22);
}

void check_f32_scores(Correlator& correlator, Problem<float>& problem) {
  problem.variant = "cuda-f32-scores";
  check_surfaces(correlator, problem, Criterion::zncc);
  check_peaks(correlator, problem, Criterion::zncc);
}
TEST_F(CudaCorrelator, F32Scores) {
  Correlator correlator("cuda");
  for (const Case& c : ncc_cases()) {
    if (std::max(c.reference.h, c.reference.w) > 64 || c.pairs > 1000) continue;
    Problem<float> problem(c);
    check_f32_scores(correlator, problem);
    if (HasFatalFailure()) return;
  }
}
TEST_F(CudaCorrelator, F32ScoresOfLargeShapes) {
  Correlator correlator("cuda");
  for (const Case& c : {make_case("64, 32", Pairing::one_to_one, 3, 3, 64, 64, 128, 128,
                                  Shifts::valid({64, 64}, {128, 128}), 9),
                        make_case("wide", Pairing::one_to_many, 1, 2, 13, 10, 153, 211,
                                  Shifts::valid({10, 13}, {211, 153}), 20)}) {
    Problem<float> problem(c);
    check_f32_scores(correlator, problem);
  }
}
TEST_F(CudaCorrelator, F32ScoresOfBrightAndUnevenImages) {
  Correlator correlator("cuda");
  Problem<float> problem(
      make_case("31, 15", Pairing::one_to_one, 9, 9, 31, 31, 61, 61, Shifts::valid({31, 31}, {61, 61})));
  // Far from zero beside their contrast, and brighter from pixel to pixel.
  for (auto* pixels : {&problem.reference, &problem.search})
    for (std::size_t i = 0; i < pixels->size(); ++i)
      (*pixels)[i] = 1000 + 30 * (*pixels)[i] + 2 * static_cast<float>(i % 37);
  check_f32_scores(correlator, problem);
  std::fill(problem.search.begin(), problem.search.end(), 0.1f);
  std::vector<Peak> peaks;
  correlator.peaks(problem.request(Criterion::zncc), peaks);
  for (const Peak& peak : peaks) EXPECT_FALSE(peak.found);
}
TEST_F(CudaCorrelator, BlackAreasOfFloatImages) {
  Correlator correlator("cuda");
  Problem<float> problem(
      make_case("black", Pairing::one_to_one, 5, 5, 11, 9, 61, 47, Shifts::valid({9, 11}, {47, 61})));
  // Sums that slide out of the image's content into nothing must end at nothing.
  const int width = problem.c.search.image_w;
  for (std::size_t i = 0; i < problem.search.size(); ++i)
    if (i / width % 30 > 12 || i % width < 20) problem.search[i] = 0;
  for (const char* variant : {"cuda-basic", "cuda-f32-scores", "cuda-f32-tensor"}) {
    problem.variant = variant;
    problem.slack = problem.variant == "cuda-f32-tensor" ? split_bound(problem.c.reference, 1, 10, 1) : 0;
    check_surfaces(correlator, problem, Criterion::zncc);
  }
  problem.variant = "cuda-basic";
  problem.slack = 0;
  check_surfaces(correlator, problem, Criterion::ncc);
}
TEST_F(CudaCorrelator, F64) {
  Correlator c("cuda");
  check_all_measures<double>(c);
}

/// What cuda-f16-tensor may be off: every step rounds by at most 2^-20 of what a part of up to 96 steps has
/// added up, and the parts' sums are at most sqrt(1 + (offset / deviation)^2) of the score's norm together,
/// for a window whose mean lies `offset` from the middle of the range.
double half_bound(const Side& reference, double offset, double deviation) {
  const double steps = ((reference.h + 4) / 4) * ((reference.w + 7) / 4);
  return std::ldexp(std::min(steps, 96.0) + steps / 96, -20) * std::hypot(1, offset / deviation);
}

enum class MaskKind { half_plane, holes, speckle, corner };

/// Masks with long runs, several runs in a row, many short ones; `corner`: nearly nothing counts, in most
/// references nothing at all.
std::vector<std::uint8_t> make_mask(const Side& side, MaskKind kind) {
  std::mt19937 random(5);
  std::vector<std::uint8_t> mask;
  for (int y = 0; y < side.image_h * side.images; ++y)
    for (int x = 0; x < side.image_w; ++x) {
      const bool counts = kind == MaskKind::half_plane ? 2 * x + y % side.image_h < side.image_w + 5
                          : kind == MaskKind::holes    ? std::hypot(x % 13 - 6, y % 11 - 5) > 3
                          : kind == MaskKind::speckle  ? random() % 3 == 0
                                                       : x < 6 && y < 5;
      mask.push_back(counts ? 1 + random() % 255 : 0);
    }
  return mask;
}

template <typename T>
void check_masked(Correlator& correlator) {
  for (const Case& c : ncc_cases()) {
    if (c.pairs * c.shifts.count() * c.reference.h * c.reference.w > 10'000'000) continue;
    Problem<T> problem(c);
    for (const MaskKind kind : {MaskKind::half_plane, MaskKind::holes, MaskKind::speckle, MaskKind::corner}) {
      problem.mask = make_mask(c.reference, kind);
      for (const Criterion criterion : scored) {
        SCOPED_TRACE("mask " + std::to_string(static_cast<int>(kind)));
        check_surfaces(correlator, problem, criterion);
        check_peaks(correlator, problem, criterion);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}
TEST_F(CudaCorrelator, MaskedU8) {
  Correlator c("cuda");
  check_masked<std::uint8_t>(c);
  EXPECT_EQ(c.last_plan().variant, "cuda-masked");
  check_all_measures<std::uint8_t>(c, "cuda-masked");
}
TEST_F(CudaCorrelator, MaskedU16) {
  Correlator c("cuda");
  check_masked<std::uint16_t>(c);
}
TEST_F(CudaCorrelator, MaskedI32) {
  Correlator c("cuda");
  check_masked<std::int32_t>(c);
}
TEST_F(CudaCorrelator, MaskedF32) {
  Correlator c("cuda");
  check_masked<float>(c);
  check_all_measures<float>(c, "cuda-masked");
}
TEST_F(CudaCorrelator, MaskedF64) {
  Correlator c("cuda");
  check_masked<double>(c);
}
TEST_F(CudaCorrelator, MasksOfLargeReferencesAndManyShifts) {
  Correlator correlator("cuda");
  for (const Case& c :
       {make_case("bands", Pairing::one_to_one, 1, 1, 300, 280, 303, 284,
                  Shifts::valid({280, 300}, {284, 303})),
        make_case("wide", Pairing::n_to_m, 2, 2, 2, 2000, 7, 2005, Shifts::valid({2000, 2}, {2005, 7})),
        make_case("tiles", Pairing::n_to_m, 2, 1, 13, 10, 153, 211, Shifts::valid({10, 13}, {211, 153}),
                  20)}) {
    Problem<std::uint8_t> bytes(c);
    Problem<float> floats(c);
    bytes.mask = floats.mask = make_mask(c.reference, MaskKind::holes);
    check_surfaces(correlator, bytes, Criterion::zncc);
    check_surfaces(correlator, floats, Criterion::zncc);
    check_peaks(correlator, bytes, Criterion::ssd);
  }
}
TEST_F(CudaCorrelator, MaskedSumsLeaveOutWhatDoesNotCount) {
  Correlator correlator("cuda");
  Problem<std::uint16_t> problem(
      make_case("sums", Pairing::n_to_mn, 3, 9, 15, 17, 31, 30, Shifts::full({17, 15}, {30, 31}), 9));
  problem.mask = make_mask(problem.c.reference, MaskKind::holes);
  Surfaces sums;
  correlator.surfaces(problem.request(Criterion::cross_correlation), sums);
  std::vector<std::uint16_t> counted = problem.reference;
  for (std::size_t i = 0; i < counted.size(); ++i) counted[i] = problem.mask[i] ? counted[i] : 0;
  const Pixels<std::uint16_t> a{problem.c.reference, counted}, b{problem.c.search, problem.search};
  const Shifts& shifts = problem.c.shifts;
  for (std::int64_t k = 0; k < sums.pairs; ++k) {
    const auto [r, s] = pair_at(problem.c, k);
    for (std::int64_t i = 0; i < shifts.count(); ++i) {
      const int dx = shifts.dx_min + static_cast<int>(i % shifts.nx()),
                dy = shifts.dy_min + static_cast<int>(i / shifts.nx());
      ASSERT_EQ(sums.surface<std::uint64_t>(k)[i], naive_sum<std::uint64_t>(a, r, b, s, dy, dx).sum);
    }
  }
}

TEST_F(CudaCorrelator, HalvesOf12And10Bit) {
  Correlator correlator("cuda");
  for (const int bits : {12, 10}) {
    for (const Case& c : ncc_cases()) {
      if (c.pairs * c.shifts.count() * c.reference.h * c.reference.w > 30'000'000) continue;
      if (c.reference.h * c.reference.w < 30) continue;  // deviations of a few elements may be anything
      Problem<std::uint16_t> problem(c);
      for (std::uint16_t& p : problem.reference) p >>= 16 - bits;
      for (std::uint16_t& p : problem.search) p >>= 16 - bits;
      problem.variant = "cuda-f16-tensor";
      problem.bit_depth = bits;
      problem.slack = half_bound(c.reference, 1, 1);
      check_surfaces(correlator, problem, Criterion::zncc);
      check_peaks(correlator, problem, Criterion::zncc);
      if (HasFatalFailure()) return;
    }
  }
}

/// check(problem) with images of `bits` for what tensor cores do of 16 bit: one warp and several for a
/// pair; tails under references that are and are not whole steps of 16, few rows of them, and those that
/// warps share.
template <typename Check>
void check_shapes_of_16_bit(int bits, Check&& check) {
  struct Size {
    int h, w, ny, nx;
  };
  for (const auto& [h, w, ny, nx] : {Size{31, 31, 31, 31},
                                     {32, 32, 33, 33},
                                     {17, 31, 33, 33},
                                     {5, 7, 6, 33},
                                     {40, 33, 33, 33},
                                     {64, 64, 33, 33},
                                     {64, 32, 20, 33},
                                     {120, 8, 33, 33},
                                     {120, 8, 31, 31},
                                     {30, 20, 70, 33},
                                     {9, 11, 66, 66},
                                     {61, 61, 63, 63},
                                     {32, 32, 17, 17}}) {
    for (const int outside : {0, 9}) {
      const int pairs = only_small_tests() ? 2 : 5;
      Problem<std::uint16_t> problem(
          make_case(std::to_string(h) + "x" + std::to_string(w), Pairing::one_to_one, pairs, pairs, h, w,
                    h + ny - 1, w + nx - 1, Shifts::valid({w, h}, {w + nx - 1, h + ny - 1}), outside));
      for (auto* pixels : {&problem.reference, &problem.search})
        for (std::uint16_t& p : *pixels) p >>= 16 - bits;
      problem.bit_depth = bits;
      check(problem);
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST_F(CudaCorrelator, HalvesOfAllShapes) {
  Correlator correlator("cuda");
  check_shapes_of_16_bit(12, [&](Problem<std::uint16_t>& problem) {
    problem.variant = "cuda-f16-tensor";
    problem.slack = half_bound(problem.c.reference, 1, 1);
    check_surfaces(correlator, problem, Criterion::zncc);
    check_peaks(correlator, problem, Criterion::zncc);
  });
}

TEST_F(CudaCorrelator, U16OfAllShapes) {
  Correlator correlator("cuda");
  check_shapes_of_16_bit(16, [&](Problem<std::uint16_t>& problem) {
    problem.variant = "cuda-u16-tensor";
    for (const Criterion criterion : scored) {
      check_surfaces(correlator, problem, criterion);
      check_peaks(correlator, problem, criterion);
    }
  });
}

TEST_F(CudaCorrelator, HalvesOfDarkAndBrightImages) {
  Correlator correlator("cuda");
  struct Content {
    int base, contrast;
  };
  for (const Content& content : {Content{0, 40}, Content{150, 60}, Content{4055, 40}, Content{0, 4095}}) {
    for (const int h : {31, 64, 129}) {
      Problem<std::uint16_t> problem(make_case("base " + std::to_string(content.base), Pairing::one_to_one, 4,
                                               4, h, h, h + 6, h + 9, Shifts::valid({h, h}, {h + 9, h + 6})));
      problem.variant = "cuda-f16-tensor";
      problem.bit_depth = 12;
      for (auto* pixels : {&problem.reference, &problem.search})
        for (std::uint16_t& p : *pixels)
          p = static_cast<std::uint16_t>(content.base + p % (content.contrast + 1));
      // An outlier at the other end of the range: a mean far from the middle of what occurs.
      problem.reference[problem.reference.size() / 2] = content.base < 2048 ? 4095 : 0;
      const double mean = content.base + content.contrast / 2.0;
      problem.slack = 2 * half_bound(problem.c.reference, mean - 2048, content.contrast / std::sqrt(12.0));
      check_surfaces(correlator, problem, Criterion::zncc);
      check_peaks(correlator, problem, Criterion::zncc);
    }
  }
}

void check_split(Correlator& correlator, Problem<float>& problem) {
  problem.variant = "cuda-f32-tensor";
  check_surfaces(correlator, problem, Criterion::zncc);
  check_peaks(correlator, problem, Criterion::zncc);
}
TEST_F(CudaCorrelator, SplitFloats) {
  Correlator correlator("cuda");
  for (const Case& c : ncc_cases()) {
    if (c.pairs * c.shifts.count() * c.reference.h * c.reference.w > 30'000'000) continue;
    if (c.reference.h * c.reference.w < 30) continue;  // deviations of a few elements may be anything
    Problem<float> problem(c);
    problem.variant = "cuda-f32-tensor";
    if (!can_do(problem, Criterion::zncc)) continue;
    check_split(correlator, problem);
    if (HasFatalFailure()) return;
  }
}

TEST_F(CudaCorrelator, SplitFloatsOfAllShapes) {
  Correlator correlator("cuda");
  struct Size {
    int h, w, ny, nx;
  };
  // The shapes that are compiled, with and without strides that they know, one block and several for a pair.
  for (const auto& [h, w, ny, nx] : {Size{31, 31, 31, 31},
                                     {32, 32, 33, 33},
                                     {64, 64, 33, 33},
                                     {61, 61, 63, 63},
                                     {31, 33, 5, 5},
                                     {21, 70, 7, 20},
                                     {40, 101, 31, 32},
                                     {30, 101, 33, 33},
                                     {100, 40, 12, 65},
                                     {15, 17, 41, 90}}) {
    for (const int outside : {0, 9}) {
      const int pairs = only_small_tests() ? 1 : 3;
      Problem<float> problem(make_case(std::to_string(h) + "x" + std::to_string(w), Pairing::one_to_one,
                                       pairs, pairs, h, w, h + ny - 1, w + nx - 1,
                                       Shifts::valid({w, h}, {w + nx - 1, h + ny - 1}), outside));
      check_split(correlator, problem);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(CudaCorrelator, SplitFloatsOfBrightTinyAndHugeValues) {
  Correlator correlator("cuda");
  struct Content {
    double base, contrast, slope;
  };
  for (const Content& content :
       {Content{1e6, 10, 0}, Content{-1e6, 1, 0}, Content{1000, 30, 2}, Content{0, 1e-25, 0},
        Content{3e-25, 1e-27, 0}, Content{0, 1e25, 0}, Content{-1e27, 1e25, 1e24}}) {
    Problem<float> problem(make_case("base " + std::to_string(content.base), Pairing::one_to_one, 6, 6, 31,
                                     31, 61, 61, Shifts::valid({31, 31}, {61, 61}), 9));
    for (auto* pixels : {&problem.reference, &problem.search})
      for (std::size_t i = 0; i < pixels->size(); ++i)
        (*pixels)[i] = static_cast<float>(content.base + content.contrast * (*pixels)[i] +
                                          content.slope * static_cast<double>(i % 37));
    problem.slack = split_bound(problem.c.reference, 1, 5, 1);
    check_split(correlator, problem);
    if (HasFatalFailure()) return;
  }
}

TEST_F(CudaCorrelator, SplitFloatsFindFlatWindowsAndLeaveOutWhatIsNoNumber) {
  Correlator correlator("cuda");
  Problem<float> problem(
      make_case("flat", Pairing::one_to_one, 5, 5, 9, 9, 17, 17, Shifts::valid({9, 9}, {17, 17})));
  problem.variant = "cuda-f32-tensor";
  const std::vector<float> contents = problem.search;
  std::vector<Peak> peaks;
  const auto expect_none = [&] {
    correlator.peaks(problem.request(Criterion::zncc), peaks);
    for (const Peak& peak : peaks) EXPECT_FALSE(peak.found);
  };
  for (const float value : {0.0f, 0.1f, 1e6f, std::nanf(""), std::numeric_limits<float>::infinity()}) {
    std::fill(problem.search.begin(), problem.search.end(), value);
    expect_none();
  }
  std::fill(problem.reference.begin(), problem.reference.end(), 0.1f);
  problem.search = contents;
  expect_none();
}

TEST_F(CudaCorrelator, SplitFloatsNextToWhatIsNoNumber) {
  Correlator correlator("cuda");
  for (const float value : {std::nanf(""), std::numeric_limits<float>::infinity(), 3e38f}) {
    Case c = make_case("beside", Pairing::one_to_one, 8, 8, 9, 9, 17, 17, Shifts::valid({9, 9}, {17, 17}));
    for (int k = 0; k < 8; ++k) c.search.positions[k] = {0, 10 + k % 4, 3};
    Problem<float> problem(c);
    // A frame of it around all windows that begin in one column.
    for (int y = 0; y < c.search.image_h; ++y)
      problem.search[static_cast<std::size_t>(y) * c.search.image_w + 9] = value;
    for (int y = 0; y < c.search.image_h; ++y)
      problem.search[static_cast<std::size_t>(y) * c.search.image_w + 30] = value;
    check_split(correlator, problem);
  }
}

TEST_F(CudaCorrelator, HalvesFindFlatWindows) {
  Correlator correlator("cuda");
  // 32x32 elements of 12 bit: the most whose squares about the middle of the range fit 32 bits, but for
  // zeros.
  for (const int size : {9, 32})
    for (const int level : {0, 2048, 4095}) {
      Problem<std::uint16_t> problem(make_case("flat", Pairing::one_to_one, 3, 3, size, size, size + 8,
                                               size + 8, Shifts::valid({size, size}, {size + 8, size + 8})));
      problem.bit_depth = 12;
      for (std::uint16_t& p : problem.reference) p >>= 4;
      std::fill(problem.search.begin(), problem.search.end(), level);
      std::vector<Peak> peaks;
      correlator.peaks(problem.request(Criterion::zncc), peaks);
      EXPECT_EQ(correlator.last_plan().variant, "cuda-f16-tensor");
      for (const Peak& peak : peaks) EXPECT_FALSE(peak.found) << size << " of " << level;
    }
}

TEST_F(CudaCorrelator, TheTopOf16BitIsExact) {
  Correlator correlator("cuda");
  for (const int h : {31, 181}) {
    Problem<std::uint16_t> problem(make_case("65535", Pairing::one_to_one, 2, 2, h, h, h + 5, h + 3,
                                             Shifts::valid({h, h}, {h + 3, h + 5})));
    problem.variant = "cuda-u16-tensor";
    for (auto* pixels : {&problem.reference, &problem.search})
      for (std::uint16_t& p : *pixels) p = p % 97 == 0 ? 65534 : 65535;
    for (const Criterion criterion : scored) check_surfaces(correlator, problem, criterion);
    std::fill(problem.search.begin(), problem.search.end(), 65535);
    for (const Criterion criterion : scored) check_peaks(correlator, problem, criterion);
    std::fill(problem.reference.begin(), problem.reference.end(), 65535);
    Surfaces sums;
    correlator.surfaces(problem.request(Criterion::cross_correlation), sums);
    for (std::int64_t i = 0; i < sums.pairs * sums.nx * sums.ny; ++i)
      ASSERT_EQ(sums.surface<std::uint64_t>(0)[i], std::uint64_t{65535} * 65535 * h * h);
  }
}

struct SizeAndShifts {
  int h, w, ny, nx;
};
/// Scattered pairs, with windows inside and windows that leave the image, against the definition: pairs of
/// several images, and those of just one.
void check_scattered(Correlator& correlator, const std::string& variant, int pairs,
                     std::span<const SizeAndShifts> sizes) {
  for (const auto& [h, w, ny, nx] : sizes) {
    for (const auto& [one_image, outside] : {std::pair{false, 0}, {false, 12}, {true, 0}, {true, 12}}) {
      Case c = make_case(std::to_string(h) + "x" + std::to_string(w) + (one_image ? " of one image" : ""),
                         Pairing::one_to_one, pairs, pairs, h, w, h + ny - 1, w + nx - 1,
                         Shifts::valid({w, h}, {w + nx - 1, h + ny - 1}));
      for (Side* side : {&c.reference, &c.search}) {
        side->image_h += 40, side->image_w += 40;
        if (one_image) side->images = 1;
        side->positions = scattered(pairs, *side, side == &c.search ? outside : 0, 19);
      }
      Problem<std::uint8_t> problem(c);
      problem.variant = variant;
      for (const Criterion criterion : scored) {
        check_surfaces(correlator, problem, criterion);
        check_peaks(correlator, problem, criterion);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(CudaCorrelator, FewShiftsOfAllSizes) {
  Correlator correlator("cuda");
  // Around the 8 rows and 32 columns of a step, the numbers of shifts that are compiled, and the largest.
  constexpr SizeAndShifts sizes[]{{31, 31, 5, 5}, {7, 7, 5, 5}, {8, 32, 9, 9},    {9, 33, 8, 6},
                                  {16, 15, 2, 7}, {3, 5, 9, 8}, {51, 21, 3, 4},   {33, 64, 7, 7},
                                  {25, 65, 1, 9}, {1, 1, 9, 9}, {128, 127, 5, 5}, {131, 140, 6, 5}};
  check_scattered(correlator, "cuda-few-shifts", only_small_tests() ? 5 : 40, sizes);
}

TEST_F(CudaCorrelator, SparseProductsOfAllSizes) {
  Correlator correlator("cuda");
  // Around the 32 columns of a reference, its turns of 32 rows, and the 16, 32 and 33 shifts of shapes.
  constexpr SizeAndShifts sizes[]{{31, 31, 31, 31}, {32, 32, 33, 33},  {32, 32, 32, 32}, {1, 1, 33, 33},
                                  {7, 5, 16, 16},   {15, 17, 17, 16},  {16, 16, 3, 33},  {17, 31, 33, 2},
                                  {33, 30, 33, 33}, {64, 32, 20, 27},  {65, 3, 33, 32},  {128, 32, 33, 33},
                                  {31, 31, 15, 15}, {129, 32, 10, 10}, {32, 33, 33, 33}, {32, 32, 34, 33}};
  check_scattered(correlator, "cuda-u8-tensor", only_small_tests() ? 2 : 6, sizes);
}

TEST_F(CudaCorrelator, SparseProductsOfMorePairsThanAreDealt) {
  Correlator correlator("cuda");
  for (const int pairs : only_small_tests() ? std::vector{3000} : std::vector{2113, 5001, 20003}) {
    Case c = make_case(std::to_string(pairs), Pairing::one_to_one, pairs, pairs, 5, 7, 15, 18,
                       Shifts::valid({7, 5}, {18, 15}));
    for (Side* side : {&c.reference, &c.search}) {
      side->images = 1, side->image_h = 300, side->image_w = 416;
      side->positions = scattered(pairs, *side, side == &c.search ? 9 : 0, 23);
    }
    Problem<std::uint8_t> problem(std::move(c));
    problem.variant = "cuda-u8-tensor";
    check_peaks(correlator, problem, Criterion::zncc);
  }
}

/// Equal integers; floats but for the order in which some variants add them up.
void expect_same(const Surfaces& got, const Surfaces& want) {
  ASSERT_EQ(got.type, want.type);
  ASSERT_EQ(got.bytes.size(), want.bytes.size());
  if (got.type != Surfaces::Type::f32) {
    EXPECT_EQ(got.bytes, want.bytes);
    return;
  }
  for (std::int64_t i = 0; i < want.pairs * want.ny * want.nx; ++i) {
    const float value = want.surface<float>(0)[i];
    ASSERT_NEAR(got.surface<float>(0)[i], value, 1e-3 * std::max(1.0f, std::abs(value))) << "value " << i;
  }
}
void expect_same(const std::vector<Peak>& got, const std::vector<Peak>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t k = 0; k < want.size(); ++k) {
    SCOPED_TRACE("pair " + std::to_string(k));
    ASSERT_EQ(got[k].found, want[k].found);
    ASSERT_EQ(std::pair(got[k].dx, got[k].dy), std::pair(want[k].dx, want[k].dy));
    const auto expect_near = [](float value, float expected) {
      EXPECT_NEAR(value, expected, 1e-3 * std::max(1.0f, std::abs(expected)));
    };
    expect_near(got[k].score, want[k].score);
    expect_near(got[k].second_score, want[k].second_score);
    for (int i = 0; i < 9; ++i) expect_near(got[k].neighbourhood[i], want[k].neighbourhood[i]);
  }
}

/// What three runs of the kernels in a call leave is what one leaves: nothing adds to the run before.
template <typename Compute>
void expect_same_of_three_runs(Correlator& correlator, Compute&& compute) {
  const auto once = compute();
  correlator.repeat_kernels(3);
  expect_same(compute(), once);
  correlator.repeat_kernels(1);
}
template <typename T>
void check_three_runs(Correlator& correlator, Problem<T>& problem, Criterion criterion) {
  SCOPED_TRACE(problem.variant + ", " + problem.c.name + " " + std::string(to_string(criterion)) + " " +
               std::string(to_string(scalar_type<T>)));
  if (!can_do(problem, criterion)) return;
  const CorrelateRequest request = problem.request(criterion);
  expect_same_of_three_runs(correlator, [&] {
    Surfaces found;
    correlator.surfaces(request, found);
    return found;
  });
  if (criterion == Criterion::cross_correlation) return;
  expect_same_of_three_runs(correlator, [&] {
    std::vector<Peak> found;
    correlator.peaks(request, found);
    return found;
  });
}
template <typename T>
void check_three_runs(Correlator& correlator, const CorrelateVariant& variant, int bit_depth = 0) {
  for (const Case& c :
       {make_case("a block", Pairing::one_to_one, 5, 5, 9, 8, 17, 16, Shifts::valid({8, 9}, {16, 17})),
        make_case("all overlaps", Pairing::n_to_mn, 2, 6, 32, 32, 32, 32, Shifts::full({32, 32}, {32, 32})),
        make_case("blocks", Pairing::one_to_one, 2, 2, 13, 10, 93, 121, Shifts::valid({10, 13}, {121, 93}),
                  20)}) {
    Problem<T> problem(c);
    problem.variant = variant.name;
    problem.bit_depth = bit_depth;
    if (bit_depth > 0)
      for (auto* pixels : {&problem.reference, &problem.search})
        for (T& p : *pixels) p = static_cast<T>(static_cast<int>(p) >> (16 - bit_depth));
    for (const Criterion criterion : variant.criteria) check_three_runs(correlator, problem, criterion);
  }
}
TEST_F(CudaCorrelator, KernelsThatRunSeveralTimesLeaveWhatOneRunDoes) {
  Correlator correlator("cuda");
  for (const CorrelateVariant& variant : correlate_variants()) {
    if (variant.backend != "cuda") continue;
    check_three_runs<std::uint8_t>(correlator, variant);
    check_three_runs<std::uint16_t>(correlator, variant);
    check_three_runs<std::uint16_t>(correlator, variant, 12);
    check_three_runs<float>(correlator, variant);
  }
}
TEST_F(CudaCorrelator, KernelsOfThePartsOfAJobRunSeveralTimes) {
  const int windows = only_small_tests() ? 4 : 4000;  // whose surfaces take 1.3 GB
  Problem<std::uint8_t> problem(make_case("parts", Pairing::one_to_many, 1, windows, 3, 2, 200, 203,
                                          Shifts::valid({2, 3}, {203, 200})));
  problem.variant = "cuda-basic";
  const CorrelateRequest request = problem.request(Criterion::zncc);
  for (const std::string devices : {"cuda", "cuda:0,0"}) {
    Correlator correlator(devices);
    expect_same_of_three_runs(correlator, [&] {
      std::vector<Peak> found;
      correlator.peaks(request, found);
      EXPECT_GT(correlator.device_seconds().kernels, 0);
      return found;
    });
  }
}
TEST_F(CudaCorrelator, SecondsOfKernelsAreThoseOfOneRun) {
  Correlator correlator("cuda");
  const int pairs = only_small_tests() ? 20 : 2000;
  Problem<std::uint8_t> problem(make_case("seconds", Pairing::one_to_one, pairs, pairs, 31, 31, 61, 61,
                                          Shifts::valid({31, 31}, {61, 61})));
  problem.variant = "cuda-basic";
  std::vector<Peak> peaks;
  const auto seconds_of = [&](int runs) {
    correlator.repeat_kernels(runs);
    correlator.peaks(problem.request(Criterion::zncc), peaks);
    return correlator.device_seconds().kernels;
  };
  seconds_of(1);  // allocates
  const double once = seconds_of(1), mean = seconds_of(20);
  EXPECT_GT(mean, once / 5);
  EXPECT_LT(mean, 2 * once);
}

TEST_F(CudaCorrelator, FindsPlantedPeaks) {
  Correlator correlator("cuda:0");
  Problem<std::uint8_t> problem(
      make_case("planted", Pairing::one_to_one, 50, 50, 31, 31, 61, 61, Shifts::valid({31, 31}, {61, 61})));
  Case& c = problem.c;
  // One image, and the same one moved by (+4, -6): every window shows its reference at a shift that is
  // known.
  c.reference = {31, 31, 200, 220, 1, scattered(50, {31, 31, 160, 180, 1, {}}, 0, 5)};
  problem.reference = random_pixels<std::uint8_t>(c.reference, 6);
  c.search = {61, 61, 200, 220, 1, c.reference.positions};
  problem.search.assign(problem.reference.size(), 128);
  for (int y = 6; y < 200; ++y)
    for (int x = 0; x < 216; ++x) problem.search[(y - 6) * 220 + x + 4] = problem.reference[y * 220 + x];
  for (PatchPosition& p : c.search.positions) p.x -= 15, p.y -= 15;
  std::vector<Peak> peaks;
  correlator.peaks(problem.request(Criterion::zncc), peaks);
  int planted = 0;
  for (std::size_t k = 0; k < peaks.size(); ++k) {
    if (c.reference.positions[k].y < 6) continue;  // moved out of the image
    ++planted;
    EXPECT_TRUE(peaks[k].found);
    EXPECT_EQ(peaks[k].dx, 15 + 4);
    EXPECT_EQ(peaks[k].dy, 15 - 6);
    EXPECT_FLOAT_EQ(peaks[k].score, 1.0f);
    EXPECT_LT(peaks[k].second_score, 0.5f);
  }
  EXPECT_GT(planted, 40);
}

TEST_F(CudaCorrelator, FlatImagesHaveNoPeak) {
  Correlator correlator("cuda");
  Problem<float> problem(
      make_case("flat", Pairing::one_to_one, 3, 3, 9, 9, 17, 17, Shifts::valid({9, 9}, {17, 17})));
  std::fill(problem.search.begin(), problem.search.end(), 0.1f);
  std::vector<Peak> peaks;
  correlator.peaks(problem.request(Criterion::zncc), peaks);
  for (const Peak& peak : peaks) EXPECT_FALSE(peak.found);
  Surfaces surfaces;
  correlator.surfaces(problem.request(Criterion::zncc), surfaces);
  for (std::int64_t i = 0; i < surfaces.pairs * 81; ++i) EXPECT_EQ(surfaces.surface<float>(0)[i], 0.0f);
}

TEST_F(CudaCorrelator, LargeReferencesDoNotWrap) {
  Correlator correlator("cuda");
  Problem<std::uint8_t> problem(make_case("large", Pairing::one_to_one, 1, 1, 300, 280, 303, 284,
                                          Shifts::valid({280, 300}, {284, 303})));
  for (std::uint8_t& p : problem.reference) p = 200 + p % 56;
  for (std::uint8_t& p : problem.search) p = 200 + p % 56;
  check_surfaces(correlator, problem, Criterion::zncc);
  check_peaks(correlator, problem, Criterion::ssd);
}

template <typename T>
void check_many_shifts(Correlator& correlator, const char* variant) {
  Problem<T> problem(make_case("wide", Pairing::one_to_one, 2, 2, 13, 10, 153, 211,
                               Shifts::valid({10, 13}, {211, 153}), 20));
  problem.variant = variant;
  for (const Criterion criterion : scored) {
    if (!can_do(problem, criterion)) continue;
    check_surfaces(correlator, problem, criterion);
    check_peaks(correlator, problem, criterion);
  }
}
TEST_F(CudaCorrelator, ManyShiftsTakeSeveralBlocksPerPair) {
  Correlator correlator("cuda");
  check_many_shifts<std::uint8_t>(correlator, "cuda-u8-tensor");
  check_many_shifts<std::uint8_t>(correlator, "cuda-basic");
  check_many_shifts<std::uint16_t>(correlator, "cuda-u16-tensor");
  check_many_shifts<float>(correlator, "cuda-f32-tensor");
}

template <typename T>
void check_many_windows(Correlator& correlator) {
  Case c = make_case("many", Pairing::one_to_one, 5000, 5000, 9, 8, 13, 12, Shifts::valid({8, 9}, {12, 13}));
  c.search = {13, 12, 1900, 2100, 1, {}};
  c.search.positions = scattered(5000, c.search, 9, 21);
  Problem<T> problem(std::move(c));
  check_peaks(correlator, problem, Criterion::zncc);
}
TEST_F(CudaCorrelator, ManyWindowsOfALargeImageGoByTheirRows) {
  Correlator correlator("cuda");
  check_many_windows<std::uint8_t>(correlator);
  check_many_windows<std::uint16_t>(correlator);
}

TEST_F(CudaCorrelator, SixtyFiveShiftsAreTwoStretchesWithATail) {
  Correlator correlator("cuda");
  for (const auto& [ny, nx] : {std::pair{65, 65}, {66, 66}, {34, 65}, {66, 33}, {33, 34}}) {
    const int h = 32 + ny - 1, w = 31 + nx - 1;
    Problem<std::uint8_t> problem(make_case(std::to_string(ny) + "x" + std::to_string(nx),
                                            Pairing::one_to_one, 3, 3, 32, 31, h, w,
                                            Shifts::valid({31, 32}, {w, h}), 9));
    problem.variant = "cuda-u8-tensor";
    for (const Criterion criterion : scored) {
      check_surfaces(correlator, problem, criterion);
      check_peaks(correlator, problem, criterion);
    }
  }
  Problem<std::uint8_t> large(
      make_case("large", Pairing::one_to_one, 1, 1, 100, 99, 164, 163, Shifts::valid({99, 100}, {163, 164})));
  check_peaks(correlator, large, Criterion::zncc);  // four blocks
}

/// An image without fine detail: neighbours of a peak are the next best shifts.
void make_smooth(const Side& side, std::vector<std::uint8_t>& pixels) {
  for (int y = 0; y < side.image_h * side.images; ++y)
    for (int x = 0; x < side.image_w; ++x)
      pixels[y * side.image_w + x] = static_cast<std::uint8_t>(128 + 60 * std::sin(0.21 * x + 0.002 * x * y) +
                                                               60 * std::cos(0.17 * y - 0.0007 * x * x));
}
/// Copies what lies under each pair's shift (dx, dy)[k] to its reference.
void plant(Problem<std::uint8_t>& problem, const std::vector<std::pair<int, int>>& shifts) {
  const Case& c = problem.c;
  for (std::size_t k = 0; k < shifts.size(); ++k) {
    const PatchPosition from = c.search.positions[k], to = c.reference.positions[k];
    const auto [dx, dy] = shifts[k];
    for (int y = 0; y < c.reference.h; ++y)
      for (int x = 0; x < c.reference.w; ++x)
        problem.reference[(to.image * c.reference.image_h + to.y + y) * c.reference.image_w + to.x + x] =
            problem.search[(from.image * c.search.image_h + from.y + dy + y) * c.search.image_w + from.x +
                           dx + x];
  }
}
/// One-to-one, references of 8x8 that do not share elements.
Problem<std::uint8_t> many_shifts(int pairs, int ny, int nx) {
  const int h = 8 + ny - 1, w = 8 + nx - 1;
  Case c = make_case("parts", Pairing::one_to_one, pairs, pairs, 8, 8, h, w, Shifts::valid({8, 8}, {w, h}));
  c.reference = {8, 8, 8, 8 * pairs, 1, {}};
  for (int k = 0; k < pairs; ++k) c.reference.positions.push_back({0, 8 * k, 0});
  return Problem<std::uint8_t>(std::move(c));
}

TEST_F(CudaCorrelator, PeaksBetweenPartsOfTheShifts) {
  Correlator correlator("cuda");
  std::vector<std::pair<int, int>> shifts{{0, 0}, {129, 130}, {5, 128}};
  for (const int at : {31, 32, 33, 34, 61, 62, 63, 64, 65, 66, 67})
    shifts.push_back({at, at}), shifts.push_back({at, 20}), shifts.push_back({100, at});
  const int pairs = static_cast<int>(shifts.size());
  for (const auto& [ny, nx] : {std::pair{131, 130}, {99, 101}}) {
    Problem<std::uint8_t> problem = many_shifts(pairs, ny, nx);
    make_smooth(problem.c.search, problem.search);
    for (auto& [dx, dy] : shifts) dx = std::min(dx, nx - 1), dy = std::min(dy, ny - 1);
    plant(problem, shifts);
    for (const Criterion criterion : {Criterion::zncc, Criterion::ssd})
      check_peaks(correlator, problem, criterion);
  }
}

TEST_F(CudaCorrelator, TiesBetweenPartsGoToTheFirstShift) {
  Correlator correlator("cuda");
  const std::vector<std::pair<int, int>> first{{3, 7}, {39, 39}, {0, 39}};
  Problem<std::uint8_t> problem = many_shifts(3, 130, 140);
  const int width = problem.c.search.image_w, period = 40;
  for (int y = 0; y < problem.c.search.image_h * problem.c.search.images; ++y)
    for (int x = 0; x < width; ++x)
      problem.search[y * width + x] = problem.search[y % period * width + x % period];
  plant(problem, first);
  std::vector<Peak> peaks;
  for (const Criterion criterion : scored) {
    correlator.peaks(problem.request(criterion), peaks);
    for (std::size_t k = 0; k < first.size(); ++k) {
      EXPECT_EQ(peaks[k].dx, first[k].first);
      EXPECT_EQ(peaks[k].dy, first[k].second);
      EXPECT_EQ(peaks[k].second_score, peaks[k].score);
    }
  }
}

TEST_F(CudaCorrelator, PartsWithoutContrastHaveNoPeak) {
  Correlator correlator("cuda");
  Problem<std::uint8_t> problem = many_shifts(2, 130, 140);
  std::ranges::fill(problem.search, 7);
  std::vector<Peak> peaks;
  correlator.peaks(problem.request(Criterion::zncc), peaks);
  for (const Peak& peak : peaks) {
    EXPECT_FALSE(peak.found);
    EXPECT_EQ(peak.score, 0.0f);
    EXPECT_EQ(peak.second_score, 0.0f);
  }
  check_peaks(correlator, problem, Criterion::ssd);
}

TEST_F(CudaCorrelator, TemplatesShareTheWindowsTheyAreSearchedIn) {
  Correlator correlator("cuda");
  Problem<std::uint8_t> problem(
      make_case("templates", Pairing::n_to_m, 7, 3, 9, 12, 120, 150, Shifts::valid({12, 9}, {150, 120}), 15));
  for (const Criterion criterion : scored) check_peaks(correlator, problem, criterion);
}

TEST_F(CudaCorrelator, EveryVariantFindsPeaksWithMemoryOfItsOwn) {
  Problem<float> problem(
      make_case("peaks", Pairing::n_to_mn, 3, 12, 15, 17, 31, 40, Shifts::valid({17, 15}, {40, 31})));
  int checked = 0;
  for (const CorrelateVariant& variant : correlate_variants()) {
    const auto has = [](const auto& values, auto value) {
      return std::find(values.begin(), values.end(), value) != values.end();
    };
    if (variant.backend != "cuda" || !has(variant.types, ScalarType::f32) ||
        !has(variant.criteria, Criterion::zncc) ||
        (variant.name == "cuda-fft" && !kernels::cufft_problem().empty()))
      continue;
    SCOPED_TRACE(variant.name);
    Correlator fresh("cuda");  // nothing is allocated yet
    problem.variant = variant.name;
    check_peaks(fresh, problem, Criterion::zncc);
    ++checked;
  }
  EXPECT_GE(checked, 5);
}

TEST_F(CudaCorrelator, LargestSubsets) {
  Correlator correlator("cuda");
  Problem<std::uint8_t> problem(
      make_case("255", Pairing::one_to_one, 2, 2, 255, 255, 269, 262, Shifts::valid({255, 255}, {262, 269})));
  problem.variant = "cuda-u8-tensor";
  check_surfaces(correlator, problem, Criterion::zncc);
  check_peaks(correlator, problem, Criterion::ncc);
}

TEST_F(CudaCorrelator, TiesGoToTheFirstShift) {
  Correlator correlator("cuda");
  Problem<std::uint8_t> problem(
      make_case("ties", Pairing::one_to_one, 1, 1, 4, 4, 20, 20, Shifts::valid({4, 4}, {20, 20})));
  for (std::size_t i = 0; i < problem.search.size(); ++i) problem.search[i] = 0;
  std::fill(problem.reference.begin(), problem.reference.end(), 0);
  std::vector<Peak> peaks;
  correlator.peaks(problem.request(Criterion::ssd), peaks);
  EXPECT_TRUE(peaks[0].found);
  EXPECT_EQ(peaks[0].dx, 0);
  EXPECT_EQ(peaks[0].dy, 0);
}

template <typename T>
void expect_same_on(const std::string& devices, Case c, bool masked = false) {
  SCOPED_TRACE(c.name + " on " + devices);
  Problem<T> problem(std::move(c));
  if (masked) problem.mask = make_mask(problem.c.reference, MaskKind::holes);
  const CorrelateRequest request = problem.request(Criterion::zncc);
  Correlator one("cuda:0"), several(devices);
  Surfaces want, got;
  one.surfaces(request, want);
  several.surfaces(request, got);
  EXPECT_EQ(got.bytes, want.bytes);
  std::vector<Peak> want_peaks, got_peaks;
  one.peaks(request, want_peaks);
  several.peaks(request, got_peaks);
  ASSERT_EQ(got_peaks.size(), want_peaks.size());
  EXPECT_EQ(std::memcmp(got_peaks.data(), want_peaks.data(), want_peaks.size() * sizeof(Peak)), 0);
}

TEST_F(CudaCorrelator, ResultsDoNotDependOnTheNumberOfGpus) {
  // One GPU stands for several where there is only one; five share three pairs.
  for (const std::string devices : {"cuda:all", "cuda:0,0", "cuda:0,0,0,0,0"}) {
    const Shifts valid = Shifts::valid({17, 15}, {40, 31});
    expect_same_on<std::uint8_t>(devices, make_case("u8", Pairing::n_to_mn, 5, 35, 15, 17, 31, 40, valid, 9));
    expect_same_on<float>(devices, make_case("f32", Pairing::n_to_m, 3, 7, 15, 17, 31, 40, valid));
    expect_same_on<std::uint16_t>(devices,
                                  make_case("u16", Pairing::one_to_many, 1, 3, 15, 17, 31, 40, valid));
    for (const Pairing pairing : {Pairing::n_to_mn, Pairing::n_to_m})
      expect_same_on<float>(devices, make_case("masked", pairing, 5, 10, 15, 17, 31, 40, valid, 9), true);
  }
}

TEST_F(CudaCorrelator, RefusesWhatItCannotDo) {
  Correlator correlator("cuda");
  Problem<std::uint8_t> problem(
      make_case("c", Pairing::one_to_one, 1, 1, 4, 4, 8, 8, Shifts::valid({4, 4}, {8, 8})));
  CorrelateRequest request = problem.request(Criterion::zncc);
  request.variant = "cuda-no-such-thing";
  std::vector<Peak> peaks;
  EXPECT_THROW(correlator.peaks(request, peaks), UsageError);
  EXPECT_EQ(correlator.device().backend, "cuda");
  EXPECT_GE(correlator.device().compute_capability, 80);
}

}  // namespace
}  // namespace dic::test
