#pragma once

#include <dic/image.hpp>

namespace dic::draw {

/// 8-bit grey of an image, its longest side at most `longest` px. Deeper images are stretched between their
/// 0.5th and 99.5th percentile.
Image small_grey(ImageView image, int longest);

/// The longest side, px, of the images in pictures for a screen.
inline constexpr int kScreenSide = 800;

}  // namespace dic::draw
