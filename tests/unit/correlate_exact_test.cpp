#include <dic/correlate.hpp>
#include <dic/error.hpp>

#include "core/cuda_devices.hpp"
#include "correlate/backend.hpp"
#include "support/correlate_cases.hpp"
#include "support/requirements.hpp"

// The ends of the ranges, and kernels that are repeated.
namespace dic {
namespace {

using namespace test;

TEST(Exact, SumsOfU8AreModulo32BitsAndOfU16In64) {
  Correlator correlator("cpu", 1);
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
    for (const char* variant : {"cpu-naive", "cpu-direct"}) {
      Surfaces s;
      correlator.surfaces(request_of(c, white.view, white.view, Criterion::cross_correlation, variant), s);
      if (type == ScalarType::u8)
        EXPECT_EQ(*s.surface<std::uint32_t>(0), static_cast<std::uint32_t>(sum)) << variant;
      else
        EXPECT_EQ(*s.surface<std::uint64_t>(0), sum) << variant;
    }
  }
}

TEST(Exact, OneGreyLevelInALargeBrightTemplateIsContrast) {
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
    Correlator correlator("cpu", 2);
    for (const char* variant : {"cpu-direct", "cpu-fft"}) {
      std::vector<Peak> peaks;
      correlator.peaks(request_of(c, image.view, image.view, Criterion::zncc, variant), peaks);
      EXPECT_EQ(peaks[0].dx, 2) << variant;
      EXPECT_EQ(peaks[0].dy, 1);
      EXPECT_FLOAT_EQ(peaks[0].score, 1);
      EXPECT_NEAR(peaks[0].second_score, 0, 1e-5);
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
