#include <gtest/gtest.h>

#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <string>

// Tests the planner's choice of a variant for a shape on a GPU of given properties. Needs no GPU.
namespace dic::test {
namespace {

CorrelateShape shape_of(ScalarType type, int points, int h, int r) {
  return {.type = type,
          .reference = {h, h},
          .search = {h + 2 * r, h + 2 * r},
          .shifts = Shifts::valid({h, h}, {h + 2 * r, h + 2 * r}),
          .references = points,
          .pairs = points};
}

TEST(CudaPlanner, ChoosesByShapeAlone) {
  const DeviceProperties h100{.backend = "cuda", .threads = 1, .compute_capability = 90};
  const auto variant = [&](const CorrelateShape& shape) { return plan_correlation(shape, h100).variant; };
  EXPECT_EQ(variant(shape_of(ScalarType::u8, 10000, 31, 15)), "cuda-u8-tensor");
  EXPECT_EQ(variant(shape_of(ScalarType::u8, 1, 64, 2016)), "cuda-u8-tensor");
  EXPECT_EQ(variant(shape_of(ScalarType::u8, 1, 300, 4)), "cuda-block-per-shift") << "sums need 64 bits";
  EXPECT_EQ(variant(shape_of(ScalarType::f32, 10000, 31, 15)), "cuda-f32-tensor");
  EXPECT_EQ(variant(shape_of(ScalarType::f64, 1, 32, 32)), "cuda-warp-per-shift");
  EXPECT_EQ(variant(shape_of(ScalarType::i32, 10000, 31, 15)), "cuda-registers");
  const CorrelateShape large = shape_of(ScalarType::u8, 100, 201, 10);
  EXPECT_EQ(variant(large), "cuda-u8-tensor");
  EXPECT_EQ(plan_correlation(large, {.backend = "cuda", .compute_capability = 89}).variant, "cuda-dp4a");
  CorrelateShape masked = shape_of(ScalarType::u8, 100, 31, 15);
  masked.masked = true;
  EXPECT_EQ(variant(masked), "cuda-masked");
  masked.reference.width = 5000, masked.search.width = 5100;
  EXPECT_THROW(plan_correlation(masked, h100), UsageError);
}

TEST(CudaPlanner, ChoosesByBitDepthAndSharedMemory) {
  const auto variant = [](CorrelateShape shape, int bit_depth, Criterion criterion, int compute_capability) {
    shape.bit_depth = bit_depth;
    shape.criterion = criterion;
    return plan_correlation(shape, {.backend = "cuda", .compute_capability = compute_capability}).variant;
  };
  const CorrelateShape usual = shape_of(ScalarType::u16, 10000, 31, 15);
  EXPECT_EQ(variant(usual, 12, Criterion::zncc, 90), "cuda-f16-tensor");
  EXPECT_EQ(variant(usual, 10, Criterion::zncc, 80), "cuda-f16-tensor");
  EXPECT_EQ(variant(usual, 13, Criterion::zncc, 90), "cuda-u16-tensor");
  EXPECT_EQ(variant(usual, 0, Criterion::zncc, 90), "cuda-u16-tensor") << "nothing said: all 16 bits";
  EXPECT_EQ(variant(usual, 12, Criterion::cross_correlation, 90), "cuda-u16-tensor") << "sums are exact";
  EXPECT_EQ(variant(usual, 12, Criterion::ssd, 90), "cuda-u16-tensor") << "ssd cancels";
  const CorrelateShape large = shape_of(ScalarType::u16, 10000, 129, 15);
  EXPECT_EQ(variant(large, 0, Criterion::zncc, 90), "cuda-u16-tensor");
  EXPECT_EQ(variant(large, 0, Criterion::zncc, 89), "cuda-registers") << "99 KB of shared memory";
  EXPECT_EQ(variant(shape_of(ScalarType::u16, 10000, 190, 5), 0, Criterion::zncc, 90), "cuda-registers")
      << "sums need more than 32 bits";
}

TEST(CudaPlanner, TakesTensorCoresForScoresOfFloatsWhileSharedMemoryLasts) {
  const auto variant = [](int points, int h, int r, int compute_capability = 90) {
    return plan_correlation(shape_of(ScalarType::f32, points, h, r),
                            {.backend = "cuda", .compute_capability = compute_capability, .cufft = true})
        .variant;
  };
  EXPECT_EQ(variant(1, 31, 15), "cuda-f32-tensor");
  EXPECT_EQ(variant(10000, 64, 32), "cuda-f32-tensor");
  EXPECT_EQ(variant(10000, 101, 15), "cuda-f32-tensor");
  EXPECT_EQ(variant(10000, 201, 20), "cuda-fft");
  EXPECT_EQ(variant(10000, 31, 15, 89), "cuda-f32-tensor");
  EXPECT_EQ(variant(10000, 50, 28, 89), "cuda-f32-scores") << "99 KB of shared memory";
  EXPECT_EQ(variant(10000, 61, 31, 89), "cuda-fft");
  EXPECT_EQ(variant(10, 61, 31, 89), "cuda-f32-scores") << "cuFFT is slow to start";
}

TEST(CudaPlanner, TakesTransformsForSumsOfFloats) {
  const auto full = [](ScalarType type, int size, int pairs, bool cufft) {
    const CorrelateShape shape{.type = type,
                               .criterion = Criterion::cross_correlation,
                               .reference = {size, size},
                               .search = {size, size},
                               .shifts = Shifts::full({size, size}, {size, size}),
                               .references = pairs,
                               .pairs = pairs};
    return plan_correlation(shape, {.backend = "cuda", .compute_capability = 90, .cufft = cufft}).variant;
  };
  EXPECT_EQ(full(ScalarType::f32, 16, 1, true), "cuda-block-per-shift");
  EXPECT_EQ(full(ScalarType::f32, 16, 4, true), "cuda-warp-per-shift");
  EXPECT_EQ(full(ScalarType::f32, 24, 1, true), "cuda-block-per-shift");
  EXPECT_EQ(full(ScalarType::f32, 16, 8, false), "cuda-fft-fused");
  EXPECT_EQ(full(ScalarType::f32, 64, 1, false), "cuda-fft-fused");
  EXPECT_EQ(full(ScalarType::f32, 128, 1, true), "cuda-fft-split");
  EXPECT_EQ(full(ScalarType::f32, 400, 1, true), "cuda-fft");
  EXPECT_EQ(full(ScalarType::f32, 400, 1, false), "cuda-registers");
  EXPECT_EQ(full(ScalarType::f64, 100, 1, true), "cuda-fft");
  EXPECT_EQ(full(ScalarType::f64, 32, 8, true), "cuda-fft");
  EXPECT_EQ(full(ScalarType::f64, 24, 64, true), "cuda-registers");
  EXPECT_EQ(full(ScalarType::f64, 32, 1, true), "cuda-block-per-shift") << "cuFFT is slow to start";
  EXPECT_EQ(full(ScalarType::u8, 32, 1, true), "cuda-block-per-shift");
  EXPECT_EQ(full(ScalarType::u8, 64, 1, true), "cuda-u8-tensor");
  EXPECT_EQ(full(ScalarType::u8, 24, 64, true), "cuda-u8-tensor");
  EXPECT_EQ(full(ScalarType::u8, 400, 1, true), "cuda-fft") << "exact through f64";
  EXPECT_EQ(full(ScalarType::u8, 400, 1, false), "cuda-dp4a");
}

TEST(CudaDevice, ThatDoesNotExistIsNamed) {
  try {
    Correlator correlator("cuda:97");
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.find("cuda:97") != std::string::npos || message.find("no GPU") != std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace dic::test
