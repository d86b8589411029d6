#include <gtest/gtest.h>

#include <algorithm>
#include <dic/image_io.hpp>
#include <iterator>

#include "bench/bench.hpp"
#include "bench/inputs.hpp"
#include "bench/timing.hpp"
#include "bench/truth.hpp"
#include "support/bench_cases.hpp"

// Tests that the check of results accepts right results only.
namespace dic::bench {
namespace {

class BenchTruth : public testing::TestWithParam<std::tuple<Pairing, ScalarType, Criterion, bool>> {
 protected:
  static Case case_with(Output output) {
    const auto [pairing, type, criterion, masks] = GetParam();
    Case c = small_case(pairing, type, criterion, output);
    c.masks = masks;
    return c;
  }
};

TEST_P(BenchTruth, AcceptsWhatIsRightAndNothingElse) {
  const Inputs inputs(case_with(Output::surfaces), 5);
  const Truth truth(inputs.request(), 5);
  Correlator correlator("cpu", 1);
  Surfaces surfaces;
  correlator.surfaces(inputs.request(), surfaces);
  const Check right = truth.check(surfaces);
  EXPECT_TRUE(right.ok) << right.max_difference;
  EXPECT_EQ(right.compared, surfaces.pairs * 7 * 9);

  // The lowest bit of an integer counts; of a float, the bits above the rounding.
  Surfaces tampered = surfaces;
  const std::size_t element = tampered.bytes.size() / (surfaces.pairs * 7 * 9);
  const bool is_float = surfaces.type == Surfaces::Type::f32 || surfaces.type == Surfaces::Type::f64;
  tampered.bytes[element * 40 + (is_float ? element - 2 : 0)] ^= std::byte{0x10};
  EXPECT_FALSE(truth.check(tampered).ok);

  std::fill(surfaces.bytes.end() - static_cast<std::ptrdiff_t>(element), surfaces.bytes.end(),
            std::byte{0xff});
  EXPECT_FALSE(truth.check(surfaces).ok);  // the last value was never written
}

TEST_P(BenchTruth, AcceptsRightPeaksAndNothingElse) {
  if (std::get<Criterion>(GetParam()) == Criterion::cross_correlation) return;
  const Inputs inputs(case_with(Output::peaks), 5);
  const Truth truth(inputs.request(), 5);
  Correlator correlator("cpu", 1);
  std::vector<Peak> peaks;
  correlator.peaks(inputs.request(), peaks);
  EXPECT_TRUE(truth.check(peaks).ok);

  const auto refused = [&](auto&& change) {
    std::vector<Peak> tampered = peaks;
    change(tampered.back());
    return !truth.check(tampered).ok;
  };
  EXPECT_TRUE(refused([](Peak& p) { p.dx = p.dx == 0 ? 1 : p.dx - 1; }));
  EXPECT_TRUE(refused([](Peak& p) { p.score *= 0.99F; }));
  EXPECT_TRUE(refused([](Peak& p) { p.found = false; }));
  EXPECT_TRUE(refused([](Peak& p) { p.neighbourhood[4] *= 1.01F; }));
  EXPECT_TRUE(refused([](Peak& p) { p = Peak{.dx = 100}; }));
}

const auto all_types =
    testing::Values(ScalarType::u8, ScalarType::u16, ScalarType::i32, ScalarType::f32, ScalarType::f64);
const auto all_criteria =
    testing::Values(Criterion::cross_correlation, Criterion::zncc, Criterion::ncc, Criterion::ssd);
std::string name_of(const testing::TestParamInfo<BenchTruth::ParamType>& tested) {
  const auto& [pairing, type, criterion, masks] = tested.param;
  const auto text = [](auto value) { return std::string(to_string(value)); };
  return text(pairing) + "_" + text(type) + "_" + text(criterion) + (masks ? "_masked" : "");
}
INSTANTIATE_TEST_SUITE_P(All, BenchTruth,
                         testing::Combine(testing::Values(Pairing::one_to_one, Pairing::one_to_many,
                                                          Pairing::n_to_mn, Pairing::n_to_m),
                                          all_types, all_criteria, testing::Values(false)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Masked, BenchTruth,
                         testing::Combine(testing::Values(Pairing::n_to_mn), all_types, all_criteria,
                                          testing::Values(true)),
                         name_of);

TEST(BenchTruthOfMasks, OtherElementsCount) {
  Case c = small_case(Pairing::one_to_one, ScalarType::u8, Criterion::zncc, Output::surfaces);
  c.masks = true;
  const Inputs inputs(c, 5);
  CorrelateRequest request = inputs.request();
  const Truth truth(request, 5);
  request.reference_mask = {};
  Correlator correlator("cpu", 1);
  Surfaces surfaces;
  correlator.surfaces(request, surfaces);
  EXPECT_FALSE(truth.check(surfaces).ok);
}

TEST(BenchTruthOfPeaks, ALocalMaximumIsNotThePeak) {
  Case c = small_case(Pairing::one_to_one, ScalarType::u8, Criterion::zncc, Output::peaks);
  const Inputs inputs(c, 9);
  const Truth truth(inputs.request(), 9);
  // A consistent answer, but for a rectangle of shifts without the true peak.
  Correlator correlator("cpu", 1);
  std::vector<Peak> peaks, elsewhere;
  CorrelateRequest request = inputs.request();
  correlator.peaks(request, peaks);
  const Surfaces surfaces = [&] {
    Surfaces s;
    correlator.surfaces(request, s);
    return s;
  }();
  Peak& peak = peaks[0];
  peak.dx = (peak.dx + 4) % 9;
  for (int k = 0; k < 9; ++k) {
    const int dy = peak.dy + k / 3 - 1, dx = peak.dx + k % 3 - 1;
    const bool inside = dy >= 0 && dy < 7 && dx >= 0 && dx < 9;
    peak.neighbourhood[k] = surfaces.surface<float>(0)[inside ? dy * 9 + dx : peak.dy * 9 + peak.dx];
  }
  peak.score = peak.neighbourhood[4];
  EXPECT_FALSE(truth.check(peaks).ok);
}

}  // namespace
}  // namespace dic::bench
