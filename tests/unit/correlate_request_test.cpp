#include <cstring>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <limits>

#include "core/cuda_devices.hpp"
#include "correlate/backend.hpp"
#include "support/correlate_cases.hpp"
#include "support/requirements.hpp"

// Requests that contradict themselves are refused.
namespace dic {
namespace {

using namespace test;

class Refused : public ::testing::Test {
 protected:
  Refused() : reference_(noise(30, 30, ScalarType::u8, 1)), search_(noise(40, 40, ScalarType::u8, 2)) {
    case_.ref_h = case_.ref_w = 9;
    case_.search_h = case_.search_w = 13;
    case_.shifts = {0, 4, 0, 4};
    case_.references = {{0, 1, 1}, {0, 5, 5}};
    case_.windows = {{0, 1, 1}, {0, 5, 5}};
  }
  CorrelateRequest request(const std::string& variant = "") const {
    return request_of(case_, reference_.view, search_.view, Criterion::zncc, variant);
  }
  void expect_refused(const CorrelateRequest& r) {
    std::vector<Peak> peaks;
    EXPECT_THROW(correlator_.peaks(r, peaks), dic::UsageError);
  }

  TestImage reference_, search_;
  Case case_;
  Correlator correlator_{"cpu", 1};
};

TEST_F(Refused, NothingWrongIsAccepted) {
  std::vector<Peak> peaks;
  EXPECT_NO_THROW(correlator_.peaks(request(), peaks));
}
TEST_F(Refused, ReferencesOutsideTheirImage) {
  case_.references[1] = {0, 22, 5};
  expect_refused(request());
  case_.references[1] = {0, 5, -1};
  expect_refused(request());
}
TEST_F(Refused, CountsThatDoNotFitTheForm) {
  case_.windows.push_back({0, 0, 0});
  expect_refused(request());
  case_.pairing = Pairing::one_to_many;
  expect_refused(request());
  case_.pairing = Pairing::n_to_mn;
  expect_refused(request());
}
TEST_F(Refused, MixedTypes) {
  const TestImage other = noise(40, 40, ScalarType::u16, 3);
  expect_refused(request_of(case_, reference_.view, other.view, Criterion::zncc, ""));
}
TEST_F(Refused, ImagesThatDoNotExist) {
  case_.windows[0].image = 1;
  expect_refused(request());
  case_.windows[0].image = -1;
  expect_refused(request());
}
TEST_F(Refused, EmptyMatrices) {
  case_.ref_w = 0;
  expect_refused(request());
}
TEST_F(Refused, ShiftsBeyondAllReason) {
  case_.shifts.dx_max = std::numeric_limits<int>::max();
  expect_refused(request());
}
TEST_F(Refused, MasksOfAnotherSizeTypeOrNumber) {
  const TestImage small = noise(29, 30, ScalarType::u8, 4), wide = noise(30, 30, ScalarType::u16, 4);
  CorrelateRequest r = request();
  r.reference_mask = {&small.view, 1};
  expect_refused(r);
  r.reference_mask = {&wide.view, 1};
  expect_refused(r);
  const ImageView two[] = {reference_.view, reference_.view};
  r.reference_mask = two;
  expect_refused(r);
}
TEST_F(Refused, PeaksOfSums) {
  CorrelateRequest r = request();
  r.criterion = Criterion::cross_correlation;
  expect_refused(r);
}
TEST_F(Refused, VariantsThatCannotOrDoNotExist) {
  expect_refused(request("cpu-magic"));
  const TestImage reference = noise(30, 30, ScalarType::i32, 4), search = noise(40, 40, ScalarType::i32, 5);
  expect_refused(request_of(case_, reference.view, search.view, Criterion::zncc, "cpu-fft"));
}
TEST_F(Refused, DevicesThatDoNotExist) {
  EXPECT_THROW(Correlator("tpu"), dic::UsageError);
  EXPECT_THROW(Correlator("cuda:x"), dic::UsageError);
  EXPECT_THROW(Correlator("opencl:x"), dic::UsageError);
  EXPECT_THROW(Correlator("cpu:1"), dic::UsageError);
}

}  // namespace
}  // namespace dic
