#pragma once

#include <cstdint>
#include <dic/shared/node_window.hpp>
#include <dic/shared/status.hpp>
#include <dic/shared/strain.hpp>
#include <dic/shared/two_cameras.hpp>

/// Points of a surface from the matches of two cameras, and their errors, for CPU and GPU.
namespace dic::stereo {

/// A subset in one image: where it is, and how sure that is.
struct Seen {
  double x, y;
  double sigma_x, sigma_y;  ///< px
  Matrix2 map;              ///< derivative by the point in the reference

  DIC_HOST_DEVICE Matrix2 covariance() const { return matrix2(sigma_x * sigma_x, 0, 0, sigma_y * sigma_y); }
};

/// Part of the errors of a match that all matches of one reference subset share: the noise of the reference
/// shifts all of them by the same motion in the reference.
struct SharedNoise {
  Matrix2 map;
  Matrix2 covariance;  ///< covariance of that motion, px^2

  DIC_HOST_DEVICE explicit SharedNoise(const Seen& seen) : map(seen.map) {
    /// Share of the variance of a match that comes from the noise of the reference; both images are equally
    /// noisy.
    constexpr double kReferenceShare = 0.5;
    const Matrix2 back = inverse(map);
    covariance = kReferenceShare * (back * seen.covariance() * back.transposed());
  }
};

/// The smaller of two covariances, along each of the directions in which their errors are independent. It
/// exceeds neither along any direction, so that the covariance of all matches with one subset has no negative
/// variance.
DIC_HOST_DEVICE inline Matrix2 smaller_of(const Matrix2& a, const Matrix2& b) {
  if (!(determinant(a) > 0)) return Matrix2::zero();  // exact
  // Ratios of the variances of b and a along those directions: the eigenvalues of a^-1 b.
  const Matrix2 ratios = inverse(a) * b;
  const double half = (ratios(0, 0) + ratios(1, 1)) / 2, square = half * half - determinant(ratios);
  const double root = std::sqrt(square > 0 ? square : 0), least = half - root, most = half + root;
  if (least >= 1) return a;
  if (most <= 1) return b;
  const double of_b = (1 - least) / (most - least), of_a = 1 - of_b * most;
  return of_a * a + of_b * b;
}

/// Common part of the errors of two matches, as it appears in both images. The error of order 2 is that of
/// order 1 and more, so that the smaller noise is common.
DIC_HOST_DEVICE inline Matrix2 common_part(const SharedNoise& one, const SharedNoise& other) {
  return one.map * smaller_of(one.covariance, other.covariance) * other.map.transposed();
}

/// Axes in those of the left camera: a position P has the coordinates rotation (P - origin).
struct AxesTerms {
  Matrix3 rotation;
  Vector3 origin;
};

/// A point of the surface at one time.
struct SurfacePoint {
  Meeting meeting;         ///< position and derivative along the axes of the measurement
  double epipolar_px = 0;  ///< distance from the epipolar line
  double epipolar_sigma = 0;
  PixelCovariance pixels;  ///< covariance of both image points
};

DIC_HOST_DEVICE inline SurfacePoint meet(const CameraPair& cameras, const AxesTerms& axes, const Seen& left,
                                         const Seen& right) {
  SurfacePoint point;
  const Sight l = sight_of(cameras.left, left.x, left.y), r = sight_of(cameras.right, right.x, right.y);
  if (!l.exists() || !r.exists()) return point;
  point.meeting = cameras.meet(l, r, {{{left.sigma_x}, {left.sigma_y}, {right.sigma_x}, {right.sigma_y}}});
  if (!point.meeting.exists) return point;
  point.meeting.position = axes.rotation * (point.meeting.position - axes.origin);
  point.meeting.from_px = axes.rotation * point.meeting.from_px;
  const Matrix2 common = common_part(SharedNoise(left), SharedNoise(right)), of_left = left.covariance(),
                of_right = right.covariance();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) {
      point.pixels(i, j) = of_left(i, j), point.pixels(i + 2, j + 2) = of_right(i, j);
      point.pixels(i, j + 2) = point.pixels(j + 2, i) = common(i, j);
    }
  const EpipolarDistance distance = cameras.epipolar(l, r);
  point.epipolar_px = distance.px;
  point.epipolar_sigma = std::sqrt(dot(distance.by_pixels, point.pixels * distance.by_pixels));
  return point;
}

/// Covariance of the errors of a point in the current frame, and of these (rows) with those in the reference,
/// mm^2.
struct PointErrors {
  float now[6];     ///< xx, yy, zz, xy, xz, yz
  float across[9];  ///< row by row

  DIC_HOST_DEVICE double now_at(int i, int j) const { return now[i == j ? i : i + j + 2]; }
  DIC_HOST_DEVICE double across_at(int i, int j) const { return across[3 * i + j]; }
};

/// A symmetric matrix in the order of PointErrors::now.
DIC_HOST_DEVICE inline void pack(const Matrix3& m, float* to) {
  for (int k = 0; k < 3; ++k) to[k] = static_cast<float>(m(k, k));
  to[3] = static_cast<float>(m(0, 1)), to[4] = static_cast<float>(m(0, 2)),
  to[5] = static_cast<float>(m(1, 2));
}

/// Values of the points in the references that later frames need, at every node.
struct ReferencePoints {
  const Vector3* position;         ///< mm; NaN where there is none
  const FromPixels* from_px;       ///< mm per px
  const float* covariance;         ///< [node][6] by the noise, as PointErrors::now, mm^2
  const float* calibration_sigma;  ///< [node][3], mm
  const float* sigma;              ///< [node][2], of the right image point, px
  const float* map;                ///< [node][4], of the right image point
  const float* incidence;          ///< angle of incidence, degrees; NaN where it is not known
  const Status* status;
};

/// The match of the left reference with one image, at every node.
struct MatchPoints {
  const double *u, *v;
  const float *zncc, *sigma_u, *sigma_v;
  const Status* status;
  const std::int16_t* iterations;
  const float* map;  ///< [node][4]

  DIC_HOST_DEVICE Seen seen(const NodeGrid& grid, std::int64_t k) const {
    const float* const m = map + 4 * k;
    return {grid.x(k) + u[k], grid.y(k) + v[k], double(sigma_u[k]), double(sigma_v[k]),
            matrix2(m[0], m[1], m[2], m[3])};
  }
};

/// Arrays of a StereoFrame, and what the steps need beside them.
struct SurfaceArrays {
  // Field
  double *u, *v;
  float *zncc, *sigma_u, *sigma_v;
  Status* status;
  std::int16_t* iterations;
  // Field::stereo
  double *x, *y, *z, *du, *dv, *dw;
  float *sigma_x, *sigma_y, *sigma_z, *sigma_du, *sigma_dv, *sigma_dw;
  float *calibration_x, *calibration_y, *calibration_z, *calibration_du, *calibration_dv, *calibration_dw;
  float *epipolar, *reprojection, *incidence;
  // Field::strain
  float *exx, *eyy, *exy, *e1, *e2, *von_mises, *sigma_exx, *sigma_eyy, *sigma_exy;
  // Beside the field
  Vector3* displacement;               ///< mm
  PointErrors *errors, *right_errors;  ///< right_errors: the part of the right images alone; may be null
  float* epipolar_sigma;               ///< px
  std::uint8_t* usable;                ///< 1 for each node that is `ok`
  strain::Squares* flattened;          ///< what windows flatten, NaN without a strain
};

/// Number of parameters of a rig of two cameras, see rig_parameter_names().
inline constexpr int kRigParameters = 30;
/// Derivative of a position by the parameters of the rig, mm per unit of each.
using FromRig = SmallMatrix<3, kRigParameters>;

/// Derivatives of an image point, px, by fx, fy, cx, cy, k1, k2, p1, p2, k3, k4, k5, k6, and by the position
/// in the axes of the camera, mm.
struct PointSlopes {
  static constexpr int kLens = 12;
  SmallMatrix<2, kLens> by_lens;
  SmallMatrix<2, 3> by_position;
};

DIC_HOST_DEVICE inline PointSlopes slopes_at(const LensTerms& lens, const Vector3& position) {
  const double a = position[0] / position[2], b = position[1] / position[2];
  const double r2 = a * a + b * b, r4 = r2 * r2, r6 = r4 * r2;
  const double below = 1 + lens.k4 * r2 + lens.k5 * r4 + lens.k6 * r6;
  const double q = (1 + lens.k1 * r2 + lens.k2 * r4 + lens.k3 * r6) / below;
  const double first[2] = {2 * a * b, r2 + 2 * b * b}, second[2] = {r2 + 2 * a * a, 2 * a * b};
  const double bent[2] = {q * a + lens.p1 * first[0] + lens.p2 * second[0],
                          q * b + lens.p1 * first[1] + lens.p2 * second[1]};
  PointSlopes slopes;
  slopes.by_lens = SmallMatrix<2, PointSlopes::kLens>::zero();
  slopes.by_lens(0, 0) = bent[0], slopes.by_lens(0, 2) = 1;
  slopes.by_lens(1, 1) = bent[1], slopes.by_lens(1, 3) = 1;
  const double radial[6] = {r2 / below,      r4 / below,      r6 / below,
                            -q * r2 / below, -q * r4 / below, -q * r6 / below};
  SmallMatrix<2, 8> by_distortion;
  for (int i = 0; i < 2; ++i) {
    const double ray = i == 0 ? a : b;
    by_distortion(i, 0) = ray * radial[0], by_distortion(i, 1) = ray * radial[1];
    by_distortion(i, 2) = first[i], by_distortion(i, 3) = second[i];
    for (int k = 4; k < 8; ++k) by_distortion(i, k) = ray * radial[k - 2];
  }
  const Matrix2 to_px = matrix2(lens.fx, lens.skew, 0, lens.fy);
  by_distortion = to_px * by_distortion;
  for (int i = 0; i < 2; ++i)
    for (int k = 0; k < 8; ++k) slopes.by_lens(i, k + 4) = by_distortion(i, k);

  // dq / d(r^2), and the derivative of the bent ray by the straight one.
  const double dq =
      (lens.k1 + 2 * lens.k2 * r2 + 3 * lens.k3 * r4 - q * (lens.k4 + 2 * lens.k5 * r2 + 3 * lens.k6 * r4)) /
      below;
  const double mixed = 2 * dq * a * b + 2 * lens.p1 * a + 2 * lens.p2 * b;
  const Matrix2 by_ray = matrix2(q + 2 * dq * a * a + 2 * lens.p1 * b + 6 * lens.p2 * a, mixed, mixed,
                                 q + 2 * dq * b * b + 6 * lens.p1 * b + 2 * lens.p2 * a);
  const SmallMatrix<2, 3> ray_by_position = {{{1, 0, -a}, {0, 1, -b}}};
  slopes.by_position = (1 / position[2]) * (to_px * by_ray * ray_by_position);
  return slopes;
}

/// Errors of positions by the covariance of a calibration.
struct CalibrationTerms {
  const double* factor = nullptr;  ///< [parameter][count]: its product with its transpose is the covariance
  int count = 0;                   ///< 0: the covariance is not known

  /// How a position changes with the rig while its image points stay. position: in the axes of the left
  /// camera; from_px: its derivative by the image points, in any axes, which are those of the result.
  DIC_HOST_DEVICE static FromRig from_rig(const CameraPair& cameras, const Vector3& position,
                                          const FromPixels& from_px) {
    constexpr int kLens = PointSlopes::kLens;
    const Vector3 turned = cameras.rotation * position;
    const PointSlopes left = slopes_at(cameras.left, position),
                      right = slopes_at(cameras.right, turned + cameras.translation);
    const SmallMatrix<3, 2> by_left = from_px.columns<2>(0), by_right = from_px.columns<2>(2);
    const SmallMatrix<3, kLens> of_left = by_left * left.by_lens, of_right = by_right * right.by_lens;
    const Matrix3 by_shift = by_right * right.by_position;
    const Matrix3 turn = {
        {{0, turned[2], -turned[1]}, {-turned[2], 0, turned[0]}, {turned[1], -turned[0], 0}}};
    const Matrix3 by_turn = by_shift * turn;
    FromRig out;
    for (int i = 0; i < 3; ++i) {
      for (int k = 0; k < kLens; ++k) out(i, k) = -of_left(i, k), out(i, k + kLens) = -of_right(i, k);
      for (int k = 0; k < 3; ++k)
        out(i, 2 * kLens + k) = -by_turn(i, k), out(i, 2 * kLens + 3 + k) = -by_shift(i, k);
    }
    return out;
  }
  /// Standard deviations along the axes of what changes so with the rig.
  DIC_HOST_DEVICE Vector3 sigmas(const FromRig& from_rig) const {
    Vector3 squares = vector3(0, 0, 0);
    for (int c = 0; c < count; ++c)
      for (int i = 0; i < 3; ++i) {
        double sum = 0;
        for (int k = 0; k < kRigParameters; ++k) sum += from_rig(i, k) * factor[k * count + c];
        squares[i] += sum * sum;
      }
    return vector3(std::sqrt(squares[0]), std::sqrt(squares[1]), std::sqrt(squares[2]));
  }
};

DIC_HOST_DEVICE inline float sigma_of(double variance) {
  return static_cast<float>(std::sqrt(variance > 0 ? variance : 0));
}

/// Everything of the points of a frame that is done node by node.
struct SurfaceJob {
  NodeGrid grid;
  CameraPair cameras;
  AxesTerms axes;
  CalibrationTerms calibration;
  ReferencePoints reference;
  MatchPoints left, right;
  SurfaceArrays out;

  /// How a position in the axes of the measurement changes with the calibration; the axes stay.
  DIC_HOST_DEVICE FromRig from_rig(const Vector3& position, const FromPixels& from_px) const {
    return CalibrationTerms::from_rig(cameras, axes.rotation.transposed() * position + axes.origin, from_px);
  }
  /// The status of a point whose position in the references is needed too. A failure counts before `outlier`.
  DIC_HOST_DEVICE Status joined_status(std::int64_t k) const {
    const Status all[3] = {reference.status[k], left.status[k], right.status[k]};
    bool is_outlier = false;
    for (const Status status : all) {
      if (status != Status::ok && status != Status::outlier) return status;
      is_outlier = is_outlier || status == Status::outlier;
    }
    return is_outlier ? Status::outlier : Status::ok;
  }
  DIC_HOST_DEVICE bool has_values(std::int64_t k) const {
    return out.status[k] == Status::ok || out.status[k] == Status::outlier;
  }
};

/// Makes a node of a frame empty, but for its status.
DIC_HOST_DEVICE inline void clear_point(const SurfaceArrays& a, std::int64_t k) {
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  constexpr auto nothing = std::numeric_limits<float>::quiet_NaN();
  double* const doubles[] = {a.u, a.v, a.x, a.y, a.z, a.du, a.dv, a.dw};
  for (double* values : doubles) values[k] = none;
  float* const floats[] = {
      a.zncc,           a.sigma_u,        a.sigma_v,        a.sigma_x,       a.sigma_y,       a.sigma_z,
      a.sigma_du,       a.sigma_dv,       a.sigma_dw,       a.calibration_x, a.calibration_y, a.calibration_z,
      a.calibration_du, a.calibration_dv, a.calibration_dw, a.epipolar,      a.reprojection,  a.incidence};
  for (float* values : floats) values[k] = nothing;
}

/// Stores the position in the references, which is that of every frame.
DIC_HOST_DEVICE inline void store_reference(const SurfaceJob& job, std::int64_t k) {
  const SurfaceArrays& out = job.out;
  const Vector3& position = job.reference.position[k];
  const float *variance = job.reference.covariance + 6 * k,
              *calibration = job.reference.calibration_sigma + 3 * k;
  out.x[k] = position[0], out.y[k] = position[1], out.z[k] = position[2];
  out.sigma_x[k] = sigma_of(variance[0]), out.sigma_y[k] = sigma_of(variance[1]);
  out.sigma_z[k] = sigma_of(variance[2]);
  out.calibration_x[k] = calibration[0], out.calibration_y[k] = calibration[1];
  out.calibration_z[k] = calibration[2];
  out.incidence[k] = job.reference.incidence[k];
}

/// Measures a point of a frame: position now, errors, distance from the epipolar line.
struct MeasurePoint {
  SurfaceJob job;
  bool orders_differ;  ///< of the subsets of both cameras: the errors of the right images are needed apart

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const SurfaceArrays& out = job.out;
    clear_point(out, k);
    out.status[k] = job.joined_status(k);
    const float l = job.left.zncc[k], r = job.right.zncc[k];
    out.zncc[k] = r < l ? r : l;
    const std::int16_t of_left = job.left.iterations[k], of_right = job.right.iterations[k];
    out.iterations[k] = of_left < of_right ? of_right : of_left;
    out.epipolar_sigma[k] = std::numeric_limits<float>::quiet_NaN();
    out.displacement[k] = vector3(0, 0, 0);
    if (!job.has_values(k)) return;
    const Seen left = job.left.seen(job.grid, k), right = job.right.seen(job.grid, k);
    const SurfacePoint now = meet(job.cameras, job.axes, left, right);
    if (!now.meeting.exists) {
      out.status[k] = Status::epipolar;
      return;
    }
    out.epipolar[k] = static_cast<float>(now.epipolar_px);
    out.epipolar_sigma[k] = static_cast<float>(now.epipolar_sigma);
    out.reprojection[k] = static_cast<float>(norm(now.meeting.residual) / std::sqrt(2.0));
    out.displacement[k] = now.meeting.position - job.reference.position[k];
    out.u[k] = job.left.u[k], out.v[k] = job.left.v[k];
    out.sigma_u[k] = job.left.sigma_u[k], out.sigma_v[k] = job.left.sigma_v[k];
    store_reference(job, k);
    store_calibration(k, now.meeting);
    store_errors(k, left, right, now);
  }

 private:
  /// Stores what the calibration does to the displacement.
  DIC_HOST_DEVICE void store_calibration(std::int64_t k, const Meeting& now) const {
    if (job.calibration.count == 0) return;
    const Vector3 sigma =
        job.calibration.sigmas(job.from_rig(now.position, now.from_px) -
                               job.from_rig(job.reference.position[k], job.reference.from_px[k]));
    job.out.calibration_du[k] = static_cast<float>(sigma[0]);
    job.out.calibration_dv[k] = static_cast<float>(sigma[1]);
    job.out.calibration_dw[k] = static_cast<float>(sigma[2]);
  }
  DIC_HOST_DEVICE void store_errors(std::int64_t k, const Seen& left, const Seen& right,
                                    const SurfacePoint& now) const {
    const ReferencePoints& reference = job.reference;
    const float* const m = reference.map + 4 * k;
    const Seen before = {0, 0, double(reference.sigma[2 * k]), double(reference.sigma[2 * k + 1]),
                         matrix2(m[0], m[1], m[2], m[3])};
    const SharedNoise of_before(before);
    const Matrix2 left_across = common_part(SharedNoise(left), of_before),
                  right_across = common_part(SharedNoise(right), of_before);
    store(now.meeting.from_px, now.pixels, left_across, right_across, k, job.out.errors[k]);
    if (!orders_differ) return;
    auto pixels = PixelCovariance::zero();
    for (int i = 2; i < 4; ++i)
      for (int j = 2; j < 4; ++j) pixels(i, j) = now.pixels(i, j);
    store(now.meeting.from_px, pixels, Matrix2::zero(), right_across, k, job.out.right_errors[k]);
  }
  /// left_across, right_across: covariance of the image points now (rows) and of the right one before; the
  /// left one is exact there.
  DIC_HOST_DEVICE void store(const FromPixels& from_px, const PixelCovariance& pixels,
                             const Matrix2& left_across, const Matrix2& right_across, std::int64_t k,
                             PointErrors& errors) const {
    pack(from_px * (pixels * from_px.transposed()), errors.now);
    const SmallMatrix<3, 2> mixed =
        from_px.columns<2>(0) * left_across + from_px.columns<2>(2) * right_across;
    const Matrix3 across = mixed * job.reference.from_px[k].columns<2>(2).transposed();
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) errors.across[3 * i + j] = static_cast<float>(across(i, j));
  }
};

/// Covariance of a displacement, mm^2. before: of the position in the references, as PointErrors::now.
DIC_HOST_DEVICE inline Matrix3 displacement_covariance(const PointErrors& errors, const float* before) {
  Matrix3 m;
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      m(i, j) = errors.now_at(i, j) + double(before[i == j ? i : i + j + 2]) - errors.across_at(i, j) -
                errors.across_at(j, i);
  return m;
}

/// A motion as a rigid body, which is subtracted if `is_removed`.
struct MotionTerms {
  Matrix3 back;  ///< inverse of its rotation
  Vector3 centre, translation;
  bool is_removed = false;
};

/// After the epipolar check: makes points empty that failed, stores displacements and finds the usable nodes.
struct StoreDisplacement {
  SurfaceJob job;
  MotionTerms motion;

  DIC_HOST_DEVICE void operator()(std::int64_t k) const {
    const SurfaceArrays& out = job.out;
    out.usable[k] = out.status[k] == Status::ok;
    if (!job.has_values(k)) {
      clear_point(out, k);
      return;
    }
    Vector3& d = out.displacement[k];
    if (motion.is_removed) {
      const Vector3 before = job.reference.position[k] - motion.centre;
      d = motion.back * (before + d - motion.translation) - before;
    }
    out.du[k] = d[0], out.dv[k] = d[1], out.dw[k] = d[2];
    const Matrix3 variances = displacement_covariance(out.errors[k], job.reference.covariance + 6 * k);
    out.sigma_du[k] = sigma_of(variances(0, 0)), out.sigma_dv[k] = sigma_of(variances(1, 1));
    out.sigma_dw[k] = sigma_of(variances(2, 2));
  }
};

}  // namespace dic::stereo
