#include <dic/correlate.hpp>
#include <dic/error.hpp>

#include "correlate/backend.hpp"
#include "support/backend_test.hpp"
#include "support/correlate_cases.hpp"

// Tests the ends of the value ranges, and repeated kernels.
namespace dic {
namespace {

using namespace test;

class Exact : public testing::TestWithParam<CorrelateVariant> {
 protected:
  void SetUp() override { skip_without_device_of(GetParam().backend); }
  const std::string& variant() const { return GetParam().name; }
};

/// Variants that are exact; those of CUDA have their own tests.
std::vector<CorrelateVariant> exact_variants() {
  std::vector<CorrelateVariant> found = correlate_variants();
  std::erase_if(found, [](const CorrelateVariant& v) { return v.backend == "cuda"; });
  return found;
}

/// Variants without transforms, which round sums beyond 53 bits.
std::vector<CorrelateVariant> integer_variants() {
  std::vector<CorrelateVariant> found = exact_variants();
  std::erase_if(found, [](const CorrelateVariant& v) { return v.name == "cpu-fft"; });
  return found;
}

std::string case_name(const testing::TestParamInfo<CorrelateVariant>& tested) {
  std::string name = tested.param.name;
  std::ranges::replace(name, '-', '_');
  return name;
}

using ExactIntegers = Exact;
INSTANTIATE_TEST_SUITE_P(Registered, Exact, testing::ValuesIn(exact_variants()), case_name);
INSTANTIATE_TEST_SUITE_P(Registered, ExactIntegers, testing::ValuesIn(integer_variants()), case_name);

TEST_P(ExactIntegers, SumsOfU8AreModulo32BitsAndOfU16In64) {
  Correlator correlator(GetParam().backend, 1);
  for (const auto& [type, size] :
       {std::pair{ScalarType::u8, 257}, {ScalarType::u8, 300}, {ScalarType::u16, 257}}) {
    TestImage white(size, size, type);
    const std::uint64_t high = type == ScalarType::u8 ? 255 : 65535;
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) white.set(y, x, static_cast<double>(high));
    Case c{.ref_h = size, .ref_w = size, .search_h = size, .search_w = size};
    c.references = c.windows = {{0, 0, 0}};
    const std::uint64_t sum =
        high * high * static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(size);
    Surfaces s;
    correlator.surfaces(request_of(c, white.view, white.view, Criterion::cross_correlation, variant()), s);
    if (type == ScalarType::u8)
      EXPECT_EQ(*s.surface<std::uint32_t>(0), static_cast<std::uint32_t>(sum));
    else
      EXPECT_EQ(*s.surface<std::uint64_t>(0), sum);
  }
}

TEST_P(Exact, OneGreyLevelInALargeBrightTemplateIsContrast) {
  // n * sum of squares needs more than 53 bits here.
  for (ScalarType type : {ScalarType::u8, ScalarType::u16}) {
    const int size = 600;
    TestImage image(size + 3, size + 3, type);
    const double high = type == ScalarType::u8 ? 255 : 65535;
    for (int y = 0; y < size + 3; ++y)
      for (int x = 0; x < size + 3; ++x) image.set(y, x, high - (x == 100 && y == 200));
    Case c{.ref_h = size, .ref_w = size, .search_h = size + 3, .search_w = size + 3, .shifts = {0, 3, 0, 3}};
    c.references = {{0, 2, 1}};
    c.windows = {{0, 0, 0}};
    Correlator correlator(GetParam().backend, 2);
    std::vector<Peak> peaks;
    correlator.peaks(request_of(c, image.view, image.view, Criterion::zncc, variant()), peaks);
    EXPECT_EQ(peaks[0].dx, 2);
    EXPECT_EQ(peaks[0].dy, 1);
    EXPECT_FLOAT_EQ(peaks[0].score, 1);
    EXPECT_NEAR(peaks[0].second_score, 0, 1e-5);
  }
}

// ZNCC from its definition: means first, then deviations, in extended precision.
double zncc_of(const TestImage& reference, const TestImage& search, int dx, int dy) {
  const auto count = static_cast<long double>(reference.view.width) * reference.view.height;
  long double r_mean = 0, s_mean = 0, rr = 0, ss = 0, rs = 0;
  const auto visit = [&](const auto& use) {
    for (int y = 0; y < reference.view.height; ++y)
      for (int x = 0; x < reference.view.width; ++x)
        use(static_cast<long double>(reference.get(y, x)),
            static_cast<long double>(search.get(y + dy, x + dx)));
  };
  visit([&](long double r, long double s) { r_mean += r / count, s_mean += s / count; });
  visit([&](long double r, long double s) {
    rr += (r - r_mean) * (r - r_mean), ss += (s - s_mean) * (s - s_mean), rs += (r - r_mean) * (s - s_mean);
  });
  return static_cast<double>(rs / std::sqrt(rr * ss));
}

TEST_P(Exact, AContrastOfATenMillionthOfTheMean) {
  const int size = 21, reach = 5;
  for (const double mean : {1.0, 1e6, -250.0}) {
    TestImage reference(size, size, ScalarType::f64);
    TestImage search = noise(size + reach, size + reach, ScalarType::f64, 3);
    for (int y = 0; y < size + reach; ++y)
      for (int x = 0; x < size + reach; ++x)
        search.set(y, x, mean * (1 + 1e-9 * search.get(y, x)));  // changes by +- 1e-7
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) reference.set(y, x, search.get(y + 2, x + 3));
    Case c{.ref_h = size,
           .ref_w = size,
           .search_h = size + reach,
           .search_w = size + reach,
           .shifts = {0, reach, 0, reach}};
    c.references = c.windows = {{0, 0, 0}};
    Correlator correlator(GetParam().backend, 1);
    Surfaces s;
    correlator.surfaces(request_of(c, reference.view, search.view, Criterion::zncc, variant()), s);
    for (int dy = 0; dy <= reach; ++dy)
      for (int dx = 0; dx <= reach; ++dx)
        EXPECT_NEAR(s.surface<float>(0)[dy * s.nx + dx], zncc_of(reference, search, dx, dy), 2.1e-6)
            << "at " << mean;
  }
}

void expect_equal(const Peak& peak, const Peak& expected, const std::string& where) {
  EXPECT_EQ(peak.dx, expected.dx) << where;
  EXPECT_EQ(peak.dy, expected.dy) << where;
  EXPECT_EQ(peak.score, expected.score) << where;
  EXPECT_EQ(peak.second_score, expected.second_score) << where;
  for (int i = 0; i < 9; ++i) EXPECT_EQ(peak.neighbourhood[i], expected.neighbourhood[i]) << where;
}

TEST(Exact, FaintCopiesInABrightTextureThatTransformsCannotTellApart) {
  // Rounding to whole grey levels makes the copies differ by 1e-5 in score: less than the transforms' error.
  const int size = 24;
  Correlator correlator("cpu", 2);
  for (unsigned seed = 0; seed < 8; ++seed) {
    const TestImage reference = noise(size, size, ScalarType::u16, seed);
    TestImage search = noise(300, 200, ScalarType::u16, 100 + seed),
              mask = noise(size, size, ScalarType::u8, 7);
    for (int copy = 0; copy < 9; ++copy)
      for (int y = 0; y < size; ++y)
        for (int x = 0; x < size; ++x)
          search.set(20 + 50 * (copy % 3) + y, 30 + 90 * (copy / 3) + x,
                     std::round(reference.get(y, x) / (300 + copy)));
    for (int y = 0; y < size; ++y)
      for (int x = 0; x < size; ++x) mask.set(y, x, mask.get(y, x) > 60);
    Case c{.ref_h = size, .ref_w = size, .search_h = 200, .search_w = 300};
    c.shifts = Shifts::valid({size, size}, {300, 200});
    c.references = c.windows = {{0, 0, 0}};
    for (const Criterion criterion : {Criterion::zncc, Criterion::ncc, Criterion::ssd})
      for (const bool masked : {false, true}) {
        std::vector<Peak> expected, peaks;
        for (auto [variant, out] : {std::pair{"cpu-direct", &expected}, std::pair{"cpu-fft", &peaks}}) {
          CorrelateRequest request = request_of(c, reference.view, search.view, criterion, variant);
          if (masked) request.reference_mask = {&mask.view, 1};
          correlator.peaks(request, *out);
        }
        expect_equal(peaks[0], expected[0], std::string(to_string(criterion)) + (masked ? ", masked" : ""));
      }
  }
}

TEST(RepeatedKernels, ChangeNothingOnTheCpu) {
  const TestImage image = noise(40, 40, ScalarType::u8, 1);
  Case c{.ref_h = 9, .ref_w = 9, .search_h = 12, .search_w = 12, .shifts = {0, 3, 0, 3}};
  c.references = c.windows = {{0, 0, 0}};
  const CorrelateRequest request = request_of(c, image.view, image.view, Criterion::zncc, "");
  Correlator correlator("cpu", 1);
  Surfaces once, repeated;
  correlator.surfaces(request, once);
  correlator.repeat_kernels(3);
  correlator.surfaces(request, repeated);
  EXPECT_EQ(repeated.bytes, once.bytes);
  EXPECT_EQ(correlator.device_seconds().kernels, 0);
}
TEST(RepeatedKernels, RunAtLeastOnce) {
  Correlator correlator("cpu", 1);
  EXPECT_THROW(correlator.repeat_kernels(0), dic::UsageError);
}

}  // namespace
}  // namespace dic
