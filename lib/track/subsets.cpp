#include <algorithm>
#include <cmath>

#include "track/backend.hpp"

namespace dic::track {

Subsets::Subsets(const Points& points, std::vector<MaterialPoint> moved, Image region, int width, int height)
    : x(points.x), y(points.y), material(std::move(moved)), roi(std::move(region)) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    MaterialPoint& m = material[i];
    if (m.status != Status::ok) continue;
    const double px = x[i] + m.u, py = y[i] + m.v;
    x[i] = static_cast<int>(std::lround(px));
    y[i] = static_cast<int>(std::lround(py));
    m.dx = px - x[i];
    m.dy = py - y[i];
    if (x[i] < 0 || y[i] < 0 || x[i] >= width || y[i] >= height) m.status = Status::out_of_image;
    x[i] = std::clamp(x[i], 0, width - 1);
    y[i] = std::clamp(y[i], 0, height - 1);
  }
}

}  // namespace dic::track
