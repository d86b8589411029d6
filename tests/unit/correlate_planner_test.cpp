#include <dic/correlate.hpp>

#include "core/cuda_devices.hpp"
#include "correlate/backend.hpp"
#include "support/correlate_cases.hpp"
#include "support/requirements.hpp"

// Tests the planner's choices on a CPU.
namespace dic {
namespace {

using namespace test;

TEST(Planner, ChoosesByShape) {
  const dic::DeviceProperties cpu{.backend = "cpu", .threads = 2, .compute_capability = 0};
  struct Row {
    ScalarType type;
    Criterion criterion;
    int ref, shifts;
    bool masked;
    const char* variant;
  };
  for (const Row& row :
       {Row{ScalarType::u8, Criterion::zncc, 33, 5, false, "cpu-direct"},
        Row{ScalarType::u8, Criterion::zncc, 33, 65, false, "cpu-direct"},
        Row{ScalarType::u8, Criterion::zncc, 21, 108, false, "cpu-direct"},
        Row{ScalarType::f32, Criterion::zncc, 33, 5, false, "cpu-direct"},
        Row{ScalarType::u8, Criterion::zncc, 64, 1985, false, "cpu-fft"},
        Row{ScalarType::f32, Criterion::zncc, 64, 1985, false, "cpu-fft"},
        Row{ScalarType::u8, Criterion::zncc, 8, 1985, false, "cpu-direct"},
        Row{ScalarType::u8, Criterion::zncc, 64, 1985, true, "cpu-fft"},
        Row{ScalarType::i32, Criterion::zncc, 64, 1985, false, "cpu-direct"},
        Row{ScalarType::u16, Criterion::cross_correlation, 1000, 2000, false, "cpu-direct"}}) {
    dic::CorrelateShape shape{.type = row.type,
                              .criterion = row.criterion,
                              .reference = {row.ref, row.ref},
                              .search = {row.ref + row.shifts - 1, row.ref + row.shifts - 1},
                              .shifts = {0, row.shifts - 1, 0, row.shifts - 1},
                              .references = 1,
                              .pairs = 1,
                              .masked = row.masked};
    const dic::CorrelatePlan plan = dic::plan_correlation(shape, cpu);
    EXPECT_EQ(plan.variant, row.variant) << to_string(row.type) << " " << row.ref << " " << row.shifts;
    EXPECT_FALSE(plan.reason.empty());
  }
}

TEST(Planner, SeesTheLargestBitDepth) {
  TestImage reference = noise(20, 20, ScalarType::u16, 1), search = noise(20, 20, ScalarType::u16, 2);
  Case c{.ref_h = 9, .ref_w = 9, .search_h = 12, .search_w = 12, .shifts = {0, 3, 0, 3}};
  c.references = c.windows = {{0, 0, 0}};
  const auto depth = [&](int of_reference, int of_search) {
    reference.view.bit_depth = of_reference;
    search.view.bit_depth = of_search;
    const auto request = request_of(c, reference.view, search.view, Criterion::zncc, "");
    return dic::correlate::check_request(request).shape().bit_depth;
  };
  EXPECT_EQ(depth(10, 12), 12);
  EXPECT_EQ(depth(12, 10), 12);
  EXPECT_EQ(depth(0, 12), 0) << "0 = all 16 bits";
  EXPECT_EQ(depth(12, 0), 0);
}

TEST(Planner, SaysWhatRan) {
  const TestImage image = noise(40, 40, ScalarType::u8, 1);
  Case c{.ref_h = 9, .ref_w = 9, .search_h = 12, .search_w = 12, .shifts = {0, 3, 0, 3}};
  c.references = c.windows = {{0, 0, 0}};
  Correlator correlator("cpu", 1);
  std::vector<Peak> peaks;
  correlator.peaks(request_of(c, image.view, image.view, Criterion::zncc, ""), peaks);
  EXPECT_EQ(correlator.last_plan().variant, "cpu-direct");
  EXPECT_EQ(correlator.device().backend, "cpu");
}

}  // namespace
}  // namespace dic
