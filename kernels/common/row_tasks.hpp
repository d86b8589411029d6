#pragma once

#include <algorithm>
#include <cstdint>

#include "common/host_device.hpp"

namespace dic::kernels {

/// The rows [begin, end) of one task, and the vertical shift to which the task belongs.
struct RowTask {
  int shift;  ///< index of the (first) vertical shift of the task, 0-based
  int begin, end;
};

/// The overlaps of two matrices (heights `moving_h`, `fixed_h`); `moving` is displaced by s = shift_min ..
/// shift_min + shifts - 1: row y of `fixed` is multiplied by row y + s of `moving`. A task has all rows of
/// `shifts_per_task` neighbouring overlaps, with the row numbers of the first of these shifts.
class OverlapTasks {
 public:
  OverlapTasks(int moving_h, int fixed_h, int shift_min, int shifts, int shifts_per_task)
      : moving_h_(moving_h),
        fixed_h_(fixed_h),
        shift_min_(shift_min),
        count_((shifts + shifts_per_task - 1) / shifts_per_task),
        shifts_per_task_(shifts_per_task) {}

  DIC_HOST_DEVICE std::int64_t count() const { return count_; }
  /// Task number `id` of count(); begin >= end if there is no overlap.
  DIC_HOST_DEVICE RowTask task(std::int64_t id) const {
    const int shift = static_cast<int>(id) * shifts_per_task_, s = shift_min_ + shift;
    const int last_fixed = fixed_h_ + shifts_per_task_ - 1, last_moving = moving_h_ - s;
    return {shift, s < 0 ? -s : 0, last_fixed < last_moving ? last_fixed : last_moving};
  }

 private:
  int moving_h_, fixed_h_, shift_min_, count_, shifts_per_task_;
};

/// Division of overlaps into groups of rows.
enum class RowSplit {
  rectangle,  ///< every shift gets as many groups as the largest overlap needs; superfluous ones end at once
  triangle    ///< exactly as many tasks as there are groups of rows
};

/// Rows per task, 1 to 8: as many as leave enough tasks to fill a large GPU. `overlaps`: number of overlaps
/// that are divided; on average they have half as many rows as the lower matrix.
inline int rows_to_fill_gpu(std::int64_t overlaps, int moving_h, int fixed_h) {
  constexpr std::int64_t enough_tasks = 8192;
  return static_cast<int>(
      std::clamp<std::int64_t>(overlaps * std::min(moving_h, fixed_h) / 2 / enough_tasks, 1, 8));
}

/// The overlaps of two matrices (see OverlapTasks), divided into tasks of one shift and at most
/// `rows_per_task` rows of `fixed`.
class RowTasks {
 public:
  RowTasks(RowSplit split, int rows_per_task, int moving_h, int fixed_h, int shift_min, int shifts)
      : split_(split),
        rows_per_task_(rows_per_task),
        moving_h_(moving_h),
        fixed_h_(fixed_h),
        shift_min_(shift_min),
        shifts_(shifts) {
    skipped_ = groups_below(shift_min);
    count_ = split == RowSplit::triangle ? groups_before(shifts)
                                         : std::int64_t{groups(std::min(moving_h, fixed_h))} * shifts;
  }

  DIC_HOST_DEVICE std::int64_t count() const { return count_; }

  /// Task number `id` of count(); begin >= end if there is nothing to do.
  DIC_HOST_DEVICE RowTask task(std::int64_t id) const {
    const int shift = split_ == RowSplit::triangle ? shift_of_group(id) : static_cast<int>(id % shifts_);
    const auto rank =
        static_cast<int>(split_ == RowSplit::triangle ? id - groups_before(shift) : id / shifts_);
    const int s = shift_min_ + shift;
    const int first = s < 0 ? -s : 0;
    const int last = smaller(fixed_h_, moving_h_ - s);
    const int begin = first + rank * rows_per_task_;
    return {shift, begin, smaller(last, begin + rows_per_task_)};
  }

 private:
  DIC_HOST_DEVICE static int smaller(int a, int b) { return a < b ? a : b; }
  DIC_HOST_DEVICE int groups(int rows) const { return (rows + rows_per_task_ - 1) / rows_per_task_; }

  /// Sum of groups(1) + ... + groups(rows). Divides 32-bit numbers: 64-bit divisions are slow on a GPU.
  DIC_HOST_DEVICE std::int64_t groups_up_to(int rows) const {
    const int whole = rows / rows_per_task_;
    return std::int64_t{whole} * (whole + 1) / 2 * rows_per_task_ +
           std::int64_t{rows - whole * rows_per_task_} * (whole + 1);
  }

  /// Number of groups of all shifts before number `shift`.
  DIC_HOST_DEVICE std::int64_t groups_before(int shift) const {
    return groups_below(shift_min_ + shift) - skipped_;
  }
  /// Number of groups of all shifts below s. The height of the overlap over the shift is a trapezoid: 1, 2,
  /// ... up to the smaller height, constant, and down again.
  DIC_HOST_DEVICE std::int64_t groups_below(int s) const {
    const int top = smaller(moving_h_, fixed_h_), length = moving_h_ + fixed_h_ - 1;
    const int n = s + fixed_h_ - 1 < 0 ? 0 : smaller(s + fixed_h_ - 1, length);
    if (n <= top) return groups_up_to(n);
    const std::int64_t level = groups(top);
    if (n <= length - top) return groups_up_to(top) + (n - top) * level;
    return 2 * groups_up_to(top) + (length - 2 * top) * level - groups_up_to(length - n);
  }
  /// The last shift with groups_before(shift) <= id, by bisection.
  DIC_HOST_DEVICE int shift_of_group(std::int64_t id) const {
    int low = 0, high = shifts_;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (groups_before(middle) <= id ? low : high) = middle;
    }
    return low;
  }

  RowSplit split_;
  int rows_per_task_;
  int moving_h_, fixed_h_, shift_min_, shifts_;
  std::int64_t skipped_;  ///< number of groups of all shifts below shift_min
  std::int64_t count_;
};

}  // namespace dic::kernels
