#pragma once

#include "refine/iteration.cuh"

// The scalar part of the refinement, done by one lane per point.
namespace dic::kernels {

constexpr std::int32_t no_task = -1;

/// State of a point between iterations, in shared memory. With sizes that are no multiple of 16 bytes,
/// registers spill.
template <int kOrder, typename T>
struct alignas(16) Progress {
  std::int32_t task;
  IterationState<kOrder, T> state;
  float room;  ///< see room_of
  T zncc;
  T last_step;               ///< largest displacement, px; 0: none yet
  T step_before;             ///< see icgn::is_last_step
  T misfit, noise_fraction;  ///< predicted values after the last step; see icgn
  bool loose;  ///< the sums of this iteration are less accurate, as Sliding::reach allows after long steps
  bool converged;
  bool from_start;  ///< this variant did all iterations
  Status status;
  T totals[warp_size];  ///< sums over all pixels, distributed over the lanes as by LaneSums::Total
};

/// Largest distance that all pixels of a subset may move from their whole-pixel displacement without leaving
/// the current image, px.
__device__ inline float room_of(const RefineArguments& args, const PreparedSubset& s,
                                const RefineTask& task) {
  const int x = s.x + task.u, y = s.y + task.v;
  const int left = min(x + s.left, y + s.top);
  const int right =
      min(args.reference.layout.width - 1 - x - s.right, args.reference.layout.height - 1 - y - s.bottom);
  return static_cast<float>(min(left, right)) + static_cast<float>(icgn::border);
}

/// A rectangle of a subset's pixels, relative to its centre, inclusive.
struct SubsetRectangle {
  int left, right, top, bottom;
};

/// True if the displaced pixels of a rectangle stay in the current image.
template <typename T, int kDegree>
__device__ bool corners_inside(const RefineArguments& args, const BasicWarp<T, kDegree>& displacement,
                               const PreparedSubset& s, const RefineTask& task, const SubsetRectangle& r) {
  const auto& [x, y] = displacement;
  const auto w = static_cast<T>(r.right - r.left), h = static_cast<T>(r.bottom - r.top);
  const auto within = [](T position, T bulge, int origin, int length) {
    const T low = static_cast<T>(-origin) - static_cast<T>(icgn::border);
    const T high = static_cast<T>(length - 1 - origin) + static_cast<T>(icgn::border);
    return position - bulge >= low && position + bulge <= high;
  };
  bool inside = true;
#pragma unroll 1
  for (int corner = 0; corner < 4; ++corner) {
    const auto i = static_cast<T>(corner & 1 ? r.right : r.left),
               j = static_cast<T>(corner & 2 ? r.bottom : r.top);
    inside = inside && within(i + x(i, j), icgn::bulge(x, w, h), s.x + task.u, args.reference.layout.width) &&
             within(j + y(i, j), icgn::bulge(y, w, h), s.y + task.v, args.reference.layout.height);
  }
  return inside;
}

/// True if the displaced pixels of a masked subset that count stay in the current image.
template <typename T, int kDegree>
__device__ bool rows_inside(const RefineArguments& args, const BasicWarp<T, kDegree>& displacement,
                            const PreparedSubset& s, const RefineTask& task) {
  bool inside = true;
#pragma unroll 1
  for (int j = s.top; j <= s.bottom && inside; ++j) {
    const PartRow row = args.reference.masks.shown(task.point, j, s.left, s.right);
    inside = row.count() == 0 || corners_inside(args, displacement, s, task, {row.first, row.last, j, j});
  }
  return inside;
}

template <typename T, int kDegree>
__device__ Polynomial<T, kDegree> load(const float (&from)[6]) {
  if constexpr (kDegree == 1) return {from[0], from[1], from[2]};
  return {from[0], from[1], from[2], from[3], from[4], from[5]};
}

template <typename T, int kDegree>
__device__ void store(const Polynomial<T, kDegree>& p, float (&out)[6]) {
  const T coefficients[6] = {p.c, p.x, p.y, p.xx, p.xy, p.yy};
#pragma unroll
  for (int k = 0; k < 6; ++k) out[k] = static_cast<float>(coefficients[k]);
}

template <typename T, int kDegree>
__device__ bool is_finite(const BasicWarp<T, kDegree>& d) {
  const T linear = d.x.c + d.x.x + d.x.y + d.y.c + d.y.x + d.y.y;
  return isfinite(kDegree == 1 ? linear : linear + d.x.xx + d.x.xy + d.x.yy + d.y.xx + d.y.xy + d.y.yy);
}

/// Gauss-Newton matrix of a point, as `prepare` stored it.
template <int kOrder, typename T>
struct GaussNewtonMatrix {
  static constexpr int kParameters = 2 * icgn::monomial_count(kOrder);
  const float4* values;

  __device__ GaussNewtonMatrix(const RefineArguments& args, std::int64_t point)
      : values(reinterpret_cast<const float4*>(args.matrices + point * matrix_floats(kOrder))) {}

  /// Subtracts from the right-hand side `residual` the part that changes of mean and contrast explain.
  __device__ void project(T (&residual)[kParameters], T mean, T covariance) const {
    each<2 * kParameters>(0, [&](int k, float value) {
      if (k < kParameters)
        residual[k] -= mean * value;
      else
        residual[k - kParameters] -= covariance * value;
    });
  }

  /// Multiplies the inverse with `right`.
  __device__ void multiply(const T (&right)[kParameters], T (&out)[kParameters]) const {
#pragma unroll
    for (T& value : out) value = 0;
    each<kParameters*(kParameters + 1) / 2>(2 * kParameters, [&](int k, float value) {
      int r = 0;
      while ((r + 1) * (r + 2) / 2 <= k) ++r;
      const int c = k - r * (r + 1) / 2;
      out[r] += value * right[c];
      if (c != r) out[c] += value * right[r];
    });
  }

 private:
  /// Calls body(k, value) for kCount values, beginning with number `first`.
  template <int kCount, typename Body>
  __device__ void each(int first, Body&& body) const {
#pragma unroll
    for (int k = 0; k < kCount; k += 4) {
      const float4 four = values[(first + k) / 4];
      body(k, four.x);
      if (k + 1 < kCount) body(k + 1, four.y);
      if (k + 2 < kCount) body(k + 2, four.z);
      if (k + 3 < kCount) body(k + 3, four.w);
    }
  }
};

/// Refinement of one point. Variant: see Sliding.
template <int kOrder, typename Variant>
class Point {
 public:
  using Real = typename Variant::Real;
  static constexpr int terms = icgn::monomial_count(kOrder), parameters = 2 * terms;

  __device__ Point(const RefineArguments& args, Progress<kOrder, Real>& progress)
      : args_(args), p_(progress) {}

  __device__ bool has_task() const { return p_.task != no_task; }

  /// Begins a task, if it is for this variant.
  __device__ void begin(std::int32_t number) {
    RefineResult& so_far = args_.results[number];
    if (Variant::exact && so_far.status != pending) return;
    const RefineTask& t = args_.tasks.first[number];
    if (!Variant::exact && t.point == no_point) {
      so_far.status = Status::masked;  // the next variants skip this point
      return;
    }
    p_.task = number;
    const PreparedSubset& s = args_.subsets[t.point];
    const int stride = args_.reference.layout.stride;
    start_at(Variant::exact ? so_far.shape : t.start, Variant::exact ? so_far.iterations : 0);
    p_.state.point = t.point;
    p_.state.centre = s.y * stride + s.x;
    p_.state.shift = t.v * stride + t.u;
    p_.state.whole = s.right - s.left == args_.schedule.subset - 1 &&
                     s.bottom - s.top == args_.schedule.subset - 1 && !s.weighted;
    p_.room = room_of(args_, s, t);
    p_.status = s.status != Status::ok                     ? s.status
                : Variant::takes(args_, s, p_.state.whole) ? in_progress
                                                           : pending;
  }

  /// Prepares an iteration. Returns false if there is none; the result is then stored.
  __device__ bool may_iterate() {
    if (p_.status == in_progress) p_.status = status_before_iteration();
    const bool failed =
        p_.status != Status::ok && p_.status != in_progress && p_.status != pending && p_.status != hopeless;
    if (failed && subset().status == Status::ok && Variant::leaves(p_.from_start, p_.state.iterations)) {
      // If convergence is slow, the status depends on the path: the next variant begins at the start.
      start_at(task().start, 0);
      p_.status = pending;
    }
    if (p_.status == in_progress) return true;
    store_result();
    p_.task = no_task;
    return false;
  }

  /// Moves the point by a Gauss-Newton step from the sums.
  __device__ void iterate() { p_.status = status_after_iteration(); }

 private:
  __device__ void start_at(const RelativeShape& shape, int iterations) {
    constexpr int degree = polynomial_degree<kOrder>;
    p_.state.displacement = {load<Real, degree>(shape.u), load<Real, degree>(shape.v)};
    p_.state.iterations = iterations;
    p_.state.contrast = 1;
    p_.state.offset = 0;
    p_.from_start = iterations == 0;
    p_.zncc = 0;
    p_.last_step = 0;
    p_.converged = false;
  }

  __device__ Status status_before_iteration() {
    const bool slow =
        p_.state.iterations >= icgn::float_iterations && Variant::leaves(p_.from_start, p_.state.iterations);
    if (slow || p_.state.iterations >= args_.max_iterations) return unfinished();
    if (!near_start()) return Status::diverged;
    if (!inside_current()) return is_finite(p_.state.displacement) ? Status::out_of_image : Status::diverged;
    p_.state.rows_of_block = Variant::rows_of_block(args_, p_.state, false, sigma());
    const bool far = p_.last_step == 0 || p_.last_step >= Variant::long_step;
    p_.loose = far && p_.state.rows_of_block < args_.schedule.subset;
    if (p_.loose) p_.state.rows_of_block = Variant::rows_of_block(args_, p_.state, true, sigma());
    return p_.state.rows_of_block == 0 ? pending : in_progress;
  }

  __device__ Status status_after_iteration() {
    const PreparedSubset& s = subset();
    // The fit was subtracted: sums and their rounding errors are small. f - mean is orthogonal to constants.
    const Real e = total(0), mean = e / s.count, rest = total(2) - s.mean * e, contrast = p_.state.contrast;
    const Real covariance = rest + contrast * s.energy;
    const Real energy = total(1) - mean * e + contrast * (rest + covariance);
    const int iteration = ++p_.state.iterations;
    p_.state.contrast = covariance / s.energy;
    p_.state.offset += mean + (contrast - p_.state.contrast) * s.mean;
    if (!(energy > static_cast<Real>(icgn::least_energy) * s.energy)) return Status::low_correlation;
    const Real sd_ratio = sqrt(s.energy / energy), zncc = covariance * sd_ratio / s.energy;
    p_.zncc = clamped(zncc);
    if (args_.tasks.most_residuals &&
        icgn::is_hopeless(iteration, residual_sd(), args_.tasks.most_residuals[p_.state.point]))
      return hopeless;
    // The gathering variant repeats a last iteration that is not trusted: no step may be left then.
    p_.step_before = Variant::trusts(sigma(), iteration) ? p_.last_step : Real{0};
    const ShapeOf<kOrder, Real> step = step_of(mean, rest, sd_ratio);
    p_.last_step = largest_displacement(step, radius());
    p_.converged =
        !p_.loose &&
        icgn::is_last_step<Real>(p_.last_step, p_.step_before, p_.noise_fraction,
                                 icgn::tolerance_at<Real>(iteration, args_.max_iterations, args_.tolerance));
    if (p_.converged && !Variant::trusts(sigma(), iteration)) {
      --p_.state.iterations;  // the gathering variant repeats this iteration with exact weights
      return pending;
    }
    if (p_.converged) p_.zncc = clamped(1 - p_.misfit);
    if constexpr (Variant::exact)  // others do not decide what has no end within a few iterations
      if (!p_.converged && iteration >= icgn::patience(args_.max_iterations, args_.tasks.are_parts) &&
          icgn::is_stuck<Real>(iteration, args_.max_iterations, p_.last_step, p_.step_before,
                               args_.tolerance))
        return unfinished();
    return move(step);
  }

  __device__ Status unfinished() const {
    return p_.zncc < args_.min_zncc ? Status::low_correlation : Status::not_converged;
  }
  __device__ const RefineTask& task() const { return args_.tasks.first[p_.task]; }
  __device__ const PreparedSubset& subset() const { return args_.subsets[p_.state.point]; }
  __device__ Real radius() const { return static_cast<Real>(args_.schedule.subset / 2); }
  __device__ float residual_sd() const {
    return icgn::residual_sd(static_cast<float>(p_.zncc), subset().energy, subset().count, subset().fitted);
  }
  /// Standard deviation of the displacement, px.
  __device__ float sigma() const {
    return residual_sd() * fmaxf(subset().unit_sigma_u, subset().unit_sigma_v);
  }
  __device__ Real total(int k) const { return p_.totals[LaneSums<kOrder>::Total::lane_of(k)]; }

  __device__ bool near_start() const {
    const auto& [x, y] = p_.state.displacement;
    return fabs(x.c - task().start.u[0]) <= radius() && fabs(y.c - task().start.v[0]) <= radius();
  }

  __device__ bool inside_current() const {
    const auto& [x, y] = p_.state.displacement;
    const auto stays = [&](const auto& p) {
      return largest_value(p, radius()) + icgn::bulge(p, 2 * radius(), 2 * radius()) <= p_.room;
    };
    if (stays(x) && stays(y)) return true;
    const PreparedSubset& s = subset();
    if (corners_inside(args_, p_.state.displacement, s, task(), {s.left, s.right, s.top, s.bottom}))
      return true;
    if constexpr (Variant::exact)
      return args_.reference.masks.words && s.weighted &&
             rows_inside(args_, p_.state.displacement, s, task());
    return false;
  }

  __device__ static Real clamped(Real zncc) { return zncc < -1 ? -1 : zncc < 1 ? zncc : 1; }

  __device__ ShapeOf<kOrder, Real> step_of(Real mean, Real covariance, Real sd_ratio) const {
    const GaussNewtonMatrix<kOrder, Real> matrix(args_, p_.state.point);
    const float unit = gradient_unit(*args_.reference.range);
    Real residual[parameters], change[parameters];
#pragma unroll
    for (int k = 0; k < parameters; ++k)
      residual[k] = static_cast<float>(icgn::basis(k % terms).factor) * unit * total(3 + k);
    matrix.project(residual, mean, covariance);
    matrix.multiply(residual, change);
    Real descent = 0;
#pragma unroll
    for (int k = 0; k < parameters; ++k) descent += residual[k] * change[k];
    const PreparedSubset& s = subset();
    p_.misfit = icgn::misfit_after<Real>(p_.zncc, sd_ratio * sd_ratio * descent, s.energy);
    p_.noise_fraction = icgn::noise_fraction<Real>(s.noise_share, p_.misfit);
    const Real gain = sd_ratio * icgn::relaxation(p_.noise_fraction);
    const auto polynomial = [&](const Real* c) {
      Polynomial<Real, polynomial_degree<kOrder>> p;
      p.c = gain * c[0];
      if constexpr (kOrder >= 1) {
        p.x = gain * c[1];
        p.y = gain * c[2];
      }
      if constexpr (kOrder == 2) {
        p.xx = gain * c[3] / 2;
        p.xy = gain * c[4];
        p.yy = gain * c[5] / 2;
      }
      return p;
    };
    return {polynomial(change), polynomial(change + terms)};
  }

  /// Inverse-compositional update: the shape is composed with the inverse of the step.
  __device__ Status move(const ShapeOf<kOrder, Real>& step) {
    const ShapeOf<kOrder, Real> change = warp_of(step);
    if (!(jacobian(change) > static_cast<Real>(icgn::least_jacobian))) return Status::diverged;
    ShapeOf<kOrder, Real> moved = compose(warp_of(p_.state.displacement), inverse(change));
    moved.x.x -= 1;
    moved.y.y -= 1;
    p_.state.displacement = moved;
    if (!p_.converged) return in_progress;
    if (p_.zncc < args_.min_zncc) return Status::low_correlation;
    return inside_current() ? Status::ok : Status::out_of_image;
  }

  __device__ void store_result() const {
    const PreparedSubset& s = subset();
    RefineResult& out = args_.results[p_.task];
    store(p_.state.displacement.x, out.shape.u);
    store(p_.state.displacement.y, out.shape.v);
    out.zncc = static_cast<float>(p_.zncc);
    out.residual_sd = p_.converged ? residual_sd() : 0;
    out.unit_sigma_u = s.unit_sigma_u;
    out.unit_sigma_v = s.unit_sigma_v;
    out.unit_covariance = s.unit_covariance;
    out.gradient_noise = s.gradient_noise;
    out.iterations = static_cast<std::int16_t>(p_.state.iterations);
    out.status = p_.status == hopeless ? Status::low_correlation : p_.status;
    out.unused = 0;
  }

  const RefineArguments& args_;
  Progress<kOrder, Real>& p_;
};

}  // namespace dic::kernels
