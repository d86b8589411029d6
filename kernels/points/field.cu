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

/// Positions of the points in the active reference; null in the original one.
struct Material {
  const track::MaterialPoint* first;

  __device__ track::MaterialPoint operator[](std::int32_t i) const {
    return first ? first[i] : track::MaterialPoint{};
  }
};

/// The status that follows for a point, that of the node, which is number i, and its values.
__device__ Status fill_node(const FieldArrays& field, const FramePoints& points, const TrackedPoint& point,
                            std::int32_t node, std::int32_t i, const Material& material,
                            const track::NoiseModel& noise) {
  const RefineResult& r = point.result;
  const ShapeParameters shape = joined(point.u, point.v, r.shape);
  const GridPoints& grid = points.grid;
  track::Components bend;
  if (noise.order > 0)
    bend = track::bend_at(points, i, track::cross_around(grid.nx, grid.ny, grid.point_at, node, noise.reach),
                          noise);
  const track::Sigmas sigmas = track::sigmas_of(material[i], r, shape, noise, bend);
  if (!(sigmas.by_noise <= track::kLargestNoiseSigma) &&
      !track::is_certain_by_neighbours(points, i, sigmas.by_noise, noise))
    return Status::low_correlation;
  field.zncc[node] = r.zncc;
  field.sigma_u[node] = sigmas.u;
  field.sigma_v[node] = sigmas.v;
  // Read again: registers that kept it would be missing above.
  const track::MaterialPoint m = material[i];
  field.u[node] = m.u + shape.u_at(m.dx, m.dy);
  field.v[node] = m.v + shape.v_at(m.dx, m.dy);
  const bool outside = track::is_outside(points.x(i), points.y(i), m, shape, sigmas.u, sigmas.v, noise);
  return outside ? Status::out_of_image : Status::ok;
}

/// Called by all threads of the block.
__device__ const track::NoiseModel& copied(const track::NoiseModel& model, unsigned* to) {
  const auto* from = reinterpret_cast<const unsigned*>(&model);
  for (int k = threadIdx.x; k < sizeof(model) / sizeof(unsigned); k += point_threads) to[k] = from[k];
  __syncthreads();
  return *reinterpret_cast<const track::NoiseModel*>(to);
}

__global__ void __launch_bounds__(point_threads)
    fill_field(const __grid_constant__ FramePoints points, const track::MaterialPoint* material,
               const __grid_constant__ track::NoiseModel model, const __grid_constant__ FieldArrays field) {
  // Lanes read different places of its table at once.
  alignas(track::NoiseModel) __shared__ unsigned in_shared_memory[sizeof(model) / sizeof(unsigned)];
  const auto& noise = copied(model, in_shared_memory);
  const PointRange nodes{0, std::int64_t{points.grid.nx} * points.grid.ny};
  for_each_warp_of_points(nodes, [&](std::int32_t node, bool exists) {
    const std::int32_t i = exists ? points.grid.point_at[node] : -1;
    const TrackedPoint& point = load_together(points.tracked, i);
    if (!exists) return;
    Status status = i < 0 ? Status::masked : point.result.status;
    if (status == Status::ok) status = fill_node(field, points, point, node, i, Material{material}, noise);
    if (status != Status::ok) clear_node(field, node);
    field.status[node] = status;
    field.iterations[node] = i < 0 ? std::int16_t{0} : point.result.iterations;
  });
}

}  // namespace

void launch_fill_field(const GridPoints& points, const TrackedPoint* tracked,
                       const track::MaterialPoint* material, const track::NoiseModel& noise,
                       const FieldArrays& field, StreamHandle stream) {
  const std::int64_t nodes = std::int64_t{points.nx} * points.ny;
  if (nodes == 0) return;
  fill_field<<<grid_size(nodes, point_threads), point_threads, 0, stream>>>({points, tracked}, material,
                                                                            noise, field);
  check_launch(describe_points("field", points.count));
}

}  // namespace dic::kernels
