#include "ncc/tensor/turns.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace dic::kernels {
namespace {

TEST(Turns, every_task_comes_once) {
  for (const std::int64_t tasks : {1, 2, 7, 8, 9, 30, 31, 64, 1000, 1001, 4097}) {
    for (const std::int64_t blocks : {1, 2, 7, 8, 64}) {
      if (blocks > tasks) continue;
      SCOPED_TRACE(std::to_string(tasks) + " tasks, " + std::to_string(blocks) + " blocks");
      const Turns turns(tasks, blocks);
      std::vector<int> times(tasks);
      for (std::int64_t task = 0; task < turns.rounds * blocks; ++task) ++times.at(task);
      std::int64_t number = 0;
      for (Turn turn = turns.turn(0); turn.tasks > 0; turn = turns.turn(++number))
        for (int i = 0; i < turn.tasks; ++i) ++times.at(turn.first + i);
      EXPECT_EQ(times, std::vector<int>(tasks, 1));
      EXPECT_EQ(turns.deal_all(), number == 0);
      EXPECT_EQ(turns.turn(number + blocks).tasks, 0);  // every block asks until there are none
    }
  }
}

TEST(Turns, the_last_ones_are_short) {
  constexpr std::int64_t tasks = 100000, blocks = 2112;
  const Turns turns(tasks, blocks);
  EXPECT_EQ(turns.turn(0).tasks, Turns::tasks_of_turn);
  EXPECT_EQ(turns.turn(turns.whole).tasks, 1);
  EXPECT_GE(tasks - turns.turn(turns.whole).first, 2 * blocks);
}

}  // namespace
}  // namespace dic::kernels
