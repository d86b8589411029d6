#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <dic/shared/status.hpp>
#include <dic/shared/track_rules.hpp>

/// Rules that tell matches by chance from measurements, for CPU and GPU. Measured points that predict each
/// other are linked; linked points are a group. Neighbouring subsets share most of their pixels: measurements
/// of one material form groups of thousands of points, matches by chance contradict each other even where
/// each began from its neighbour.
///
/// Points are read as in <dic/shared/track_rules.hpp>, and with
///
///     float own_sigma(Index i)      standard deviation of the displacement by the point's own residual, px
///     float residual(Index i)       grey levels
namespace dic::track {

/// Does a match turn the material inside out? Periodic texture allows that, a surface does not.
DIC_HOST_DEVICE inline bool is_mirrored(const ShapeParameters& shape) {
  return !((1 + shape.ux) * (1 + shape.vy) - shape.uy * shape.vx > 0);
}

// ---- links ----

/// Distance between a point and its prediction by a neighbour that is no contradiction: so many px per px
/// between both (the strain may change by that much), and so many of their own sigma.
inline constexpr double kLinkStretch = 0.1, kLinkSigmas = 3;

/// sigma of a displacement, both components together, by the residual of the point itself.
DIC_HOST_DEVICE inline float own_sigma(float residual, float unit_sigma_u, float unit_sigma_v) {
  return 0.5f * residual * std::sqrt(unit_sigma_u * unit_sigma_u + unit_sigma_v * unit_sigma_v);
}

/// Are both points measured, and does each predict the other?
template <typename Points, typename Index>
DIC_HOST_DEVICE bool linked(const Points& points, Index a, Index b) {
  if (points.status(a) != Status::ok || points.status(b) != Status::ok) return false;
  const double dx = points.x(b) - points.x(a), dy = points.y(b) - points.y(a);
  const ShapeParameters &at_a = points.shape(a), &at_b = points.shape(b);
  const double noise_a = points.own_sigma(a), noise_b = points.own_sigma(b);
  const double noise = kLinkSigmas * (noise_a < noise_b ? noise_a : noise_b);
  const double tolerance = kLinkStretch * std::sqrt(dx * dx + dy * dy) + noise;
  const double most = tolerance < kAgreement ? tolerance : kAgreement;
  const auto near = [most](double du, double dv) { return du * du + dv * dv <= most * most; };
  return near(at_a.u_at(dx, dy) - at_b.u, at_a.v_at(dx, dy) - at_b.v) &&
         near(at_b.u_at(-dx, -dy) - at_a.u, at_b.v_at(-dx, -dy) - at_a.v);
}

// ---- groups ----

/// Members by which a group is large: the area of two subsets that do not overlap, and a few points more for
/// grids so wide that subsets never do. Among 10^5 matches by chance the largest group had a third of this.
DIC_HOST_DEVICE constexpr std::int64_t large_group(int subset, int step) {
  return 4 + (std::int64_t{2} * subset * subset + step * step - 1) / (step * step);
}

/// How many values are in each of these classes, eight for every doubling of the value: integers, so that
/// the order of counting does not matter.
struct ValueClasses {
  static constexpr int kCount = 2048;

  /// Of a value that is not negative.
  DIC_HOST_DEVICE static int of(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return static_cast<int>(bits >> 20 & (kCount - 1));
  }
  /// The upper end of a class.
  DIC_HOST_DEVICE static float end(int of) {
    const std::uint32_t bits = (static_cast<std::uint32_t>(of) << 20) + 0xfffffu;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
  /// The median of values of which `counts` holds how many are in each class; 0 where there are none.
  template <typename Count>
  DIC_HOST_DEVICE static float median(const Count* counts) {
    std::int64_t total = 0, below = 0;
    for (int k = 0; k < kCount; ++k) total += counts[k];
    for (int k = 0; k < kCount && total > 0; ++k) {
      below += counts[k];
      if (2 * below > total) return end(k);
    }
    return 0;
  }
};

/// What is normal for the points of large groups: medians over the frame.
struct FrameLevel {
  float residual = 0;  ///< grey levels; 0 where there is no large group
  float misfit = 0;    ///< 1 - zncc
};
/// So many times as much as normal is explained by the same causes (noise, interpolation, texture).
inline constexpr float kExplained = 2;

/// Standard deviation of the reference in a subset, grey levels, from what its refinement left; very large
/// where it left nothing.
DIC_HOST_DEVICE inline float contrast_of(float zncc, float residual) {
  const float misfit = 1 - zncc;
  return misfit > 1e-6f ? residual / std::sqrt(2 * misfit) : 1e30f;
}

/// Does a subset show nothing but noise? Its contrast is then less than what is left of the others. Noise
/// matches itself where it is a fixed pattern of the camera. A texture of a zncc of 0.6 by the noise of the
/// frame has 1.2 times as much contrast, a better one more.
inline constexpr float kNoiseContrast = 0.9f;
DIC_HOST_DEVICE inline bool is_noise_only(float zncc, float residual, const FrameLevel& level) {
  return contrast_of(zncc, residual) < kNoiseContrast * level.residual;
}

/// Weak texture leaves little in any case: there the zncc tells.
DIC_HOST_DEVICE inline bool is_explained(float zncc, float residual, const FrameLevel& level) {
  const float most = kExplained * level.residual;
  return (residual <= most && contrast_of(zncc, residual) >= most) || 1 - zncc <= kExplained * level.misfit;
}

/// Can a group be right whose neighbours contradict it? Only if it has the area of a quarter of a subset: the
/// subsets of fewer points lie on the same material as those around.
DIC_HOST_DEVICE constexpr bool may_differ(std::int64_t members, std::int64_t large) {
  return 8 * members >= large;
}

/// Must a group show that it is no chance? Not where it is large, holds half of all points that can be
/// looked for, or has no neighbour that is lost or contradicts it (contested).
DIC_HOST_DEVICE constexpr bool is_suspicious_group(std::int64_t members, bool contested, std::int64_t large,
                                                   std::int64_t trackable) {
  return contested && members < large && 2 * members < trackable;
}

// ---- texture that repeats itself ----

/// Instead of the residual of another match of a point in the reference: there is none; none here and
/// around. Only the latter is proof that a match is the right one.
inline constexpr float kNoAlternative = 3e38f, kUnique = -1;

/// Is another match of the subset as good as the one that was found, for all that noise allows to say?
/// pixels: of the subset.
DIC_HOST_DEVICE inline bool is_as_good(float alternative, float residual, double pixels) {
  return alternative >= 0 &&
         alternative <= residual * (1.25f + static_cast<float>(3 / std::sqrt(2 * pixels)));
}

/// Points of a group that are unique, so that they decide for the others: the area of one subset.
DIC_HOST_DEVICE constexpr bool is_decided(std::int64_t unique, std::int64_t large) {
  return 2 * unique >= large;
}

/// Is a point of an undecided group ambiguous? Where half of the group is as good elsewhere, all of it is.
DIC_HOST_DEVICE constexpr bool is_ambiguous(bool as_good, std::int64_t group_as_good, std::int64_t members) {
  return as_good || 2 * group_as_good >= members;
}

}  // namespace dic::track
