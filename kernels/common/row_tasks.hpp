#pragma once

#include <algorithm>
#include <cstdint>

#include "common/host_device.hpp"

namespace dic::kernels {

/// How the rows of the overlaps are cut into tasks.
enum class RowSplit {
  none,       ///< one task per shift: all rows of its overlap
  rectangle,  ///< as many tasks for every shift as the largest overlap needs; the superfluous ones end at
              ///< once
  triangle    ///< exactly as many tasks as there are groups of rows
};

/// The rows [begin, end) of one task, and the vertical shift it belongs to.
struct RowTask {
  int shift;  ///< index of the vertical shift, 0-based
  int begin, end;
};

/// Cuts the overlaps of two matrices (heights `moving_h`, `fixed_h`), of which the first is displaced by
/// s = shift_min .. shift_min + shifts - 1, into groups of at most `rows_per_task` rows of `fixed`. Row y of
/// `fixed` meets row y + s of `moving`.
class RowTasks {
 public:
  RowTasks(RowSplit split, int rows_per_task, int moving_h, int fixed_h, int shift_min, int shifts)
      : split_(split), moving_h_(moving_h), fixed_h_(fixed_h), shift_min_(shift_min), shifts_(shifts) {
    const int most_rows = std::min(moving_h, fixed_h);
    rows_per_task_ = split == RowSplit::none ? most_rows : rows_per_task;
    most_tasks_ = groups(most_rows);
  }

  DIC_HOST_DEVICE std::int64_t count() const {
    return split_ == RowSplit::triangle ? groups_before(shifts_) : std::int64_t{most_tasks_} * shifts_;
  }

  /// Task number `id` of count(); begin >= end where there is nothing to do.
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

  /// Sum of groups(1) + ... + groups(rows).
  DIC_HOST_DEVICE std::int64_t groups_up_to(std::int64_t rows) const {
    const std::int64_t whole = rows / rows_per_task_;
    return whole * (whole + 1) / 2 * rows_per_task_ + (rows - whole * rows_per_task_) * (whole + 1);
  }

  /// Groups of all shifts before number `shift`. The height of the overlap is a trapezoid over the shift:
  /// 1, 2, ... up to the smaller height, level, and down again.
  DIC_HOST_DEVICE std::int64_t groups_before(int shift) const {
    return trapezoid(shift_min_ + shift) - trapezoid(shift_min_);
  }
  /// Groups of all shifts below s.
  DIC_HOST_DEVICE std::int64_t trapezoid(int s) const {
    const std::int64_t top = smaller(moving_h_, fixed_h_);
    const std::int64_t length = moving_h_ + fixed_h_ - 1;
    std::int64_t n = std::int64_t{s} + fixed_h_ - 1;
    n = n < 0 ? 0 : (n > length ? length : n);
    const std::int64_t level = groups(static_cast<int>(top));
    if (n <= top) return groups_up_to(n);
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
  int most_tasks_;
  int moving_h_, fixed_h_, shift_min_, shifts_;
};

}  // namespace dic::kernels
