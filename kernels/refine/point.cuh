#pragma once

#include "refine/frame.cuh"

// The scalar part of the refinement of one point, by one lane.
namespace dic::kernels {

/// Status of a point that a variant leaves to the next one.
constexpr Status unfinished{255};
/// Status of a point that is being refined.
constexpr Status under_way{254};

constexpr std::int32_t no_task = -1;

/// How far the refinement of a point has come, in shared memory.
template <int kOrder, typename T>
struct Progress {
  std::int32_t task;
  Placed<kOrder, T> at;
  float room;
  T zncc;
  T last_step;  ///< px, largest displacement
  bool loose, converged;
  bool from_start;  ///< did this variant make all iterations?
  Status status;
  T totals[warp_size];  ///< over all pixels, as LaneSums::Total leaves them in the lanes
};

/// How far every pixel of a subset at its whole-pixel displacement may move without leaving the current
/// image, px.
__device__ inline float room_of(const RefineFrame& frame, const PreparedSubset& s, const RefineTask& task) {
  const int x = s.x + task.u, y = s.y + task.v;
  const int left = min(x + s.left, y + s.top);
  const int right =
      min(frame.reference.layout.width - 1 - x - s.right, frame.reference.layout.height - 1 - y - s.bottom);
  return static_cast<float>(min(left, right)) + static_cast<float>(icgn::border);
}

/// Do the displaced pixels stay in the current image?
template <typename T, int kDegree>
__device__ bool corners_inside(const RefineFrame& frame, const BasicWarp<T, kDegree>& displacement,
                               const PreparedSubset& s, const RefineTask& task) {
  const auto& [x, y] = displacement;
  const auto w = static_cast<T>(s.right - s.left), h = static_cast<T>(s.bottom - s.top);
  const auto within = [](T position, T bulge, int origin, int length) {
    const T low = static_cast<T>(-origin) - static_cast<T>(icgn::border);
    const T high = static_cast<T>(length - 1 - origin) + static_cast<T>(icgn::border);
    return position - bulge >= low && position + bulge <= high;
  };
  bool inside = true;
#pragma unroll 1
  for (int corner = 0; corner < 4; ++corner) {
    const auto i = static_cast<T>(corner & 1 ? s.right : s.left),
               j = static_cast<T>(corner & 2 ? s.bottom : s.top);
    inside = inside &&
             within(i + x(i, j), icgn::bulge(x, w, h), s.x + task.u, frame.reference.layout.width) &&
             within(j + y(i, j), icgn::bulge(y, w, h), s.y + task.v, frame.reference.layout.height);
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

/// What the iterations read of a point's Gauss-Newton matrix.
template <int kOrder, typename T>
struct Matrix {
  static constexpr int kParameters = 2 * icgn::monomial_count(kOrder);
  const float4* values;

  __device__ Matrix(const RefineFrame& frame, std::int64_t point)
      : values(reinterpret_cast<const float4*>(frame.matrices + point * matrix_floats(kOrder))) {}

  /// residual: right side before the projection on what mean and contrast cannot follow.
  __device__ void project(T (&residual)[kParameters], T mean, T covariance) const {
    each<2 * kParameters>(0, [&](int k, float value) {
      if (k < kParameters)
        residual[k] -= mean * value;
      else
        residual[k - kParameters] -= covariance * value;
    });
  }

  /// Product of the inverse with `right`.
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
  /// Calls body(k, value) for kCount values from number `first` on.
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

/// The refinement of one point. Variant: see Sliding.
template <int kOrder, typename Variant>
class Point {
 public:
  using Real = typename Variant::Real;
  static constexpr int terms = icgn::monomial_count(kOrder), parameters = 2 * terms;

  __device__ Point(const RefineFrame& frame, Progress<kOrder, Real>& progress)
      : frame_(frame), p_(progress) {}

  __device__ bool has_task() const { return p_.task != no_task; }

  /// Takes up a task, if it is for this variant.
  __device__ void begin(std::int32_t number) {
    RefineResult& so_far = frame_.results[number];
    if (Variant::exact && so_far.status != unfinished) return;
    const RefineTask& t = frame_.tasks.first[number];
    if (!Variant::exact && t.point == no_point) {
      so_far.status = Status::masked;  // nothing that the next variants would finish
      return;
    }
    p_.task = number;
    const PreparedSubset& s = frame_.subsets[t.point];
    const int stride = frame_.reference.layout.stride;
    start_at(Variant::exact ? so_far.shape : t.start, Variant::exact ? so_far.iterations : 0);
    p_.at.point = t.point;
    p_.at.centre = s.y * stride + s.x;
    p_.at.shift = t.v * stride + t.u;
    p_.at.whole =
        s.right - s.left == frame_.deal.size - 1 && s.bottom - s.top == frame_.deal.size - 1 && !s.weighted;
    p_.room = room_of(frame_, s, t);
    p_.status = s.status != Status::ok ? s.status : Variant::takes(s, p_.at.whole) ? under_way : unfinished;
  }

  /// Makes ready for an iteration; false where there will be none, and the result is stored.
  __device__ bool may_iterate() {
    if (p_.status == under_way) p_.status = status_before_iteration();
    const bool failed = p_.status != Status::ok && p_.status != under_way && p_.status != unfinished;
    if (failed && subset().status == Status::ok && Variant::leaves(p_.from_start, p_.at.iterations)) {
      // Where it does not converge soon, the way it went matters: another variant goes it from the start.
      start_at(task().start, 0);
      p_.status = unfinished;
    }
    if (p_.status == under_way) return true;
    store_result();
    p_.task = no_task;
    return false;
  }

  /// Moves the point by a Gauss-Newton step from the sums.
  __device__ void iterate() { p_.status = status_after_iteration(); }

 private:
  __device__ void start_at(const RelativeShape& shape, int iterations) {
    constexpr int degree = polynomial_degree<kOrder>;
    p_.at.displacement = {load<Real, degree>(shape.u), load<Real, degree>(shape.v)};
    p_.at.iterations = iterations;
    p_.at.contrast = 1;
    p_.at.offset = 0;
    p_.from_start = iterations == 0;
    p_.zncc = 0;
    p_.last_step = Variant::far;
    p_.converged = false;
  }

  __device__ Status status_before_iteration() {
    const bool slow =
        p_.at.iterations >= icgn::float_iterations && Variant::leaves(p_.from_start, p_.at.iterations);
    if (slow || p_.at.iterations >= frame_.max_iterations)
      return p_.zncc < frame_.min_zncc ? Status::low_correlation : Status::not_converged;
    if (!near_start()) return Status::diverged;
    if (!inside_current()) return is_finite(p_.at.displacement) ? Status::out_of_image : Status::diverged;
    p_.at.rows_of_block = Variant::rows_of_block(frame_, p_.at, false, sigma());
    p_.loose = p_.last_step >= Variant::far && p_.at.rows_of_block < frame_.deal.size;
    if (p_.loose) p_.at.rows_of_block = Variant::rows_of_block(frame_, p_.at, true, sigma());
    return p_.at.rows_of_block == 0 ? unfinished : under_way;
  }

  __device__ Status status_after_iteration() {
    const PreparedSubset& s = subset();
    // Less the fit, sums are small, and so are their rounding errors; f - mean is orthogonal to constants.
    const Real e = total(0), mean = e / s.count, rest = total(2) - s.mean * e, contrast = p_.at.contrast;
    const Real covariance = rest + contrast * s.energy;
    const Real energy = total(1) - mean * e + contrast * (rest + covariance);
    const int iteration = ++p_.at.iterations;
    p_.at.contrast = covariance / s.energy;
    p_.at.offset += mean + (contrast - p_.at.contrast) * s.mean;
    if (!(energy > static_cast<Real>(icgn::least_energy) * s.energy)) return Status::low_correlation;
    const Real sd_ratio = sqrt(s.energy / energy), zncc = covariance * sd_ratio / s.energy;
    p_.zncc = zncc < -1 ? -1 : zncc < 1 ? zncc : 1;
    const ShapeOf<kOrder, Real> step = step_of(mean, rest, sd_ratio);
    p_.last_step = largest_displacement(step, radius());
    p_.converged =
        p_.last_step < icgn::tolerance_at(iteration, frame_.max_iterations, frame_.tolerance) && !p_.loose;
    if (!p_.converged || Variant::trusts(sigma(), iteration)) return move(step);
    --p_.at.iterations;  // the exact variant has the last word
    return unfinished;
  }

  __device__ const RefineTask& task() const { return frame_.tasks.first[p_.task]; }
  __device__ const PreparedSubset& subset() const { return frame_.subsets[p_.at.point]; }
  __device__ Real radius() const { return static_cast<Real>(frame_.deal.size / 2); }
  __device__ float residual_sd() const {
    return icgn::residual_sd(static_cast<float>(p_.zncc), subset().energy, subset().count, parameters);
  }
  /// Of the displacement, px.
  __device__ float sigma() const {
    return residual_sd() * fmaxf(subset().unit_sigma_u, subset().unit_sigma_v);
  }
  __device__ Real total(int k) const { return p_.totals[LaneSums<kOrder>::Total::lane_of(k)]; }

  __device__ bool near_start() const {
    const auto& [x, y] = p_.at.displacement;
    return fabs(x.c - task().start.u[0]) <= radius() && fabs(y.c - task().start.v[0]) <= radius();
  }

  __device__ bool inside_current() const {
    const auto& [x, y] = p_.at.displacement;
    const auto stays = [&](const auto& p) {
      return largest_value(p, radius()) + icgn::bulge(p, 2 * radius(), 2 * radius()) <= p_.room;
    };
    return (stays(x) && stays(y)) || corners_inside(frame_, p_.at.displacement, subset(), task());
  }

  __device__ ShapeOf<kOrder, Real> step_of(Real mean, Real covariance, Real sd_ratio) const {
    const Matrix<kOrder, Real> matrix(frame_, p_.at.point);
    const float unit = gradient_unit(*frame_.reference.range);
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
    const Real misfit = icgn::misfit_after<Real>(p_.zncc, sd_ratio * sd_ratio * descent, s.energy);
    const Real gain = sd_ratio * icgn::relaxation<Real>(s.noise_share, misfit);
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

  /// `step` displaces the reference subset, so its inverse is composed with the shape.
  __device__ Status move(const ShapeOf<kOrder, Real>& step) {
    const ShapeOf<kOrder, Real> change = warp_of(step);
    if (!(jacobian(change) > static_cast<Real>(icgn::least_jacobian))) return Status::diverged;
    ShapeOf<kOrder, Real> moved = compose(warp_of(p_.at.displacement), inverse(change));
    moved.x.x -= 1;
    moved.y.y -= 1;
    p_.at.displacement = moved;
    if (!p_.converged) return under_way;
    if (p_.zncc < frame_.min_zncc) return Status::low_correlation;
    return inside_current() ? Status::ok : Status::out_of_image;
  }

  __device__ void store_result() const {
    const PreparedSubset& s = subset();
    RefineResult& out = frame_.results[p_.task];
    store(p_.at.displacement.x, out.shape.u);
    store(p_.at.displacement.y, out.shape.v);
    out.zncc = static_cast<float>(p_.zncc);
    out.residual_sd = p_.converged ? residual_sd() : 0;
    out.unit_sigma_u = s.unit_sigma_u;
    out.unit_sigma_v = s.unit_sigma_v;
    out.iterations = static_cast<std::int16_t>(p_.at.iterations);
    out.status = p_.status;
    out.unused = 0;
  }

  const RefineFrame& frame_;
  Progress<kOrder, Real>& p_;
};

}  // namespace dic::kernels
