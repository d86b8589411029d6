#include <dic/kernels/common_motion.hpp>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

using track::kMotionSamples;
using track::MotionSample;

__global__ void ask_points(const __grid_constant__ FramePoints last, const PointStart* starts,
                           const __grid_constant__ AskedPoints asked) {
  const auto k = static_cast<int>(threadIdx.x);
  const auto i = static_cast<std::int32_t>(track::sampled_point(k, last.grid.count));
  const PointRange& own = last.grid.own;
  const bool is_asked = i >= own.first && i < own.last && last.trackable(i) &&
                        !last.grid.subsets[i].weighted && track::start_source(last, i) >= 0;
  asked.list[k] = is_asked ? i : -1;
  if (is_asked) asked.predicted[k] = starts[i];
}

__global__ void sample_motion(const __grid_constant__ GridPoints points,
                              const __grid_constant__ AskedPoints asked, float found, PointStart* starts) {
  const auto k = static_cast<int>(threadIdx.x);
  const std::int32_t i = asked.list[k];
  MotionSample sample;
  if (i >= 0) {
    const PointStart from = asked.predicted[k], to = starts[i];
    sample.x = static_cast<float>(points.x[i]), sample.y = static_cast<float>(points.y[i]);
    sample.u = static_cast<float>(to.u - from.u) + (to.shape.u[0] - from.shape.u[0]);
    sample.v = static_cast<float>(to.v - from.v) + (to.shape.v[0] - from.shape.v[0]);
    sample.state = to.score >= found ? MotionSample::found : MotionSample::not_found;
  }
  asked.samples[k] = sample;
  __syncthreads();  // grids of few points ask some of them several times
  if (i >= 0) starts[i] = asked.predicted[k];
}

__global__ void find_motion(const MotionSample* samples, int gpus, int reach, track::LinearMotion* motion) {
  __shared__ MotionSample all[kMotionSamples];
  const auto k = static_cast<int>(threadIdx.x);
  MotionSample own;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    const MotionSample& sample = samples[gpu * kMotionSamples + k];
    if (sample.state != MotionSample::none) own = sample;
  }
  all[k] = own;
  __syncthreads();
  if (k == 0) *motion = track::common_motion(all, kMotionSamples, reach);
}

__device__ void move(std::int32_t& whole, float& rest, double by) {
  const SplitDisplacement moved(whole + (double{rest} + by));
  whole = moved.whole;
  rest = moved.rest;
}

__global__ void __launch_bounds__(point_threads)
    move_starts(const __grid_constant__ GridPoints points, const track::LinearMotion* motion,
                PointStart* starts) {
  for_each_point(points.own, [&](std::int32_t i) {
    const track::LinearMotion by = *motion;
    move(starts[i].u, starts[i].shape.u[0], by.u_at(points.x[i], points.y[i]));
    move(starts[i].v, starts[i].shape.v[0], by.v_at(points.x[i], points.y[i]));
  });
}

}  // namespace

void launch_ask_points(const GridPoints& points, const TrackedPoint* last, const PointStart* starts,
                       const AskedPoints& asked, StreamHandle stream) {
  ask_points<<<1, kMotionSamples, 0, stream>>>({points, last}, starts, asked);
  check_launch(describe_points("asking points for their motion", points.count));
}

void launch_sample_motion(const GridPoints& points, const AskedPoints& asked, float found, PointStart* starts,
                          StreamHandle stream) {
  sample_motion<<<1, kMotionSamples, 0, stream>>>(points, asked, found, starts);
  check_launch(describe_points("the motion of a few points", points.count));
}

void launch_follow_motion(const GridPoints& points, const MotionSample* samples, int gpus, int reach,
                          track::LinearMotion* motion, PointStart* starts, StreamHandle stream) {
  find_motion<<<1, kMotionSamples, 0, stream>>>(samples, gpus, reach, motion);
  const std::int64_t n = points.own.count();
  if (n > 0) move_starts<<<grid_size(n, point_threads), point_threads, 0, stream>>>(points, motion, starts);
  check_launch(describe_points("following the common motion", n));
}

}  // namespace dic::kernels
