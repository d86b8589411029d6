#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>

#include "refine/gathered.cuh"
#include "refine/sliding.cuh"

// Gauss-Newton iterations, a warp per point: a variant adds up the sums of the current subset, the lanes
// share the reduction and the product with the inverse Hessian, and every lane follows the shape.
namespace dic::kernels {
namespace {

constexpr int threads = 128;
constexpr int warps = threads / warp_size;
/// Status of a point that a variant leaves to the next.
constexpr Status unfinished{255};
/// 80 registers for a thread; more for the longer windows of the quintic spline, by trial.
template <int kDegree, int kOrder>
constexpr int blocks_per_multiprocessor = kDegree == 3 ? 6 : (kOrder == 1 ? 4 : 5);

/// Lane k's value as term k of the displacements: u's, then v's, each in the order of RelativeShape.
template <int kOrder>
__device__ ShapeOf<kOrder> shape_from_lanes(float value) {
  constexpr int m = icgn::monomial_count(kOrder);
  const auto polynomial = [&](int first) {
    Polynomial<float, polynomial_degree<kOrder>> p;
    p.c = from_lane(value, first);
    if constexpr (kOrder >= 1) {
      p.x = from_lane(value, first + 1);
      p.y = from_lane(value, first + 2);
    }
    if constexpr (kOrder == 2) {
      p.xx = from_lane(value, first + 3);
      p.xy = from_lane(value, first + 4);
      p.yy = from_lane(value, first + 5);
    }
    return p;
  };
  return {polynomial(0), polynomial(m)};
}

template <int kOrder>
__device__ ShapeOf<kOrder> load(const RelativeShape& shape) {
  constexpr int m = icgn::monomial_count(kOrder);
  const int lane = lane_index();
  float value = 0;
  if (lane < 2 * m) value = lane < m ? shape.u[lane] : shape.v[lane - m];
  return shape_from_lanes<kOrder>(value);
}

template <int kDegree>
__device__ void store(const Polynomial<float, kDegree>& p, float (&out)[6]) {
  out[0] = p.c;
  out[1] = p.x;
  out[2] = p.y;
  out[3] = p.xx;
  out[4] = p.xy;
  out[5] = p.yy;
}

template <int kDegree>
__device__ bool is_finite(const BasicWarp<float, kDegree>& d) {
  const float linear = d.x.c + d.x.x + d.x.y + d.y.c + d.y.x + d.y.y;
  return isfinite(kDegree == 1 ? linear : linear + d.x.xx + d.x.xy + d.x.yy + d.y.xx + d.y.xy + d.y.yy);
}

/// Do the displaced pixels stay in the current picture? A lane looks at one corner.
template <int kOrder>
__device__ bool corners_inside(const RefineFrame& frame, const Placed<kOrder>& at, const RefineTask& task) {
  const PreparedSubset& s = at.subset(frame);
  const int lane = lane_index();
  const auto i = static_cast<float>(lane & 1 ? s.right : s.left),
             j = static_cast<float>(lane & 2 ? s.bottom : s.top);
  const auto w = static_cast<float>(s.right - s.left), h = static_cast<float>(s.bottom - s.top);
  const auto within = [](float position, float bulge, int origin, int length) {
    const float low = static_cast<float>(-origin) - static_cast<float>(icgn::border);
    const float high = static_cast<float>(length - 1 - origin) + static_cast<float>(icgn::border);
    return position - bulge >= low && position + bulge <= high;
  };
  const auto& [x, y] = at.displacement;
  return __all_sync(
      all_lanes, within(i + x(i, j), icgn::bulge(x, w, h), s.x + task.u, frame.reference.layout.width) &&
                     within(j + y(i, j), icgn::bulge(y, w, h), s.y + task.v, frame.reference.layout.height));
}

/// How far every pixel of a subset at its whole-pixel displacement may move without leaving the current
/// picture, px.
__device__ float room_of(const RefineFrame& frame, const PreparedSubset& s, const RefineTask& task) {
  const int x = s.x + task.u, y = s.y + task.v;
  const int left = min(x + s.left, y + s.top);
  const int right =
      min(frame.reference.layout.width - 1 - x - s.right, frame.reference.layout.height - 1 - y - s.bottom);
  return static_cast<float>(min(left, right)) + static_cast<float>(icgn::border);
}

/// How far the refinement of one point has come. It lies in shared memory: in registers, it would cost the
/// loops over pixels theirs.
template <int kOrder>
struct Progress {
  Placed<kOrder> at;
  float room, zncc;
  int iterations;
  bool converged;
};

/// The refinement of one point by a warp. Variant: see Sliding.
template <int kOrder, typename Variant>
class Refinement {
 public:
  static constexpr int parameters = 2 * icgn::monomial_count(kOrder);

  /// Goes on at `shape`, after some iterations.
  __device__ Refinement(const RefineFrame& frame, const RefineTask& task, const RelativeShape& shape,
                        int iterations, Progress<kOrder>& progress)
      : frame_(frame), task_(task), progress_(progress) {
    const PreparedSubset& s = frame.subsets[task.point];
    const Placed<kOrder> at{task.point, task.v * frame.reference.layout.stride + task.u, load<kOrder>(shape),
                            s.mean};
    set([&](Progress<kOrder>& p) { p = {at, room_of(frame, s, task), 0, iterations, false}; });
  }

  __device__ Status run() {
    if (subset().status != Status::ok) return subset().status;
    if (!Variant::takes(frame_, subset())) return unfinished;
    while (progress_.iterations < frame_.max_iterations) {
      if (!near_start()) return Status::diverged;
      if (!inside_current())
        return is_finite(progress_.at.displacement) ? Status::out_of_image : Status::diverged;
      if (progress_.iterations == Variant::most_iterations) return unfinished;
      const Status status = iterate();
      if (status != Status::not_converged) return status;
    }
    return progress_.zncc < frame_.min_zncc ? Status::low_correlation : Status::not_converged;
  }

  __device__ void store_result(Status status, RefineResult& out) const {
    if (lane_index() != 0) return;
    const PreparedSubset& s = subset();
    const Progress<kOrder>& p = progress_;
    store(p.at.displacement.x, out.shape.u);
    store(p.at.displacement.y, out.shape.v);
    out.zncc = p.zncc;
    out.residual_sd = p.converged ? icgn::residual_sd(p.zncc, s.energy, s.count, parameters) : 0;
    out.unit_sigma_u = s.unit_sigma_u;
    out.unit_sigma_v = s.unit_sigma_v;
    out.iterations = static_cast<std::int16_t>(p.iterations);
    out.status = status;
    out.unused = 0;
  }

 private:
  /// Changes the progress, for all lanes.
  template <typename Change>
  __device__ void set(Change&& change) {
    __syncwarp();
    if (lane_index() == 0) change(progress_);
    __syncwarp();
  }

  __device__ const PreparedSubset& subset() const { return frame_.subsets[task_.point]; }
  __device__ float radius() const { return static_cast<float>(frame_.deal.size / 2); }

  __device__ bool near_start() const {
    return fabsf(progress_.at.displacement.x.c - task_.start.u[0]) <= radius() &&
           fabsf(progress_.at.displacement.y.c - task_.start.v[0]) <= radius();
  }

  __device__ bool inside_current() const {
    const auto& [x, y] = progress_.at.displacement;
    const bool surely =
        largest_value(x, radius()) <= progress_.room && largest_value(y, radius()) <= progress_.room;
    return surely || corners_inside(frame_, progress_.at, task_);
  }

  /// One iteration; not_converged where there is more to do.
  __device__ Status iterate() {
    using Total = typename LaneSums<kOrder>::Total;
    float total;
    if (!Variant::add(frame_, progress_.at, total)) return unfinished;
    const float g = from_lane(total, Total::lane_of(0)), gg = from_lane(total, Total::lane_of(1));
    const float fg = from_lane(total, Total::lane_of(2));
    const PreparedSubset& s = subset();
    const float mean = g / s.count, energy = gg - mean * g, covariance = fg - s.mean * g;
    const bool some_contrast = energy > static_cast<float>(icgn::least_energy) * s.energy;
    const float sd_ratio = sqrtf(s.energy / energy);
    const float zncc = fminf(fmaxf(covariance * sd_ratio / s.energy, -1), 1);
    set([&](Progress<kOrder>& p) {
      ++p.iterations;
      p.at.offset += mean;
      if (some_contrast) p.zncc = zncc;
    });
    if (!some_contrast) return Status::low_correlation;
    const float gain = sd_ratio * icgn::relaxation(s.noise_share, zncc);
    return move(step<Total>(total, mean, covariance, gain));
  }

  /// Gauss-Newton step from the sums: lane k has to do with parameter k.
  template <typename Total>
  __device__ ShapeOf<kOrder> step(float total, float mean, float covariance, float gain) const {
    const int term = min(lane_index(), parameters - 1);
    const float* column = frame_.matrices + task_.point * std::int64_t{matrix_floats(kOrder)} + term;
    const float sum = column[parameters * parameters], grey = column[parameters * (parameters + 1)];
    const auto factor = static_cast<float>(icgn::basis(term % (parameters / 2)).factor);
    const float product = factor * from_lane(total, Total::lane_of(3 + term));
    const float residual = gain * (product - mean * sum - covariance * grey);
    float change = 0;
#pragma unroll
    for (int c = 0; c < parameters; ++c) change += column[c * parameters] * from_lane(residual, c);
    return shape_from_lanes<kOrder>(factor * change);
  }

  /// Takes the step: `step` displaces the reference subset, so its inverse is composed with the shape.
  __device__ Status move(const ShapeOf<kOrder>& step) {
    const ShapeOf<kOrder> change = warp_of(step);
    if (!(jacobian(change) > static_cast<float>(icgn::least_jacobian))) return Status::diverged;
    ShapeOf<kOrder> moved = compose(warp_of(progress_.at.displacement), inverse(change));
    moved.x.x -= 1;
    moved.y.y -= 1;
    const bool converged = largest_displacement(step, radius()) < frame_.tolerance;
    set([&](Progress<kOrder>& p) {
      p.at.displacement = moved;
      p.converged = converged;
    });
    if (!converged) return Status::not_converged;
    if (progress_.zncc < frame_.min_zncc) return Status::low_correlation;
    return inside_current() ? Status::ok : Status::out_of_image;
  }

  const RefineFrame& frame_;
  const RefineTask& task_;
  Progress<kOrder>& progress_;
};

template <int kOrder, typename Variant>
__device__ void refine_task(const RefineFrame& frame, std::int64_t task, const RelativeShape& shape,
                            int iterations) {
  __shared__ Progress<kOrder> progress[warps];
  Refinement<kOrder, Variant> refinement(frame, frame.tasks[task], shape, iterations,
                                         progress[threadIdx.x / warp_size]);
  const Status status = refinement.run();
  refinement.store_result(status, frame.results[task]);
}

template <int kDegree, int kOrder>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor<kDegree, kOrder>)
    refine_sliding(const __grid_constant__ RefineFrame frame) {
  for_each_task(frame.count, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    refine_task<kOrder, Sliding<kDegree, kOrder>>(frame, task, frame.tasks[task].start, 0);
  });
}

/// Goes on where the fast variant stopped.
template <int kDegree, int kOrder>
__global__ void __launch_bounds__(threads, blocks_per_multiprocessor<kDegree, kOrder>)
    refine_gathering(const __grid_constant__ RefineFrame frame) {
  for_each_task(frame.count, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const RefineResult& so_far = frame.results[task];
    if (so_far.status == unfinished)
      refine_task<kOrder, Gathering<kDegree, kOrder>>(frame, task, so_far.shape, so_far.iterations);
  });
}

// ---- launches ----

template <int kDegree, int kOrder>
void launch(const RefineFrame& frame, StreamHandle stream) {
  const unsigned blocks = grid_size(frame.count, warps);
  refine_sliding<kDegree, kOrder><<<blocks, threads, 0, stream>>>(frame);
  refine_gathering<kDegree, kOrder><<<blocks, threads, 0, stream>>>(frame);
}

template <int kDegree>
void launch_of_degree(const RefineFrame& frame, int order, StreamHandle stream) {
  if (order == 0) launch<kDegree, 0>(frame, stream);
  if (order == 1) launch<kDegree, 1>(frame, stream);
  if (order == 2) launch<kDegree, 2>(frame, stream);
}

}  // namespace

void launch_refine(const RefineReference& reference, const RefineOptions& options,
                   const PreparedSubset* subsets, const float* matrices, const float* coefficients,
                   const RefineTask* tasks, std::int64_t count, RefineResult* results, StreamHandle stream) {
  if (count == 0) return;
  const RefineFrame frame{reference,
                          coefficients,
                          subsets,
                          matrices,
                          tasks,
                          results,
                          count,
                          Deal(options.subset),
                          static_cast<float>(options.tolerance),
                          static_cast<float>(options.min_zncc),
                          options.max_iterations};
  if (options.interpolation == Interpolation::cubic)
    launch_of_degree<3>(frame, options.order, stream);
  else
    launch_of_degree<5>(frame, options.order, stream);
  check_launch("refinement");
}

}  // namespace dic::kernels
