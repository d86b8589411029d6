#pragma once

#include "common/launch.cuh"

/// Steps of <dic/shared/> that are done at every node.
namespace dic::kernels {

constexpr int node_threads = 128;

template <typename Step>
__global__ void __launch_bounds__(node_threads)
    at_every_node(const __grid_constant__ Step step, std::int64_t nodes) {
  for_each_task(nodes, node_threads, threadIdx.x, [&](std::int64_t node) { step(node); });
}

template <typename Step>
void launch_at_every_node(const Step& step, std::int64_t nodes, StreamHandle stream) {
  if (nodes > 0) at_every_node<<<grid_size(nodes, node_threads), node_threads, 0, stream>>>(step, nodes);
}

inline std::string describe(const char* what, const stereo::NodeGrid& grid) {
  return std::string(what) + " (grid " + std::to_string(grid.nx) + "x" + std::to_string(grid.ny) + ")";
}

}  // namespace dic::kernels
