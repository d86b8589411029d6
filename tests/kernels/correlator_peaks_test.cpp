#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/correlator_support.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Tests peaks: ties, flat images, parts of the shifts, large shapes.
namespace dic::test {
namespace {

TEST_F(CudaCorrelator, FindsPlantedPeaks) {
  Correlator correlator("cuda:0");
  Problem<std::uint8_t> problem(
      make_case("planted", Pairing::one_to_one, 50, 50, 31, 31, 61, 61, Shifts::valid({31, 31}, {61, 61})));
  Case& c = problem.c;
  // An image and its copy moved by (+4, -6): every window shows its reference at a known shift.
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
    if (c.reference.positions[k].y < 6) continue;  // the content moved out of the image
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

/// Removes fine detail, so that the neighbours of a peak are the next best shifts.
void make_smooth(const Side& side, std::vector<std::uint8_t>& pixels) {
  for (int y = 0; y < side.image_h * side.images; ++y)
    for (int x = 0; x < side.image_w; ++x)
      pixels[y * side.image_w + x] = static_cast<std::uint8_t>(128 + 60 * std::sin(0.21 * x + 0.002 * x * y) +
                                                               60 * std::cos(0.17 * y - 0.0007 * x * x));
}
/// Copies the window's elements at each pair's shift (dx, dy)[k] to its reference.
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
/// A one-to-one problem with 8x8 references that do not share elements.
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

}  // namespace
}  // namespace dic::test
