#pragma once

#include <algorithm>
#include <cmath>

#include "draw/colour_map.hpp"

namespace dic::draw {

/// How a value becomes a colour.
class ColourScale {
 public:
  ColourScale(ValueRange range, ColourMap map) : range_(range) {
    const double smaller = std::min(-range.min, range.max), larger = std::max(-range.min, range.max);
    // Where one sign hardly occurs, most of one half of the map would not be used.
    if (map == ColourMap::automatic) map = smaller > 0.15 * larger ? ColourMap::blue_red : ColourMap::viridis;
    colours_ = &colours_of(map);
    const bool around_zero = map == ColourMap::blue_red && smaller > 0;  // zero has the colour of the middle
    low_ = around_zero ? -larger : range.min;
    per_unit_ = 255 / (around_zero ? 2 * larger : range.max - range.min);
  }

  ValueRange range() const { return range_; }
  /// Values beyond the range have the colour of its end.
  Colour colour(double value) const {
    const double place = (std::clamp(value, range_.min, range_.max) - low_) * per_unit_;
    // NOLINTNEXTLINE(bugprone-incorrect-roundings): at least 0
    return (*colours_)[static_cast<std::size_t>(std::clamp(place, 0.0, 255.0) + 0.5)];
  }

 private:
  ValueRange range_;
  const Colours* colours_;
  double low_, per_unit_;
};

}  // namespace dic::draw
