#pragma once

namespace dic::image {

/// Part of an image file that is decoded.
enum class Content {
  grey,
  /// Like grey, but as programs that write masks mean it: the stored values, where they store 0 for the
  /// outside and show it white.
  mask,
  /// The opacity, from 0; an empty image if the file has none.
  alpha,
};

}  // namespace dic::image
