#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/correlator_support.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Tests variants that round their products: half floats, and split floats.
namespace dic::test {
namespace {

/// Largest error of cuda-f16-tensor: every step rounds by at most 2^-20 of the sum of a part of up to 96
/// steps, and together the sums of the parts are at most sqrt(1 + (offset / deviation)^2) of the score's
/// norm, for a window whose mean is `offset` from the middle of the range.
double half_bound(const Side& reference, double offset, double deviation) {
  const double steps = ((reference.h + 4) / 4) * ((reference.w + 7) / 4);
  return std::ldexp(std::min(steps, 96.0) + steps / 96, -20) * std::hypot(1, offset / deviation);
}

TEST_F(CudaCorrelator, HalvesOf12And10Bit) {
  Correlator correlator("cuda");
  for (const int bits : {12, 10}) {
    for (const Case& c : ncc_cases()) {
      if (c.pairs * c.shifts.count() * c.reference.h * c.reference.w > 30'000'000) continue;
      if (c.reference.h * c.reference.w < 30) continue;  // the deviation of a few elements may have any size
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

/// Calls check(problem) with images of `bits` for all paths of the 16-bit tensor-core variants: one or
/// several warps per pair, references of whole and partial steps of 16, few rows, and rows that warps share.
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
      // An outlier at the other end of the range makes the mean far from the middle of the occurring values.
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
    if (c.reference.h * c.reference.w < 30) continue;  // the deviation of a few elements may have any size
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
  // Compiled shapes, with and without known strides, with one or several blocks per pair.
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
    // A frame of such values around all windows that begin in one column.
    for (int y = 0; y < c.search.image_h; ++y)
      problem.search[static_cast<std::size_t>(y) * c.search.image_w + 9] = value;
    for (int y = 0; y < c.search.image_h; ++y)
      problem.search[static_cast<std::size_t>(y) * c.search.image_w + 30] = value;
    check_split(correlator, problem);
  }
}

TEST_F(CudaCorrelator, HalvesFindFlatWindows) {
  Correlator correlator("cuda");
  // 32x32 elements of 12 bit: the largest size whose squares about the middle of the range fit into 32 bits,
  // except for zeros.
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

}  // namespace
}  // namespace dic::test
