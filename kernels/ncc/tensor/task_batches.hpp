#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/shared/host_device.hpp>

namespace dic::kernels {

/// Tasks first .. first + tasks - 1, which a block takes at once and processes one after the other.
struct TaskBatch {
  std::int64_t first;
  int tasks;  ///< 0: no tasks are left
};

/// Assignment of tasks to blocks of one warp, all of which run at the same time. A scheduler prefers some of
/// its four warps: with equal numbers of tasks these finish when a fifth of the time is left. Therefore a
/// third of the tasks is assigned in advance, one to each block in every round. Blocks take the others from a
/// counter: in batches, because looking up a task takes a seventh of its time, and the last ones singly.
struct TaskBatches {
  static constexpr int tasks_per_batch = 4;
  std::int64_t tasks = 0, assigned = 0;
  int rounds = 0;                 ///< rounds of assigned tasks
  std::int64_t full_batches = 0;  ///< batches of tasks_per_batch; single tasks follow them

  TaskBatches(std::int64_t all, std::int64_t blocks)
      : tasks(all), rounds(static_cast<int>(std::max<std::int64_t>(all / blocks * 7 / 20, 1))) {
    assigned = std::min(rounds * blocks, tasks);
    const std::int64_t single = 2 * blocks;
    full_batches = std::max<std::int64_t>(tasks - assigned - single, 0) / tasks_per_batch;
  }
  DIC_HOST_DEVICE bool all_assigned() const { return assigned == tasks; }
  /// Batch `number`, counted from 0, of the tasks that are not assigned in advance.
  DIC_HOST_DEVICE TaskBatch batch(std::int64_t number) const {
    const bool is_full = number < full_batches;
    const std::int64_t before = is_full ? number : full_batches;
    const std::int64_t first = assigned + before * tasks_per_batch + (number - before);
    return {first, first >= tasks ? 0 : is_full ? tasks_per_batch : 1};
  }
};

}  // namespace dic::kernels
