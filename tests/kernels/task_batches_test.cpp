#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ncc/tensor/task_batches.hpp"

namespace dic::kernels {
namespace {

TEST(TaskBatches, EveryTaskComesOnce) {
  for (const std::int64_t tasks : {1, 2, 7, 8, 9, 30, 31, 64, 1000, 1001, 4097}) {
    for (const std::int64_t blocks : {1, 2, 7, 8, 64}) {
      if (blocks > tasks) continue;
      SCOPED_TRACE(std::to_string(tasks) + " tasks, " + std::to_string(blocks) + " blocks");
      const TaskBatches batches(tasks, blocks);
      std::vector<int> times(tasks);
      for (std::int64_t task = 0; task < batches.rounds * blocks; ++task) ++times.at(task);
      std::int64_t number = 0;
      for (TaskBatch batch = batches.batch(0); batch.tasks > 0; batch = batches.batch(++number))
        for (int i = 0; i < batch.tasks; ++i) ++times.at(batch.first + i);
      EXPECT_EQ(times, std::vector<int>(tasks, 1));
      EXPECT_EQ(batches.all_assigned(), number == 0);
      EXPECT_EQ(batches.batch(number + blocks).tasks, 0);  // every block asks until no batch is left
    }
  }
}

TEST(TaskBatches, TheLastOnesAreShort) {
  constexpr std::int64_t tasks = 100000, blocks = 2112;
  const TaskBatches batches(tasks, blocks);
  EXPECT_EQ(batches.batch(0).tasks, TaskBatches::tasks_per_batch);
  EXPECT_EQ(batches.batch(batches.full_batches).tasks, 1);
  EXPECT_GE(tasks - batches.batch(batches.full_batches).first, 2 * blocks);
}

}  // namespace
}  // namespace dic::kernels
