#pragma once

#include "ncc/tensor/tensor_shares.cuh"

namespace dic::kernels {

/// A pair of a job, as a block's lanes look it up ahead.
struct PairTask {
  int4 boxes;  ///< x and y of the first chunks of the window, with the first shift, and the reference
  ShiftStatistics statistics;  ///< of the window's shifts
  Defined of_x, of_y;  ///< at these the reference lies in the window: of y none, where of x there are none
  int of_window, of_reference;  ///< bytes at which they begin in their chunks
  std::int64_t pair;

  PairTask() = default;
  __device__ PairTask(const Frame& frame, const Tasks& tasks, const StatisticsTable& table,
                      std::int64_t task) {
    const Place place(tasks, task);
    pair = table.ordered(place.reference * tasks.windows + place.window);
    const std::int64_t index = frame.window_of(pair);
    const PatchPosition at = frame.search.positions[index];
    const PatchPosition reference = frame.reference.positions[frame.reference_of(pair)];
    const DeviceImage& image = frame.search.only;
    const int x = at.x + frame.dx_min, y = at.y + frame.dy_min;
    boxes = {x & -chunk_bytes, y, reference.x & -chunk_bytes, reference.y};
    of_window = x & (chunk_bytes - 1), of_reference = reference.x & (chunk_bytes - 1);
    const auto first = [](int begin, int shifts) { return min(max(begin, 0), shifts); };
    const auto last = [](int end, int shifts) { return max(min(end, shifts) - 1, -1); };
    const int right = min(at.x + frame.search.width, image.width) - frame.reference.width;
    const int bottom = min(at.y + frame.search.height, image.height) - frame.reference.height;
    of_x = {first(max(at.x, 0) - x, frame.nx), last(right - x + 1, frame.nx)};
    of_y = {first(max(at.y, 0) - y, frame.ny), last(bottom - y + 1, frame.ny)};
    if (of_x.first > of_x.last) of_y.last = -1;
    statistics = table.of_shifts(frame, index, 0, 0);
  }
};

}  // namespace dic::kernels
