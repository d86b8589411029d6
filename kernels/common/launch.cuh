#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <string>

#include "common/check.hpp"

namespace dic::kernels {

constexpr int warp_size = 32;
constexpr unsigned all_lanes = 0xffffffffu;  ///< mask of a whole warp

/// threadIdx.x, read anew: the compiler then keeps no values derived from it in registers from task to task.
__device__ inline int thread_of_block() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

/// Number of blocks for `tasks` tasks, `per_block` per block. Grids extend along x only, because y and z are
/// limited to 65,535. Kernels loop over tasks (`for_each_task`), so that the largest grid serves any number
/// of tasks.
inline unsigned grid_size(std::int64_t tasks, std::int64_t per_block) {
  constexpr std::int64_t largest_grid = 2147483647;
  return static_cast<unsigned>(std::min((tasks + per_block - 1) / per_block, largest_grid));
}

/// Calls body(task) for the tasks of this worker, number `first` of the `workers` of a block.
template <typename Body>
__device__ void for_each_task(std::int64_t tasks, int workers, int first, Body&& body) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * workers;
  for (std::int64_t task = static_cast<std::int64_t>(blockIdx.x) * workers + first; task < tasks;
       task += step)
    body(task);
}

/// Returns `value`, but hides its origin from the compiler. The compiler then keeps the value itself in a
/// register instead of computing it again, and computes derived values again instead of keeping them through
/// a loop.
__device__ inline unsigned opaque(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}

/// Number of this warp in its block. The shuffle tells the compiler that it is the same in all lanes;
/// otherwise the compiler adds a test for divergence to every shuffle in a loop that depends on it.
__device__ inline int warp_index() {
  return __shfl_sync(all_lanes, static_cast<int>(threadIdx.x) / warp_size, 0);
}

template <typename Sum>
__device__ Sum warp_sum(Sum value) {
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value += __shfl_xor_sync(all_lanes, value, offset);
  return value;
}

/// atomicAdd for every type of sum; CUDA lacks the 64-bit names of <cstdint>.
template <typename Sum>
__device__ void atomic_add(Sum* target, Sum value) {
  if constexpr (sizeof(Sum) == 8 && std::is_integral_v<Sum>)
    atomicAdd(reinterpret_cast<unsigned long long*>(target), static_cast<unsigned long long>(value));
  else
    atomicAdd(target, value);
}

}  // namespace dic::kernels
