#include "common/row_tasks.hpp"

#include <gtest/gtest.h>

#include <map>

namespace dic::kernels {
namespace {

/// How often each row y of the fixed matrix is worked on at each shift.
using Visits = std::map<std::pair<int, int>, int>;

Visits overlaps(int moving_h, int fixed_h, int shift_min, int shifts) {
  Visits visits;
  for (int k = 0; k < shifts; ++k)
    for (int y = 0; y < fixed_h; ++y)
      if (y + shift_min + k >= 0 && y + shift_min + k < moving_h) ++visits[{k, y}];
  return visits;
}

class Split : public testing::TestWithParam<RowSplit> {};

TEST_P(Split, visits_every_row_of_every_overlap_once) {
  for (const int moving_h : {1, 2, 7, 16, 33}) {
    for (const int fixed_h : {1, 5, 8, 31}) {
      for (const int rows : {1, 3, 8, 40}) {
        for (const auto& [shift_min, shifts] :
             {std::pair{-(fixed_h - 1), moving_h + fixed_h - 1}, std::pair{0, 1}, std::pair{-50, 120},
              std::pair{2, 9}, std::pair{-70, 20}}) {
          const RowTasks tasks(GetParam(), rows, moving_h, fixed_h, shift_min, shifts);
          Visits visits;
          for (std::int64_t id = 0; id < tasks.count(); ++id) {
            const RowTask task = tasks.task(id);
            EXPECT_TRUE(GetParam() != RowSplit::triangle || task.begin < task.end) << "an idle task";
            EXPECT_TRUE(GetParam() == RowSplit::none || task.end - task.begin <= rows);
            for (int y = task.begin; y < task.end; ++y) ++visits[{task.shift, y}];
          }
          EXPECT_EQ(visits, overlaps(moving_h, fixed_h, shift_min, shifts))
              << moving_h << " " << fixed_h << " " << rows << " " << shift_min << " " << shifts;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Split,
                         testing::Values(RowSplit::none, RowSplit::rectangle, RowSplit::triangle));

}  // namespace
}  // namespace dic::kernels
