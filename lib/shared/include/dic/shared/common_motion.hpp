#pragma once

#include <cstdint>
#include <dic/shared/host_device.hpp>

/// The motion that most points share since the last frame, on CPU and GPU. A few points tell it, so that all
/// others are searched once, where they are, and not followed there step by step.
namespace dic::track {

/// Number of points that are asked, evenly spread over the list of all points.
inline constexpr int kMotionSamples = 64;

/// The point that is asked as number `k`.
DIC_HOST_DEVICE constexpr std::int64_t sampled_point(int k, std::int64_t points) {
  return k * points / kMotionSamples;
}

/// How far from its prediction by the last frame a point was found.
struct MotionSample {
  /// none: there is no such point, or it has no prediction.
  enum State : std::int32_t { none, not_found, found };
  float x = 0, y = 0;  ///< the point in the reference, px
  float u = 0, v = 0;  ///< distance from its prediction, px
  State state = none;
};

/// A displacement that changes linearly over the image, px.
struct LinearMotion {
  double u = 0, ux = 0, uy = 0, v = 0, vx = 0, vy = 0;

  DIC_HOST_DEVICE double u_at(double x, double y) const { return u + ux * x + uy * y; }
  DIC_HOST_DEVICE double v_at(double x, double y) const { return v + vx * x + vy * y; }
  /// True if a sample was found within `radius` px of this motion along both axes.
  DIC_HOST_DEVICE bool explains(const MotionSample& s, double radius) const {
    const double du = s.u - u_at(s.x, s.y), dv = s.v - v_at(s.x, s.y);
    return s.state == MotionSample::found && du <= radius && -du <= radius && dv <= radius && -dv <= radius;
  }
};

/// The least squares fit of a linear motion. Positions count as uncertain by 1 px, so that samples on one
/// line suffice.
class LinearMotionFit {
 public:
  DIC_HOST_DEVICE void add(const MotionSample& s) {
    const double x = s.x, y = s.y;
    n_ += 1, x_ += x, y_ += y, u_ += s.u, v_ += s.v;
    xx_ += x * x, xy_ += x * y, yy_ += y * y;
    xu_ += x * s.u, yu_ += y * s.u, xv_ += x * s.v, yv_ += y * s.v;
  }
  DIC_HOST_DEVICE int count() const { return static_cast<int>(n_); }
  DIC_HOST_DEVICE LinearMotion motion() const {
    const double x = x_ / n_, y = y_ / n_;
    const double xx = xx_ - x * x_ + n_, xy = xy_ - x * y_, yy = yy_ - y * y_ + n_;
    const double determinant = xx * yy - xy * xy;
    LinearMotion m;
    const double xu = xu_ - x * u_, yu = yu_ - y * u_, xv = xv_ - x * v_, yv = yv_ - y * v_;
    m.ux = (yy * xu - xy * yu) / determinant, m.uy = (xx * yu - xy * xu) / determinant;
    m.vx = (yy * xv - xy * yv) / determinant, m.vy = (xx * yv - xy * xv) / determinant;
    m.u = u_ / n_ - m.ux * x - m.uy * y, m.v = v_ / n_ - m.vx * x - m.vy * y;
    return m;
  }

 private:
  double n_ = 0, x_ = 0, y_ = 0, u_ = 0, v_ = 0;
  double xx_ = 0, xy_ = 0, yy_ = 0, xu_ = 0, yu_ = 0, xv_ = 0, yv_ = 0;
};

/// The motion that most of `n` samples share; none if too few were found, or too few of them agree: bodies
/// that move apart are followed better from where they were. reach: of the search around predictions, px.
DIC_HOST_DEVICE inline LinearMotion common_motion(const MotionSample* samples, int n, double reach) {
  constexpr int kLeast = 8;
  int asked = 0, agree = 0;
  LinearMotionFit all, near;
  for (int k = 0; k < n; ++k) {
    asked += samples[k].state != MotionSample::none;
    if (samples[k].state == MotionSample::found) all.add(samples[k]);
  }
  if (all.count() < kLeast || 2 * all.count() < asked) return {};
  const LinearMotion first = all.motion();
  for (int k = 0; k < n; ++k)
    if (first.explains(samples[k], 2 * reach)) near.add(samples[k]);
  if (near.count() < kLeast) return {};
  const LinearMotion motion = near.motion();
  for (int k = 0; k < n; ++k) agree += motion.explains(samples[k], reach);
  return 4 * agree < 3 * all.count() ? LinearMotion{} : motion;
}

}  // namespace dic::track
