#pragma once

#include <cstdint>
#include <dic/shared/host_device.hpp>

/// Treatment of the saturated pixels of a subset, for CPU and GPU. Saturated pixels show no texture. A pixel
/// that is saturated in only one of the images has a wrong difference, always of the same sign. Pixels
/// saturated in both images may be white paint, which does no harm, or a glare, which does not move with the
/// material.
namespace dic::icgn {

/// Tells in which images a pixel is saturated.
struct Saturation {
  bool reference = false, current = false;

  DIC_HOST_DEVICE constexpr bool any() const { return reference || current; }
  DIC_HOST_DEVICE constexpr bool differs() const { return reference != current; }
};

/// Numbers of counting pixels of a subset: all, saturated in any image, saturated in only one.
struct SaturationCounts {
  int all = 0, any = 0, differing = 0;

  DIC_HOST_DEVICE constexpr void add(Saturation pixel) {
    ++all;
    any += pixel.any();
    differing += pixel.differs();
  }
};

/// How a subset with saturated pixels is measured.
enum class SaturationRule : std::uint8_t {
  keep,                 ///< keeps the first measurement
  without_any,          ///< measured again without pixels that are saturated in any image
  without_differences,  ///< measured again without pixels that are saturated in only one image
  give_up               ///< the position of the point is unknown
};

// Below, is_white(x, y, reach) says whether all pixels up to `reach` px from (x, y), along each axis, are
// saturated in any image; (x, y) is relative to the point.

/// Reach, px, of an area that is larger than a white speckle.
DIC_HOST_DEVICE constexpr int white_reach(int radius) { return (radius + 2) / 4; }

/// True if one of 5 x 5 places around a point, `apart` px from each other, is white.
template <typename IsWhite>
DIC_HOST_DEVICE bool any_white(int apart, int reach, IsWhite&& is_white) {
  DIC_NO_UNROLL
  for (int k = 0; k < 25; ++k)
    if (is_white(apart * (k % 5 - 2), apart * (k / 5 - 2), reach)) return true;
  return false;
}

/// Factor of sigma beside a large white area, a glare, where the light rises steeply and does not move with
/// the material. Measured errors are 1.3 to 1.8 times as large.
inline constexpr float kBesideGlare = 2;
/// True if a glare is at most a subset's side away.
template <typename IsWhite>
DIC_HOST_DEVICE bool is_beside_glare(int radius, IsWhite&& is_white) {
  return any_white(radius, white_reach(radius), is_white);
}

/// Distance, px, up to which white pixels matter to a point.
DIC_HOST_DEVICE constexpr int glare_reach(int radius) { return 2 * radius + white_reach(radius); }

/// Chooses the rule for a subset. Saturated pixels are left out unless they are few. If less than half of a
/// subset remained, white paint that is saturated in both images counts, but an area of a quarter of the
/// subset, a glare, makes the rule give up. is_part: the subset is a part; if the point itself is white, a
/// part would only measure what lies beside it.
template <typename IsWhite>
DIC_HOST_DEVICE SaturationRule saturation_rule(const SaturationCounts& pixels, bool is_part, int radius,
                                               IsWhite&& is_white) {
  const auto are_few = [&](int some) {
    return static_cast<float>(some) <= 0.02F * static_cast<float>(pixels.all);
  };
  if (is_part && pixels.any > 0 && is_white(0, 0, white_reach(radius))) return SaturationRule::give_up;
  if (are_few(pixels.any)) return SaturationRule::keep;
  if (2 * pixels.any <= pixels.all) return SaturationRule::without_any;
  if (any_white(radius / 2, radius / 2, is_white)) return SaturationRule::give_up;
  if (are_few(pixels.differing)) return SaturationRule::keep;
  return 2 * pixels.differing <= pixels.all ? SaturationRule::without_differences : SaturationRule::give_up;
}

/// True if a pixel is left out when its subset is measured again.
DIC_HOST_DEVICE constexpr bool is_left_out(Saturation pixel, SaturationRule rule) {
  return rule == SaturationRule::without_any ? pixel.any() : pixel.differs();
}

}  // namespace dic::icgn
