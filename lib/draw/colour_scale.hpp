#pragma once

#include <algorithm>
#include <cmath>

#include "draw/colour_map.hpp"

namespace dic::draw {

/// Converts values to colours.
class ColourScale {
 public:
  ColourScale(ValueRange range, ColourMap map) : range_(range) {
    const double smaller = std::min(-range.min, range.max), larger = std::max(-range.min, range.max);
    // If one sign hardly occurs, most of one half of blue_red would not be used.
    if (map == ColourMap::automatic) map = smaller > 0.15 * larger ? ColourMap::blue_red : ColourMap::viridis;
    colours_ = &colours_of(map);
    const bool around_zero = map == ColourMap::blue_red && smaller > 0;  // zero has the colour of the middle
    low_ = around_zero ? -larger : range.min;
    constexpr double kNarrowest = 1e-300;  // least width of a range, which keeps the factor finite
    per_unit_ = 255 / std::max(kNarrowest, around_zero ? 2 * larger : range.max - range.min);
  }

  ValueRange range() const { return range_; }
  const Colours& colours() const { return *colours_; }
  /// The place of a value in the colour map; places beyond ends() have the colour of the end.
  double place(double value) const { return (value - low_) * per_unit_; }
  /// The places of the ends of the range, from 0 to 255.
  ValueRange ends() const {
    return {std::clamp(place(range_.min), 0.0, 255.0), std::clamp(place(range_.max), 0.0, 255.0)};
  }
  Colour colour(double value) const {
    const ValueRange limits = ends();
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): the place is at least 0
    return colours()[static_cast<std::size_t>(std::clamp(place(value), limits.min, limits.max) + 0.5)];
  }

 private:
  ValueRange range_;
  const Colours* colours_;
  double low_, per_unit_;
};

}  // namespace dic::draw
