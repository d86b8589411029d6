#include "camera/correct_field.hpp"

#include <cmath>
#include <dic/error.hpp>
#include <limits>
#include <utility>

namespace dic {
namespace camera {
namespace {

constexpr std::int64_t kNodesPerTask = 1024;

template <typename Body>
void for_each_node(std::int64_t nodes, core::ThreadPool& pool, const Body& body) {
  pool.parallel_for(nodes, kNodesPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t k = begin; k < end; ++k) body(static_cast<std::size_t>(k));
  });
}

void remove_point(Field& field, std::size_t k) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  field.status[k] = Status::out_of_image;
  field.u[k] = field.v[k] = none;
  field.zncc[k] = field.sigma_u[k] = field.sigma_v[k] = none;
}

}  // namespace

NodePositions corrected_nodes(const Grid& grid, const Camera& camera, core::ThreadPool& pool) {
  const auto nodes = static_cast<std::size_t>(grid.nodes());
  NodePositions positions{NodeValues<double>(nodes), NodeValues<double>(nodes)};
  for_each_node(grid.nodes(), pool, [&](std::size_t k) {
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    const Camera::Point p = camera.undistort(grid.x(i), grid.y(j));
    positions.x[k] = p.x;
    positions.y[k] = p.y;
  });
  return positions;
}

void correct_field(Field& field, const Camera& camera, std::shared_ptr<const NodePositions> nodes,
                   core::ThreadPool& pool) {
  const Grid& grid = field.grid();
  if (field.positions) throw UsageError("The field is in corrected coordinates already.");
  if (!nodes || static_cast<std::int64_t>(nodes->x.size()) != grid.nodes())
    throw UsageError("The corrected nodes are those of another grid.");
  field.positions = std::move(nodes);
  field.image_u = std::exchange(field.u, NodeValues<double>(field.u.size()));
  field.image_v = std::exchange(field.v, NodeValues<double>(field.v.size()));
  field.strain = {};
  for_each_node(grid.nodes(), pool, [&](std::size_t k) {
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    const auto [position, jacobian] =
        camera.undistort_with_jacobian(grid.x(i) + field.image_u[k], grid.y(j) + field.image_v[k]);
    field.u[k] = position.x - field.positions->x[k];
    field.v[k] = position.y - field.positions->y[k];
    if (!has_values(field.status[k])) return;
    if (std::isnan(field.u[k])) return remove_point(field, k);
    const double su = field.sigma_u[k], sv = field.sigma_v[k];
    field.sigma_u[k] = static_cast<float>(std::hypot(jacobian.xx * su, jacobian.xy * sv));
    field.sigma_v[k] = static_cast<float>(std::hypot(jacobian.yx * su, jacobian.yy * sv));
  });
}

}  // namespace camera

NodePositions corrected_nodes(const Grid& grid, const Camera& camera, int threads) {
  core::ThreadPool pool(threads);
  return camera::corrected_nodes(grid, camera, pool);
}

void correct_field(Field& field, const Camera& camera, std::shared_ptr<const NodePositions> nodes,
                   int threads) {
  core::ThreadPool pool(threads);
  camera::correct_field(field, camera, std::move(nodes), pool);
}

}  // namespace dic
