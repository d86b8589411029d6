#include <gtest/gtest.h>

#include <dic/error.hpp>
#include <dic/kernels/filter.hpp>
#include <dic/kernels/reduce.hpp>
#include <vector>

// Tests that launches refuse wrong arguments before they use a GPU.
namespace dic::test {
namespace {

using kernels::Border;
using kernels::GradientOf;

TEST(ConvolutionUsage, RefusesWhatItCannotDo) {
  const auto launch = [](std::size_t nx, std::size_t ny, ScalarType type) {
    kernels::launch_convolution({nullptr, 4, 1, 1}, type, std::vector<float>(nx), std::vector<float>(ny),
                                Border::mirror, {}, nullptr);
  };
  EXPECT_THROW(launch(2, 3, ScalarType::f32), UsageError);
  EXPECT_THROW(launch(3, 0, ScalarType::f32), UsageError);
  EXPECT_THROW(launch(3, 65, ScalarType::f32), UsageError);
  EXPECT_THROW(launch(3, 3, ScalarType::i32), UsageError);
  EXPECT_THROW(
      kernels::launch_gradient({nullptr, 1, 1, 1}, ScalarType::u8, GradientOf::cubic_spline, {}, {}, nullptr),
      UsageError);
}

TEST(LargestUsage, RefusesWhatItCannotDo) {
  EXPECT_THROW(kernels::launch_largest({}, 0, nullptr, nullptr, nullptr), UsageError);
  EXPECT_THROW(kernels::launch_largest({}, 1025, nullptr, nullptr, nullptr), UsageError);
  EXPECT_THROW(kernels::launch_largest({nullptr, 1, 0xffffffff, 0}, 1, nullptr, nullptr, nullptr),
               UsageError);
}

}  // namespace
}  // namespace dic::test
