#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <dic/shared/status.hpp>
#include <dic/shared/track_rules.hpp>

/// Rules, for CPU and GPU, that tell chance matches from measurements. Measured points that predict each
/// other are linked; linked points form a group. Because neighbouring subsets share most of their pixels,
/// measurements of one material form groups of thousands of points, while chance matches contradict each
/// other even if each started from its neighbour.
///
/// Points are read as in <dic/shared/track_rules.hpp>, with two more functions:
///
///     float own_sigma(Index i)      standard deviation of the displacement by the point's own residual, px
///     float residual(Index i)       grey levels
namespace dic::track {

/// True if a match mirrors the material. Periodic texture allows such matches, a real surface does not.
DIC_HOST_DEVICE inline bool is_mirrored(const ShapeParameters& shape) {
  return !((1 + shape.ux) * (1 + shape.vy) - shape.uy * shape.vx > 0);
}

// ---- links ----

/// Accepted distance between a point and its prediction by a neighbour: kLinkStretch px per px between both
/// (the strain may change by that much) plus kLinkSigmas of their own sigma.
inline constexpr double kLinkStretch = 0.1, kLinkSigmas = 3;

/// Standard deviation of a displacement, px, both components together, from the residual of the point itself.
DIC_HOST_DEVICE inline float own_sigma(float residual, float unit_sigma_u, float unit_sigma_v) {
  return 0.5f * residual * std::sqrt(unit_sigma_u * unit_sigma_u + unit_sigma_v * unit_sigma_v);
}

/// True if both points are measured and each predicts the other.
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

/// Number of members from which a group is large: the points in the area of two disjoint subsets, and a few
/// more for grids so wide that subsets never overlap. Among 10^5 chance matches, the largest group had a
/// third of this.
DIC_HOST_DEVICE constexpr std::int64_t large_group(int subset, int step) {
  return 4 + (std::int64_t{2} * subset * subset + step * step - 1) / (step * step);
}

/// Histogram classes of values, eight per doubling of the value. The counts are integers, so that the order
/// of counting does not matter.
struct ValueClasses {
  static constexpr int kCount = 2048;

  /// The class of a value that is not negative.
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
  /// The median, and the lower quartile, of the values counted in `counts`, one count per class; 0 if there
  /// are none.
  template <typename Count>
  DIC_HOST_DEVICE static float median(const Count* counts) {
    return above_share(counts, 2);
  }
  template <typename Count>
  DIC_HOST_DEVICE static float lower_quartile(const Count* counts) {
    return above_share(counts, 4);
  }

 private:
  /// The end of the first class up to which there are more than 1 / parts of all values.
  template <typename Count>
  DIC_HOST_DEVICE static float above_share(const Count* counts, int parts) {
    std::int64_t total = 0, below = 0;
    for (int k = 0; k < kCount; ++k) total += counts[k];
    for (int k = 0; k < kCount && total > 0; ++k) {
      below += counts[k];
      if (parts * below > total) return end(k);
    }
    return 0;
  }
};

/// Normal levels of the points of large groups: medians over the frame.
struct FrameLevel {
  float residual = 0;  ///< grey levels; 0 if there is no large group
  float misfit = 0;    ///< 1 - zncc
};
/// Factor of the normal level up to which the usual causes (noise, interpolation, texture) explain a value.
inline constexpr float kExplained = 2;

/// Standard deviation of the reference in a subset, grey levels, from the residual of its refinement; very
/// large if the residual vanishes.
DIC_HOST_DEVICE inline float contrast_of(float zncc, float residual) {
  const float misfit = 1 - zncc;
  return misfit > 1e-6f ? residual / std::sqrt(2 * misfit) : 1e30f;
}

/// Factor of the normal residual below which the contrast of a subset is mere noise. Such a subset may still
/// match, if the noise is a fixed pattern of the camera. A texture whose zncc is 0.6 by the noise of the
/// frame has 1.2 times as much contrast, a better one more.
inline constexpr float kNoiseContrast = 0.9f;
DIC_HOST_DEVICE constexpr bool is_noise_only(float contrast, float normal_residual) {
  return contrast < kNoiseContrast * normal_residual;
}
DIC_HOST_DEVICE inline bool is_noise_only(float zncc, float residual, const FrameLevel& level) {
  return is_noise_only(contrast_of(zncc, residual), level.residual);
}

/// True if the certain points (kCertain) that the first step of the starts has measured are enough to know
/// which subsets show mere noise: the area of a large group, and a quarter of all trackable points. The
/// lower quartile of their residuals is the normal residual then. It is hardly above the median of the
/// finished frame, so that the points given up here would become flat at its end, whatever they match.
DIC_HOST_DEVICE constexpr bool knows_noise(std::int64_t certain, std::int64_t trackable, std::int64_t large) {
  return certain >= large && 4 * certain >= trackable;
}

/// True if a residual is explained by the usual causes. Weak texture always has a small residual; its zncc
/// decides.
DIC_HOST_DEVICE inline bool is_explained(float zncc, float residual, const FrameLevel& level) {
  const float most = kExplained * level.residual;
  return (residual <= most && contrast_of(zncc, residual) >= most) || 1 - zncc <= kExplained * level.misfit;
}

/// True if a group may be right although its neighbours contradict it. It needs the area of a quarter of a
/// subset: the subsets of fewer points lie on the same material as those around.
DIC_HOST_DEVICE constexpr bool may_differ(std::int64_t members, std::int64_t large) {
  return 8 * members >= large;
}

/// True if a group might be a chance match and needs confirmation. It does not if it is large, holds half of
/// all trackable points, or is not contested (no neighbour is lost or contradicts it).
DIC_HOST_DEVICE constexpr bool is_suspicious_group(std::int64_t members, bool contested, std::int64_t large,
                                                   std::int64_t trackable) {
  return contested && members < large && 2 * members < trackable;
}

// ---- texture that repeats itself ----

/// Values in place of the residual of another match in the reference: kNoAlternative = the point has no other
/// match, kUnique = neither the point nor its surroundings have one. Only the latter proves that a match is
/// right.
inline constexpr float kNoAlternative = 3e38f, kUnique = -1;

/// True if, within the noise, another match of the subset is as good as the found one. pixels: number of
/// pixels of the subset.
DIC_HOST_DEVICE inline bool is_as_good(float alternative, float residual, double pixels) {
  return alternative >= 0 &&
         alternative <= residual * (1.25f + static_cast<float>(3 / std::sqrt(2 * pixels)));
}

/// True if a group has enough unique points, those in the area of one subset, to decide for the others.
DIC_HOST_DEVICE constexpr bool is_decided(std::int64_t unique, std::int64_t large) {
  return 2 * unique >= large;
}

/// True if a point of an undecided group is ambiguous. If half of the group matches as well elsewhere, all of
/// it is ambiguous.
DIC_HOST_DEVICE constexpr bool is_ambiguous(bool as_good, std::int64_t group_as_good, std::int64_t members) {
  return as_good || 2 * group_as_good >= members;
}

}  // namespace dic::track
