#include <limits>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

/// Values of a node that is no point, or whose point was not measured.
__device__ void clear_node(const FieldArrays& field, std::int64_t node) {
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  constexpr float missing_float = std::numeric_limits<float>::quiet_NaN();
  field.u[node] = field.v[node] = missing;
  field.zncc[node] = field.sigma_u[node] = field.sigma_v[node] = missing_float;
}

__device__ void fill_node(const FieldArrays& field, std::int64_t node, const TrackedPoint& point,
                          const track::MaterialPoint& m, double noise) {
  const RefineResult& r = point.result;
  const ShapeParameters shape = joined(point.u, point.v, r.shape);
  field.u[node] = m.u + shape.u_at(m.dx, m.dy);
  field.v[node] = m.v + shape.v_at(m.dx, m.dy);
  field.zncc[node] = r.zncc;
  field.sigma_u[node] = track::sigma_of(m.variance_u, noise, r.unit_sigma_u);
  field.sigma_v[node] = track::sigma_of(m.variance_v, noise, r.unit_sigma_v);
}

__global__ void __launch_bounds__(point_threads)
    fill_field(const __grid_constant__ FramePoints points, const track::MaterialPoint* material,
               const double* noise, const __grid_constant__ FieldArrays field) {
  for_each_point(std::int64_t{points.grid.nx} * points.grid.ny, [&](std::int32_t node) {
    const std::int32_t i = points.grid.point_at[node];
    const Status status = i < 0 ? Status::masked : points.status(i);
    field.status[node] = status;
    field.iterations[node] = i < 0 ? std::int16_t{0} : points.tracked[i].result.iterations;
    if (i >= 0 && status == Status::ok)
      fill_node(field, node, points.tracked[i], material ? material[i] : track::MaterialPoint{}, *noise);
    else
      clear_node(field, node);
  });
}

}  // namespace

void launch_fill_field(const GridPoints& points, const TrackedPoint* tracked,
                       const track::MaterialPoint* material, const double* noise, const FieldArrays& field,
                       StreamHandle stream) {
  const std::int64_t nodes = std::int64_t{points.nx} * points.ny;
  if (nodes == 0) return;
  fill_field<<<grid_size(nodes, point_threads), point_threads, 0, stream>>>({points, tracked}, material,
                                                                            noise, field);
  check_launch(describe_points("field", points.count));
}

}  // namespace dic::kernels
