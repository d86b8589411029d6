#pragma once

#include <algorithm>
#include <limits>

#include "ncc/stage_patch.cuh"

/// Assignment of shifts and pairs to the blocks of a tensor-core kernel, task after task.
namespace dic::kernels {

/// The tasks of a job: a pair each, or one of parts_x x parts_y parts of the shifts of a pair. If a job has
/// all pairs of a window (n_to_m), these are consecutive.
struct Tasks {
  std::int64_t references = 1, windows = 0;
  int parts_x = 0, parts_y = 0;

  /// Tasks for blocks that compute columns x rows shifts at once.
  Tasks(const NccJob& job, int columns, int rows)
      : windows(job.pairs),
        parts_x((job.shifts.nx() + columns - 1) / columns),
        parts_y((job.shifts.ny() + rows - 1) / rows) {
    const std::int64_t count = job.search.count;
    if (job.pairing != Pairing::n_to_m || job.first_pair % count != 0 || job.pairs % count != 0) return;
    references = job.pairs / count;
    windows = count;
  }
  __host__ __device__ int parts() const { return parts_x * parts_y; }
  /// Number of groups of tasks; a block processes a group one task after the other.
  __host__ __device__ std::int64_t groups() const { return windows * parts(); }

  /// Returns the number of blocks to launch, of which `resident` run at once. A block processes
  /// tasks_per_block tasks, then another block starts in its place. This balances multiprocessors of unequal
  /// speed, and costs the start of a block every few tasks. 0: all blocks run at once and divide the tasks
  /// among them.
  std::int64_t distribute(std::int64_t resident, int tasks_per_block) {
    if (tasks_per_block > 0 && references == 1 && groups() >= 2 * tasks_per_block * resident) {
      next_task = 1;
      next_block = most_of_block = tasks_per_block;
      return (groups() + tasks_per_block - 1) / tasks_per_block;
    }
    next_task = static_cast<int>(std::min(groups(), resident));
    return next_task;
  }
  /// Number of tasks of this block. Tasks of one window are consecutive in a block; blocks that run at the
  /// same time have windows that are close to each other in the image.
  __device__ int count_for_block() const {
    const std::int64_t left = groups() - std::int64_t{blockIdx.x} * next_block;
    return min(most_of_block, static_cast<int>((left + next_task - 1) / next_task * references));
  }
  __device__ std::int64_t task_of_block(int i) const {
    const std::int64_t first = std::int64_t{blockIdx.x} * next_block;
    if (references == 1) return std::int64_t{i} * next_task + first;
    const auto in_group = static_cast<int>(references);
    return (std::int64_t{i / in_group} * next_task + first) * references + i % in_group;
  }

 protected:
  int next_block = 1, next_task = 1;  ///< windows from a block to the next, and from a task to the next
  int most_of_block = std::numeric_limits<int>::max();
};
/// Reference, window and part of a task.
struct Place {
  std::int64_t reference = 0, window;
  int part_x = 0, part_y = 0;

  Place() = default;
  __device__ Place(const Tasks& tasks, std::int64_t task) : window(task) {
    if (tasks.references == 1 && tasks.parts() == 1) return;
    const std::int64_t place = task / tasks.references, part = place / tasks.windows;
    reference = task - place * tasks.references;
    window = place - part * tasks.windows;
    part_y = static_cast<int>(part / tasks.parts_x);
    part_x = static_cast<int>(part) - part_y * tasks.parts_x;
  }
};

/// Rows of a matrix that are copied in whole chunks, beginning with the chunk that holds element (0, 0).
struct ChunkRows {
  const u8* first;  ///< element (0, 0); null: rows cannot be copied in chunks
  int row_bytes;

  __device__ int byte() const {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(first) % chunk_bytes);
  }
};

}  // namespace dic::kernels
