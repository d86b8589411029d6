#include "common/row_tasks.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace dic::kernels {
namespace {

/// Number of visits of each row y of the fixed matrix at each shift.
using Visits = std::map<std::pair<int, int>, int>;

Visits overlaps(int moving_h, int fixed_h, int shift_min, int shifts) {
  Visits visits;
  for (int k = 0; k < shifts; ++k)
    for (int y = 0; y < fixed_h; ++y)
      if (y + shift_min + k >= 0 && y + shift_min + k < moving_h) ++visits[{k, y}];
  return visits;
}

struct Heights {
  int moving, fixed, shift_min, shifts;
};
std::vector<Heights> heights() {
  std::vector<Heights> all;
  for (const int moving : {1, 2, 7, 16, 33})
    for (const int fixed : {1, 5, 8, 31})
      for (const auto& [shift_min, shifts] : {std::pair{-(fixed - 1), moving + fixed - 1}, std::pair{0, 1},
                                              std::pair{-50, 120}, std::pair{2, 9}, std::pair{-70, 20}})
        all.push_back({moving, fixed, shift_min, shifts});
  return all;
}

class Split : public testing::TestWithParam<RowSplit> {};

TEST_P(Split, VisitsEveryRowOfEveryOverlapOnce) {
  for (const auto& [moving, fixed, shift_min, shifts] : heights()) {
    for (const int rows : {1, 3, 8, 40}) {
      const RowTasks tasks(GetParam(), rows, moving, fixed, shift_min, shifts);
      Visits visits;
      for (std::int64_t id = 0; id < tasks.count(); ++id) {
        const RowTask task = tasks.task(id);
        EXPECT_TRUE(GetParam() != RowSplit::triangle || task.begin < task.end) << "an idle task";
        EXPECT_TRUE(task.end - task.begin <= rows);
        for (int y = task.begin; y < task.end; ++y) ++visits[{task.shift, y}];
      }
      EXPECT_EQ(visits, overlaps(moving, fixed, shift_min, shifts))
          << moving << " " << fixed << " " << rows << " " << shift_min << " " << shifts;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Split, testing::Values(RowSplit::rectangle, RowSplit::triangle),
                         [](const auto& split) {
                           return std::string(split.param == RowSplit::rectangle ? "Rectangle" : "Triangle");
                         });

TEST(OverlapTasks, HoldAllRowsOfTheirOverlaps) {
  for (const auto& [moving, fixed, shift_min, shifts] : heights()) {
    for (const int per_task : {1, 3, 8}) {
      const OverlapTasks tasks(moving, fixed, shift_min, shifts, per_task);
      Visits visits;
      for (std::int64_t id = 0; id < tasks.count(); ++id) {
        const RowTask task = tasks.task(id);
        for (int k = 0; k < per_task && task.shift + k < shifts; ++k)
          for (int y = task.begin - k; y < task.end - k; ++y)
            if (y >= 0 && y < fixed && y + shift_min + task.shift + k < moving) ++visits[{task.shift + k, y}];
      }
      EXPECT_EQ(visits, overlaps(moving, fixed, shift_min, shifts))
          << moving << " " << fixed << " " << per_task << " " << shift_min << " " << shifts;
    }
  }
}

}  // namespace
}  // namespace dic::kernels
