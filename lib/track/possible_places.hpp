#pragma once

#include <functional>
#include <vector>

namespace dic::track {

/// A position in an image, px.
struct Place {
  double x, y;
};

/// Returns the places in the current image, at most `spacing` px apart, near which the material at (x, y) of
/// the reference can be seen: another camera sees it on its epipolar line.
using PossiblePlaces = std::function<std::vector<Place>(double x, double y, double spacing)>;

}  // namespace dic::track
