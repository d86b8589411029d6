#include <dic/kernels/surface.hpp>

#include "stereo/every_node.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 128, warps = threads / warp_size;
constexpr int most_blocks = 512;  ///< blocks of a sum, whose parts are added in order

/// Adds up the sums of the threads of a block. part: those of this block.
template <int kCount>
__device__ void store_part(const double (&sums)[kCount], double* part) {
  __shared__ double of_warps[warps][kCount];
  const int warp = static_cast<int>(threadIdx.x) / warp_size;
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    const double sum = warp_sum(sums[k]);
    if (threadIdx.x % warp_size == 0) of_warps[warp][k] = sum;
  }
  __syncthreads();
  for (int k = threadIdx.x; k < kCount; k += threads) {
    double sum = 0;
    for (int w = 0; w < warps; ++w) sum += of_warps[w][k];
    part[k] = sum;
  }
}

__global__ void __launch_bounds__(threads)
    sum_means(const __grid_constant__ stereo::SurfaceJob job, double* parts) {
  double sums[stereo::MotionMeans::kCount] = {};
  for_each_task(job.grid.nodes(), threads, threadIdx.x,
                [&](std::int64_t node) { stereo::AddMeans{job}(node, sums); });
  store_part(sums, parts + blockIdx.x * stereo::MotionMeans::kCount);
}

__global__ void __launch_bounds__(threads) sum_moments(const __grid_constant__ stereo::SurfaceJob job,
                                                       const stereo::MotionMeans* means, double* parts) {
  double sums[stereo::MotionMoments::kCount] = {};
  const stereo::MotionMeans known = *means;
  for_each_task(job.grid.nodes(), threads, threadIdx.x,
                [&](std::int64_t node) { stereo::AddMoments{job}(node, known, sums); });
  store_part(sums, parts + blockIdx.x * stereo::MotionMoments::kCount);
}

/// Adds the parts of the blocks, one sum per warp.
__global__ void add_parts(const double* parts, int blocks, int count, double* sums) {
  const int k = static_cast<int>(blockIdx.x);
  double sum = 0;
  for (int block = threadIdx.x; block < blocks; block += warp_size) sum += parts[block * count + k];
  sum = warp_sum(sum);
  if (threadIdx.x == 0) sums[k] = sum;
}

}  // namespace

std::size_t motion_workspace_bytes() {
  return std::size_t{most_blocks} * stereo::MotionMoments::kCount * sizeof(double);
}

void launch_sum_motion(const stereo::SurfaceJob& job, MotionSums* sums, void* workspace,
                       StreamHandle stream) {
  const unsigned blocks = std::min<unsigned>(grid_size(job.grid.nodes(), threads), most_blocks);
  auto* const parts = static_cast<double*>(workspace);
  const auto add = [&](int count, double* to) {
    add_parts<<<count, warp_size, 0, stream>>>(parts, static_cast<int>(blocks), count, to);
  };
  sum_means<<<blocks, threads, 0, stream>>>(job, parts);
  add(stereo::MotionMeans::kCount, sums->means.sums);
  sum_moments<<<blocks, threads, 0, stream>>>(job, &sums->means, parts);
  add(stereo::MotionMoments::kCount, sums->moments.sums);
  check_launch(describe("the motion of a surface", job.grid));
}

}  // namespace dic::kernels
