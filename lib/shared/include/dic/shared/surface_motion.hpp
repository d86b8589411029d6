#pragma once

#include <dic/shared/surface_points.hpp>

/// Sums over the `ok` points of a surface from which its motion as a rigid body follows, for CPU and GPU.
namespace dic::stereo {

/// Number of points, sums of their positions and displacements.
struct MotionMeans {
  static constexpr int kCount = 7;
  double sums[kCount];

  DIC_HOST_DEVICE Vector3 centre() const {
    return vector3(sums[1] / sums[0], sums[2] / sums[0], sums[3] / sums[0]);
  }
  DIC_HOST_DEVICE Vector3 translation() const {
    return vector3(sums[4] / sums[0], sums[5] / sums[0], sums[6] / sums[0]);
  }
};

/// Sums of products of positions b and displacements d, both less their means.
struct MotionMoments {
  static constexpr int kProducts = 1, kSpread = 10, kNoise = 16, kCount = 37;
  double sums[kCount];

  DIC_HOST_DEVICE double displacement_squares() const { return sums[0]; }
  /// Sum of d b^T.
  DIC_HOST_DEVICE Matrix3 products() const {
    Matrix3 m;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) m(i, j) = sums[kProducts + 3 * i + j];
    return m;
  }
  /// Sum of b b^T.
  DIC_HOST_DEVICE Matrix3 spread() const {
    Matrix3 m;
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) m(i, j) = sums[kSpread + (i == j ? i : i + j + 2)];
    return m;
  }
  /// Sum of J^T C J: J = derivative of a displacement by rotation and translation, C = its covariance.
  DIC_HOST_DEVICE SmallMatrix<6, 6> noise() const {
    SmallMatrix<6, 6> m;
    int k = kNoise;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j <= i; ++j) m(i, j) = m(j, i) = sums[k++];
    return m;
  }
};

struct AddMeans {
  using Sums = MotionMeans;
  SurfaceJob job;

  DIC_HOST_DEVICE void operator()(std::int64_t k, double* sums) const {
    if (job.out.status[k] != Status::ok) return;
    sums[0] += 1;
    for (int i = 0; i < 3; ++i)
      sums[1 + i] += job.reference.position[k][i], sums[4 + i] += job.out.displacement[k][i];
  }
};

struct AddMoments {
  using Sums = MotionMoments;
  SurfaceJob job;

  DIC_HOST_DEVICE void operator()(std::int64_t k, const MotionMeans& means, double* sums) const {
    if (job.out.status[k] != Status::ok) return;
    const Vector3 b = job.reference.position[k] - means.centre(),
                  d = job.out.displacement[k] - means.translation();
    sums[0] += dot(d, d);
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        sums[Sums::kProducts + 3 * i + j] += d[i] * b[j];
        if (j >= i) sums[Sums::kSpread + (i == j ? i : i + j + 2)] += b[i] * b[j];
      }
    const SmallMatrix<3, 6> by_motion = {
        {{0, b[2], -b[1], 1, 0, 0}, {-b[2], 0, b[0], 0, 1, 0}, {b[1], -b[0], 0, 0, 0, 1}}};
    const Matrix3 covariance = displacement_covariance(job.out.errors[k], job.reference.covariance + 6 * k);
    const SmallMatrix<3, 6> errors = covariance * by_motion;
    int n = Sums::kNoise;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j <= i; ++j, ++n)
        for (int c = 0; c < 3; ++c) sums[n] += by_motion(c, i) * errors(c, j);
  }
};

}  // namespace dic::stereo
