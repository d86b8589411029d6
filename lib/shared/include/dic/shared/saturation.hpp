#pragma once

#include <cstdint>
#include <dic/shared/host_device.hpp>

/// What to do with the saturated pixels of a subset, for CPU and GPU. They show nothing. One that is
/// saturated in one of both images alone has a wrong difference, of one sign; what is saturated in both may
/// be white paint, which does no harm, or a glare, which does not move with the material.
namespace dic::icgn {

/// In which images a pixel is saturated.
struct Saturation {
  bool reference = false, current = false;

  DIC_HOST_DEVICE constexpr bool any() const { return reference || current; }
  DIC_HOST_DEVICE constexpr bool differs() const { return reference != current; }
};

/// Of the pixels of a subset that count.
struct SaturationCounts {
  int all = 0, any = 0, differing = 0;

  DIC_HOST_DEVICE constexpr void add(Saturation pixel) {
    ++all;
    any += pixel.any();
    differing += pixel.differs();
  }
};

/// How a subset is measured.
enum class SaturationRule : std::uint8_t {
  keep,                 ///< as it was
  without_any,          ///< again, without pixels that are saturated in any image
  without_differences,  ///< again, without those that are saturated in one image alone
  give_up               ///< nothing tells where the point is
};

// Below, is_white(x, y, reach) says whether all pixels up to `reach` px from (x, y), along each axis, are
// saturated in any image; (x, y) is relative to the point.

/// Reach of an area that is larger than a white speckle.
DIC_HOST_DEVICE constexpr int white_reach(int radius) { return (radius + 2) / 4; }

/// Is one of 5 x 5 places around a point white, `apart` px from each other?
template <typename IsWhite>
DIC_HOST_DEVICE bool any_white(int apart, int reach, IsWhite&& is_white) {
  DIC_NO_UNROLL
  for (int k = 0; k < 25; ++k)
    if (is_white(apart * (k % 5 - 2), apart * (k / 5 - 2), reach)) return true;
  return false;
}

/// Beside a large white area, a glare, the light rises steeply and does not move with the material: sigma is
/// so many times as large. By measurement errors are 1.3 to 1.8 times as large.
inline constexpr float kBesideGlare = 2;
/// Such an area counts up to a subset's side away.
template <typename IsWhite>
DIC_HOST_DEVICE bool is_beside_glare(int radius, IsWhite&& is_white) {
  return any_white(radius, white_reach(radius), is_white);
}

/// How far from a point something may be white that matters to it.
DIC_HOST_DEVICE constexpr int glare_reach(int radius) { return 2 * radius + white_reach(radius); }

/// Saturated pixels do not count, unless they are few. Where less than half of a subset shows something,
/// white paint that both images have must count; but not an area of a quarter of the subset, a glare.
/// is_part: a part of a subset; where the point itself is white, it tells of what lies beside it.
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

/// Is a pixel left out where a subset is measured again?
DIC_HOST_DEVICE constexpr bool is_left_out(Saturation pixel, SaturationRule rule) {
  return rule == SaturationRule::without_any ? pixel.any() : pixel.differs();
}

}  // namespace dic::icgn
