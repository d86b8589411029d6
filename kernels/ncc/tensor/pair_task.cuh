#pragma once

#include "ncc/tensor/block_shifts.cuh"

namespace dic::kernels {

/// A pair of a job, looked up by a lane before its block needs it.
struct PairTask {
  int4 boxes;  ///< x and y of the first chunks of the window at the first shift, then of the reference
  ShiftStatistics statistics;  ///< statistics of the window's shifts
  /// Shifts at which the reference lies inside the window; defined_y is empty if defined_x is.
  Defined defined_x, defined_y;
  int window_byte, reference_byte;  ///< bytes at which window and reference begin in their chunks
  std::int64_t pair;

  PairTask() = default;
  __device__ PairTask(const JobView& view, const Tasks& tasks, const StatisticsTable& table,
                      std::int64_t task) {
    const Place place(tasks, task);
    pair = table.ordered(place.reference * tasks.windows + place.window);
    const std::int64_t index = view.window_of(pair);
    const PatchPosition at = view.search.positions[index];
    const PatchPosition reference = view.reference.positions[view.reference_of(pair)];
    const DeviceImage& image = view.search.single_image;
    const int x = at.x + view.dx_min, y = at.y + view.dy_min;
    boxes = {x & -chunk_bytes, y, reference.x & -chunk_bytes, reference.y};
    window_byte = x & (chunk_bytes - 1), reference_byte = reference.x & (chunk_bytes - 1);
    const auto first = [](int begin, int shifts) { return min(max(begin, 0), shifts); };
    const auto last = [](int end, int shifts) { return max(min(end, shifts) - 1, -1); };
    const int right = min(at.x + view.search.width, image.width) - view.reference.width;
    const int bottom = min(at.y + view.search.height, image.height) - view.reference.height;
    defined_x = {first(max(at.x, 0) - x, view.nx), last(right - x + 1, view.nx)};
    defined_y = {first(max(at.y, 0) - y, view.ny), last(bottom - y + 1, view.ny)};
    if (defined_x.first > defined_x.last) defined_y.last = -1;
    statistics = table.shift_statistics(view, index, 0, 0);
  }
};

}  // namespace dic::kernels
