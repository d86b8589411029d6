#include "analysis/ramps.hpp"

#include <algorithm>
#include <type_traits>

namespace dic::analysis {
namespace {

/// Variance, grey levels^2, up to which the distance from a plane is rounding, which has 1/12.
constexpr double kRounding = 0.125;
constexpr std::int64_t kSamples = 64;  ///< number of subsets that tell whether to look at all

/// True if the pixels around (x, y), as far as they are in the image, are a plane of grey values.
template <typename T>
bool is_plane(ImageView image, int x, int y, int radius) {
  const int left = std::max(0, x - radius), right = std::min(image.width - 1, x + radius),
            top = std::max(0, y - radius), bottom = std::min(image.height - 1, y + radius);
  const double columns = right - left + 1, rows = bottom - top + 1, pixels = columns * rows;
  if (2 * pixels < (2.0 * radius + 1) * (2 * radius + 1)) return false;  // not a point of the image
  double sum = 0, squares = 0, by_x = 0, by_y = 0;
  const double first = image.row<T>(y)[x], middle_x = 0.5 * (left + right), middle_y = 0.5 * (top + bottom);
  for (int j = top; j <= bottom; ++j) {
    const T* row = image.row<T>(j);
    double line = 0;
    for (int i = left; i <= right; ++i) {
      const double grey = static_cast<double>(row[i]) - first;
      line += grey, squares += grey * grey, by_x += (i - middle_x) * grey;
    }
    sum += line;
    by_y += (j - middle_y) * line;
  }
  const auto explained = [pixels](double product, double side) {
    return side > 1 ? product * product / (pixels * (side * side - 1) / 12) : 0;
  };
  const double planes = sum * sum / pixels + explained(by_x, columns) + explained(by_y, rows);
  return squares - planes <= kRounding * pixels;
}

}  // namespace

std::vector<std::int64_t> find_ramps(ImageView reference, const fields::Points& points, int subset,
                                     core::ThreadPool& pool) {
  return visit_scalar(reference.type, [&](auto element) -> std::vector<std::int64_t> {
    using T = decltype(element);
    if constexpr (std::is_floating_point_v<T>) {
      return {};
    } else {
      const auto is_ramp = [&](std::int64_t i) {
        return is_plane<T>(reference, points.x[i], points.y[i], subset / 2);
      };
      const std::int64_t apart = std::max<std::int64_t>(1, points.size() / kSamples);
      bool any = false;
      for (std::int64_t i = apart / 2; i < points.size() && !any; i += apart) any = is_ramp(i);
      if (!any) return {};
      std::vector<std::int64_t> nodes = core::indices_where(pool, points.size(), is_ramp);
      for (std::int64_t& node : nodes) node = points.nodes->node_of[node];
      return nodes;
    }
  });
}

}  // namespace dic::analysis
