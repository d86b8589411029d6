#include <algorithm>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/correlator_support.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Tests repeated kernels, several GPUs and wrong requests.
namespace dic::test {
namespace {

/// Expects equal integers, and floats that are equal but for the order of some variants' sums.
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

/// Three runs of the kernels in a call must leave the result of one run, without adding to it.
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
  const int windows = only_small_tests() ? 4 : 4000;  // 4000 windows have surfaces of 1.3 GB
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
  seconds_of(1);  // the first call allocates
  const double once = seconds_of(1), mean = seconds_of(20);
  EXPECT_GT(mean, once / 5);
  EXPECT_LT(mean, 2 * once);
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
  // One GPU, listed several times, stands for several GPUs; five share three pairs.
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
