#include "points/points.cuh"

namespace dic::kernels {
namespace {

__global__ void store_counts(const std::int32_t* counts, std::int32_t* on_host) {
  on_host[threadIdx.x] = counts[threadIdx.x];
}

}  // namespace

void launch_store_counts(const std::int32_t* counts, int n, std::int32_t* on_host, StreamHandle stream) {
  store_counts<<<1, n, 0, stream>>>(counts, on_host);
  check_launch("counts (" + std::to_string(n) + ")");
}

}  // namespace dic::kernels
