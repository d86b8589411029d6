#pragma once

#include <dic/image.hpp>

namespace dic::draw {

/// Reduces an image to 8-bit grey with a longest side of at most `longest` px. Deeper images are stretched
/// between their 0.5th and 99.5th percentiles.
Image small_grey(ImageView image, int longest);

/// Longest side of the images in pictures for a screen, px.
inline constexpr int kScreenSide = 800;

}  // namespace dic::draw
