#pragma once

#include <cmath>
#include <cstdint>
#include <dic/shared/host_device.hpp>
#include <limits>

namespace dic {

/// One side of a line through a subset: the pixels (i, j) from its centre with x i + y j >= least.
struct HalfPlane {
  double x = 0, y = 0, least = 0;  ///< default: all pixels
};

/// Columns of a part in one row, inclusive.
struct PartRow {
  int first = 0, last = -1;

  DIC_HOST_DEVICE constexpr int count() const { return last < first ? 0 : last - first + 1; }
};

/// A part of a subset's pixels, relative to its centre: the pixels of a rectangle (inclusive) that lie in all
/// half-planes. It is convex and contains the centre, or is empty.
struct SubsetPart {
  static constexpr int kMostSides = 6;  ///< two of the part itself, four borders of the current image

  std::int64_t point = 0;
  int left = 0, right = 0, top = 0, bottom = 0;
  /// Iterations stop early if the residual stays much larger than this, grey levels (icgn::is_hopeless).
  float most_residual = std::numeric_limits<float>::infinity();
  HalfPlane sides[kMostSides] = {};

  DIC_HOST_DEVICE constexpr int width() const { return right - left + 1; }
  DIC_HOST_DEVICE constexpr int height() const { return bottom - top + 1; }
  /// Number of pixels of the rectangle.
  DIC_HOST_DEVICE constexpr int area() const { return width() > 0 && height() > 0 ? width() * height() : 0; }
  DIC_HOST_DEVICE constexpr void clear() { right = left - 1; }
  /// True if every pixel of the rectangle belongs to the part.
  DIC_HOST_DEVICE constexpr bool is_rectangle() const {
    for (const HalfPlane& side : sides)
      if (side.x != 0 || side.y != 0 || side.least != 0) return false;
    return true;
  }

  /// The part's pixels in row j of the rectangle.
  DIC_HOST_DEVICE PartRow row(int j) const {
    double first = left, last = right;
    for (const HalfPlane& side : sides) {
      const double rest = side.least - side.y * j;
      if (side.x > 0)
        first = std::fmax(first, std::ceil(rest / side.x));
      else if (side.x < 0)
        last = std::fmin(last, std::floor(rest / side.x));
      else if (rest > 0)
        last = first - 1;
    }
    if (!(first <= last)) return {};
    return {static_cast<int>(first), static_cast<int>(last)};
  }
};

/// Smallest share of a subset's pixels that a part must have to be measured.
inline constexpr double kLeastPart = 0.25;

/// Shrinks the rectangle of a part to its pixels; drops rows that an empty row separates from the centre, and
/// half-planes that then cut nothing off. Returns the number of pixels.
DIC_HOST_DEVICE inline int shrink_to_pixels(SubsetPart& part) {
  const auto has_centre = [](const PartRow& row) { return row.first <= 0 && row.last >= 0; };
  if (part.area() == 0 || part.top > 0 || part.bottom < 0 || !has_centre(part.row(0))) {
    part.clear();
    return 0;
  }
  int left = 0, right = 0, top = 0, bottom = 0, pixels = 0;
  const auto take = [&](int j, int& end) {
    const PartRow row = part.row(j);
    if (row.count() == 0) return false;
    left = row.first < left ? row.first : left;
    right = row.last > right ? row.last : right;
    pixels += row.count();
    end = j;
    return true;
  };
  for (int j = 0; j <= part.bottom && take(j, bottom);) ++j;
  for (int j = -1; j >= part.top && take(j, top);) --j;
  part.left = left;
  part.right = right;
  part.top = top;
  part.bottom = bottom;
  if (pixels == part.area())
    for (HalfPlane& side : part.sides) side = {};
  return pixels;
}

}  // namespace dic
