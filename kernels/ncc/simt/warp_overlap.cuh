#pragma once

#include "ncc/job_view.cuh"

/// Sum of products of one overlap, by one warp.
namespace dic::kernels {

constexpr int warps_per_shift_block = 8;

/// Order in which a warp walks through an overlap.
enum class Indexing {
  linear,  ///< lanes take consecutive elements across row ends: no idle lane, but a division per element
  by_row   ///< lanes take consecutive elements of one row: no division, idle lanes at the row's end
};

template <typename T, typename Sum, Indexing indexing>
__device__ Sum sum_overlap(const PatchView<T>& reference, const PatchView<T>& window, const Overlap& o,
                           int dx, int dy, int lane) {
  Sum sum = 0;
  if constexpr (indexing == Indexing::linear) {
    const int width = o.width(), elements = width * o.height();
    for (int i = lane; i < elements; i += warp_size) {
      const int y = o.y0 + i / width, x = o.x0 + i % width;
      multiply_add(sum, reference.row(y)[x], window.row(y + dy)[x + dx]);
    }
  } else {
    for (int y = o.y0; y < o.y1; ++y) {
      const T* a = reference.row(y);
      const T* b = window.row(y + dy);
      for (int x = o.x0 + lane; x < o.x1; x += warp_size) multiply_add(sum, a[x], b[x + dx]);
    }
  }
  return warp_sum(sum);
}

}  // namespace dic::kernels
