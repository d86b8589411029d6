#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/correlator_support.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Tests scores and peaks of Correlator("cuda") against their definitions in float64.
namespace dic::test {
namespace {

TEST_F(CudaCorrelator, U8) {
  Correlator c("cuda");
  check_all_criteria<std::uint8_t>(c, "cuda-u8-tensor");
  check_all_criteria<std::uint8_t>(c, "cuda-few-shifts");
  check_all_criteria<std::uint8_t>(c, "cuda-basic");
}
TEST_F(CudaCorrelator, U16) {
  Correlator c("cuda");
  check_all_criteria<std::uint16_t>(c, "cuda-u16-tensor");
  check_all_criteria<std::uint16_t>(c, "cuda-basic");
}
TEST_F(CudaCorrelator, I32) {
  Correlator c("cuda");
  check_all_criteria<std::int32_t>(c);
}
TEST_F(CudaCorrelator, F32) {
  Correlator c("cuda");
  check_all_criteria<float>(c);
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
  // Values that are large compared with their contrast, and that grow from pixel to pixel.
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
  // Sums that slide out of the image's content must end at zero.
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
  check_all_criteria<double>(c);
}

struct SizeAndShifts {
  int h, w, ny, nx;
};
/// Checks scattered pairs of one and of several images, with windows inside and partly outside the image,
/// against the definition.
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
  // Sizes around the 8 rows and 32 columns of a step, the compiled numbers of shifts, and the largest.
  constexpr SizeAndShifts sizes[]{{31, 31, 5, 5}, {7, 7, 5, 5}, {8, 32, 9, 9},    {9, 33, 8, 6},
                                  {16, 15, 2, 7}, {3, 5, 9, 8}, {51, 21, 3, 4},   {33, 64, 7, 7},
                                  {25, 65, 1, 9}, {1, 1, 9, 9}, {128, 127, 5, 5}, {131, 140, 6, 5}};
  check_scattered(correlator, "cuda-few-shifts", only_small_tests() ? 5 : 40, sizes);
}

TEST_F(CudaCorrelator, SparseProductsOfAllSizes) {
  Correlator correlator("cuda");
  // Sizes around the 32 columns of a reference, its tiles of 32 rows, and the 16, 32 and 33 shifts of
  // compiled shapes.
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

}  // namespace
}  // namespace dic::test
