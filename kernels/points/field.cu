#include <limits>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

DIC_HOST_DEVICE std::int64_t nodes_of(const GridPoints& points) {
  return std::int64_t{points.nx} * points.ny;
}

/// Clears the values of a node that is no point, or whose point was not measured.
__device__ void clear_node(const FieldArrays& field, std::int64_t node) {
  constexpr double missing = std::numeric_limits<double>::quiet_NaN();
  constexpr float missing_float = std::numeric_limits<float>::quiet_NaN();
  field.u[node] = field.v[node] = missing;
  field.zncc[node] = field.sigma_u[node] = field.sigma_v[node] = missing_float;
}

/// Positions of the points in the active reference; null if that is the original one.
struct Material {
  const track::MaterialPoint* first;

  __device__ track::MaterialPoint operator[](std::int32_t i) const {
    return first ? first[i] : track::MaterialPoint{};
  }
  __device__ track::MaterialPoint operator()(std::int32_t i) const { return (*this)[i]; }
};

/// A measured point, number i, and its node.
struct Measured {
  const FramePoints& points;
  const TrackedPoint& point;
  std::int32_t node, i;
  Material material;
  const track::NoiseModel& noise;

  __device__ ShapeParameters shape() const { return joined(point.u, point.v, point.result.shape); }
  __device__ track::NodesAround<std::int32_t> around() const {
    const GridPoints& grid = points.grid;
    return {grid.nx, grid.ny, grid.point_at, node};
  }
  __device__ track::Sigmas sigmas() const {
    const GridPoints& grid = points.grid;
    track::Components bend, bend_of_all;
    if (noise.order > 0) {
      bend = track::bend_at(points, i,
                            track::cross_around(grid.nx, grid.ny, grid.point_at, node, noise.reach), noise);
      bend_of_all = track::BendOfSteps(points, i, material, noise)(around());
    }
    return track::sigmas_of(material[i], point.result, shape(), noise, bend, bend_of_all);
  }
};

/// Writes the values of a node. Returns its status.
__device__ Status fill_node(const FieldArrays& field, const Measured& measured, const track::Sigmas& sigmas) {
  const auto node = measured.node;
  field.zncc[node] = measured.point.result.zncc;
  field.sigma_u[node] = sigmas.u;
  field.sigma_v[node] = sigmas.v;
  // Loaded again: registers that kept it would be missing in the computation of sigma.
  const track::MaterialPoint m = measured.material[measured.i];
  const ShapeParameters shape = measured.shape();
  field.u[node] = m.u + shape.u_at(m.dx, m.dy);
  field.v[node] = m.v + shape.v_at(m.dx, m.dy);
  const FramePoints& points = measured.points;
  return track::status_of(points.x(measured.i), points.y(measured.i), m, shape, sigmas, measured.noise);
}

/// Copies the model to shared memory `to`. All threads of the block must call it.
__device__ const track::NoiseModel& copied(const track::NoiseModel& model, unsigned* to) {
  const auto* from = reinterpret_cast<const unsigned*>(&model);
  for (int k = threadIdx.x; k < sizeof(model) / sizeof(unsigned); k += point_threads) to[k] = from[k];
  __syncthreads();
  return *reinterpret_cast<const track::NoiseModel*>(to);
}

/// Fills the nodes of the field. Uncertain points become low_correlation here, and their nodes are listed.
__global__ void __launch_bounds__(point_threads, 3)
    fill_field(const __grid_constant__ FramePoints points, const track::MaterialPoint* material,
               const __grid_constant__ track::NoiseModel model, const __grid_constant__ FieldArrays field,
               const __grid_constant__ PointList uncertain) {
  // Lanes read different places of the model's table at once, which is faster in shared memory.
  alignas(track::NoiseModel) __shared__ unsigned in_shared_memory[sizeof(model) / sizeof(unsigned)];
  const auto& noise = copied(model, in_shared_memory);
  const PointRange nodes{0, nodes_of(points.grid)};
  for_each_warp_of_points(nodes, [&](std::int32_t node, bool exists) {
    const std::int32_t i = exists ? points.grid.point_at[node] : -1;
    const TrackedPoint& point = load_together(points.tracked, i);
    if (!exists) return;
    Status status = i < 0 ? Status::masked : point.result.status;
    if (status == Status::ok) {
      const Measured measured{points, point, node, i, Material{material}, noise};
      const track::Sigmas sigmas = measured.sigmas();
      const bool certain = track::is_certain(sigmas);
      status = certain ? fill_node(field, measured, sigmas) : Status::low_correlation;
      if (!certain) append(uncertain, node);
    }
    if (status != Status::ok) clear_node(field, node);
    field.status[node] = status;
    field.iterations[node] = i < 0 ? std::int16_t{0} : point.result.iterations;
  });
}

/// Fills the nodes of uncertain points that their neighbours confirm: these are few, and the test takes more
/// registers than fill_field has.
__global__ void __launch_bounds__(point_threads, 2)
    fill_confirmed(const __grid_constant__ FramePoints points, const track::MaterialPoint* material,
                   const __grid_constant__ track::NoiseModel noise, const __grid_constant__ FieldArrays field,
                   const __grid_constant__ PointList uncertain) {
  for_each_point(*uncertain.count, [&](std::int32_t at) {
    const std::int32_t node = uncertain.points[at], i = points.grid.point_at[node];
    const Measured measured{points, points.tracked[i], node, i, Material{material}, noise};
    const track::Sigmas sigmas = measured.sigmas();
    if (!track::is_certain_by_neighbours(points, i, measured.around(), sigmas, noise)) return;
    const Status status = fill_node(field, measured, sigmas);
    if (status != Status::ok) clear_node(field, node);
    field.status[node] = status;
  });
}

}  // namespace

std::size_t fill_field_workspace_bytes(const GridPoints& points) {
  return sizeof(std::int32_t) * (1 + static_cast<std::size_t>(nodes_of(points)));
}

void launch_fill_field(const GridPoints& points, const TrackedPoint* tracked,
                       const track::MaterialPoint* material, const track::NoiseModel& noise,
                       const FieldArrays& field, void* workspace, StreamHandle stream) {
  if (nodes_of(points) == 0) return;
  constexpr unsigned most_blocks = 256;  // enough for a list that is nearly always short
  const unsigned blocks = grid_size(nodes_of(points), point_threads);
  const FramePoints all{points, tracked};
  auto* count = static_cast<std::int32_t*>(workspace);
  const PointList uncertain{count + 1, count};
  clear(count, stream);
  fill_field<<<blocks, point_threads, 0, stream>>>(all, material, noise, field, uncertain);
  fill_confirmed<<<std::min(blocks, most_blocks), point_threads, 0, stream>>>(all, material, noise, field,
                                                                              uncertain);
  check_launch(describe_points("field", points.count));
}

}  // namespace dic::kernels
