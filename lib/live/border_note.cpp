#include "live/border_note.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace dic::live {
namespace {

struct Named {
  std::string name;
  Position at;
};

std::vector<Named> positions_of(const LineContext& context) {
  std::vector<Named> all;
  for (std::size_t k = 0; k < context.points.size(); ++k)
    all.push_back({"Point " + std::to_string(k + 1), context.points[k]});
  for (std::size_t k = 0; k < context.extensometers.size(); ++k) {
    const std::string of = " end of extensometer " + std::to_string(k + 1);
    all.push_back({"The first" + of, context.extensometers[k][0]});
    all.push_back({"The second" + of, context.extensometers[k][1]});
  }
  return all;
}

/// Distance, px, from the border along an axis of the nodes between which a position is interpolated.
int distance_from_border(double at, int first, int step, int pixels) {
  const double node = (at - first) / step;
  const auto low = static_cast<int>(std::floor(node)) * step + first,
             high = static_cast<int>(std::ceil(node)) * step + first;
  return std::min(low, pixels - 1 - high);
}

std::string position_text(double x, double y) {
  char text[64];
  std::snprintf(text, sizeof text, "%g,%g", x, y);
  return text;
}

/// Goes on after the name of a position at this distance from the border.
std::string problem_of(int distance, int subset) {
  if (distance < 0)
    return "has no values, because it or a point of the grid beside it lies outside the image";
  return "is measured " + std::to_string(distance) + " px from the border of the image and needs " +
         std::to_string(subset / 2) + " px, half a subset of " + std::to_string(subset) +
         " px: without the part of its subset beyond the border it is measured worse, or lost";
}

}  // namespace

std::string border_note(const LineContext& context, const Grid& grid, int subset, Size image) {
  const int needed = subset / 2;
  std::string first;
  int others = 0;
  for (const auto& [name, at] : positions_of(context)) {
    const int distance = std::min(distance_from_border(at.x, grid.x0, grid.step, image.width),
                                  distance_from_border(at.y, grid.y0, grid.step, image.height));
    if (distance >= needed) continue;
    if (first.empty())
      first = name + " at " + position_text(at.x, at.y) + " px " + problem_of(distance, subset);
    else
      ++others;
  }
  if (first.empty()) return {};
  return first + (others > 0 ? "; " + std::to_string(others) + " more lie as near." : ".");
}

}  // namespace dic::live
