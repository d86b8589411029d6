#pragma once

#include <cstdint>
#include <limits>

namespace dic {

/// A rectangle of a subset's pixels, relative to its centre, inclusive.
struct SubsetPart {
  std::int64_t point = 0;
  int left = 0, right = 0, top = 0, bottom = 0;
  /// A residual that stays much larger is not worth further iterations, grey levels (icgn::is_hopeless).
  float most_residual = std::numeric_limits<float>::infinity();

  constexpr int width() const { return right - left + 1; }
  constexpr int height() const { return bottom - top + 1; }
  constexpr int area() const { return width() > 0 && height() > 0 ? width() * height() : 0; }
};
/// The share of a subset's pixels that a measurement of a part needs at least.
inline constexpr double kLeastPart = 0.25;

}  // namespace dic
