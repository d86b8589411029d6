#include "track/located_points.hpp"

#include <algorithm>

namespace dic::track {

LocatedPoints::LocatedPoints(const fields::Points& points, Size image) : x(points.x), y(points.y) {
  const auto is_outside = [&](std::size_t i) {
    return x[i] < 0 || y[i] < 0 || x[i] >= image.width || y[i] >= image.height;
  };
  bool is_any_outside = false;
  for (std::size_t i = 0; i < x.size(); ++i) is_any_outside = is_any_outside || is_outside(i);
  if (points.offsets.empty() && !is_any_outside) return;
  material.resize(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const fields::Points::Offset offset = points.offset(static_cast<std::int64_t>(i));
    material[i].dx = offset.dx;
    material[i].dy = offset.dy;
    if (!is_outside(i)) continue;
    material[i].status = Status::out_of_image;
    x[i] = std::clamp(x[i], 0, image.width - 1);
    y[i] = std::clamp(y[i], 0, image.height - 1);
  }
}

LocatedPoints::LocatedPoints(const fields::PointNodes& nodes, const Field& field, Size image)
    : are_followed(true) {
  x.resize(nodes.node_of.size());
  y.resize(nodes.node_of.size());
  material.reserve(nodes.node_of.size());
  for (std::int64_t i = 0; i < nodes.size(); ++i) {
    const std::int64_t k = nodes.node_of[i];
    x[i] = nodes.x(i);
    y[i] = nodes.y(i);
    material.push_back(followed({field.status[k], field.u[k], field.v[k], field.sigma_u[k], field.sigma_v[k]},
                                {image.width, image.height}, x[i], y[i]));
  }
}

}  // namespace dic::track
