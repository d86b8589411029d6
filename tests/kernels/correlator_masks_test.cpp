#include <dic/correlate.hpp>
#include <dic/kernels/workspace.hpp>

#include "correlate/backend.hpp"
#include "kernels/correlator_support.hpp"
#include "kernels/ncc_cases.hpp"
#include "support/gpu_test.hpp"

// Tests scores and peaks of masked references against their definition.
namespace dic::test {
namespace {

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
  check_all_criteria<std::uint8_t>(c, "cuda-masked");
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
  check_all_criteria<float>(c, "cuda-masked");
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

}  // namespace
}  // namespace dic::test
