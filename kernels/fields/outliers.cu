#include <dic/shared/median_test.hpp>

#include "fields/nodes.cuh"

namespace dic::kernels {
namespace {

/// Displacements around a node, in registers.
class Neighbourhood {
 public:
  __device__ Neighbourhood(const double* component, const NodeSet& set, const WordNode& node)
      : value_(static_cast<float>(component[node.index])) {
#pragma unroll
    for (int k = 0; k < 9; ++k) {
      const int di = k % 3 - 1, dj = k / 3 - 1;
      around_[k] = set.holds(node.i + di, node.j + dj)
                       ? static_cast<float>(component[node.index + dj * set.nx + di])
                       : median_test::missing;
    }
  }
  __device__ float value() const { return value_; }
  __device__ float operator()(int di, int dj) const { return around_[(dj + 1) * 3 + di + 1]; }

 private:
  float value_, around_[9];
};

/// Limits of the test, see median_test.
struct OutlierLimits {
  float floor;
  double threshold;
  float side;
};

/// Residual of a node relative to those of its neighbours that are in `set`.
__device__ float residual(const FieldArrays& field, const NodeSet& set, const WordNode& node, float floor) {
  const Neighbourhood u(field.u, set, node), v(field.v, set, node);
  return median_test::normalized_residual(u, v, u.value(), v.value(), floor);
}

/// Largest difference between a node and its neighbours; infinite if a neighbour is missing.
__device__ float spread(const Neighbourhood& around) {
  float most = 0;
#pragma unroll
  for (int k = 0; k < 9; ++k) most = fmaxf(most, fabsf(around(k % 3 - 1, k / 3 - 1) - around.value()));
  return most;
}

/// True if a node is so near to all its neighbours that it is no suspect, whatever the medians are. Slopes
/// are at most two such differences per node, so that the neighbours and their predictions are within five
/// differences.
__device__ bool is_clear(const FieldArrays& field, const NodeSet& set, const WordNode& node,
                         const OutlierLimits& limits) {
  const float u = spread({field.u, set, node}), v = spread({field.v, set, node});
  const float most = 0.99F * limits.floor * static_cast<float>(limits.threshold);
  return 25 * (u * u + v * v) < most * most;
}

/// True if a node contradicts all of its sides in `set`.
__device__ bool is_suspect(const FieldArrays& field, const NodeSet& set, const WordNode& node,
                           const OutlierLimits& limits) {
  if (is_clear(field, set, node, limits)) return false;
  if (!median_test::is_suspect(residual(field, set, node, limits.floor), limits.threshold)) return false;
  const Neighbourhood u(field.u, set, node), v(field.v, set, node);
  return !median_test::fits_a_side(u, v, u.value(), v.value(), limits.side);
}

__global__ void __launch_bounds__(word_threads)
    find_trusted(const __grid_constant__ FieldArrays field, const __grid_constant__ NodeSet usable,
                 const __grid_constant__ NodeSet trusted, const __grid_constant__ OutlierLimits limits) {
  for_each_word_node(usable, [&](const WordNode& node) {
    const bool is_trusted = usable.holds(node.i, node.j) && !is_suspect(field, usable, node, limits);
    const std::uint32_t word = __ballot_sync(all_lanes, is_trusted);
    if (threadIdx.x % warp_size == 0) trusted.words[node.word] = word;
  });
}

__global__ void __launch_bounds__(word_threads)
    settle_suspects(const __grid_constant__ FieldArrays field, const __grid_constant__ NodeSet usable,
                    const __grid_constant__ NodeSet trusted, const __grid_constant__ OutlierLimits limits) {
  for_each_word_node(usable, [&](const WordNode& node) {
    const bool suspect = usable.holds(node.i, node.j) && !trusted.holds(node.i, node.j);
    if (suspect && median_test::stays_suspect(residual(field, trusted, node, limits.floor), limits.threshold))
      field.status[node.index] = Status::outlier;
  });
}

}  // namespace

void launch_mark_outliers(const DeviceGrid& grid, const FieldArrays& field, const OutlierOptions& options,
                          void* workspace, StreamHandle stream) {
  if (!options.enabled || grid.nodes() == 0) return;
  const FieldsMemory memory(grid, workspace);
  launch_find_usable(grid, field, memory, stream);
  const unsigned blocks = word_blocks(memory.usable);
  const OutlierLimits limits{static_cast<float>(options.floor), options.threshold,
                             median_test::side_limit(options)};
  find_trusted<<<blocks, word_threads, 0, stream>>>(field, memory.usable, memory.trusted, limits);
  settle_suspects<<<blocks, word_threads, 0, stream>>>(field, memory.usable, memory.trusted, limits);
  check_launch(describe("outlier test", grid));
}

}  // namespace dic::kernels
