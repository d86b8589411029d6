#include "track/cuda/multi_gpu/halo_exchange.hpp"

#include <algorithm>
#include <dic/kernels/peer.hpp>
#include <vector>

namespace dic::track::cuda {
namespace {

/// The common points of two ranges; empty if there are none.
kernels::PointRange common(const kernels::PointRange& a, const kernels::PointRange& b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max(first, std::min(a.last, b.last))};
}

/// The points of `writer` that `reader` needs.
kernels::PointRange halo(const GpuFrame& reader, const GpuFrame& writer) {
  return common(reader.reference.points().known, writer.reference.points().own);
}

/// Copies like kernels::launch_read_halo if GPUs cannot read each other's memory.
void copy(const kernels::HaloSource& other, kernels::TrackedPoint* tracked, std::uint8_t* fresh,
          const kernels::Stream& stream) {
  const std::int64_t first = other.points.first, n = other.points.count();
  kernels::copy_between(tracked + first, other.tracked + first, n * sizeof(*tracked), stream.handle());
  kernels::copy_between(fresh + first, other.fresh + first, n, stream.handle());
}

}  // namespace

void HaloExchange::read() {
  if (frames_.size() == 1) return;
  const kernels::Stream& stream = own_.gpu.stream();
  own_.gpu.halo().results_written.record(stream);
  team_.barrier();
  std::vector<kernels::HaloSource> sources;
  for (const GpuFrame& other : frames_) {
    const kernels::PointRange points = halo(own_, other);
    if (&other == &own_ || points.count() == 0) continue;
    stream.wait(other.gpu.halo().results_written);
    sources.push_back({other.reference.tracked(), other.gpu.refinement().fresh(), points});
  }
  kernels::TrackedPoint* tracked = own_.reference.tracked();
  std::uint8_t* fresh = own_.gpu.refinement().fresh();
  if (peer_access_)
    kernels::launch_read_halo(sources, tracked, fresh, stream.handle());
  else
    for (const kernels::HaloSource& other : sources) copy(other, tracked, fresh, stream);
  own_.gpu.halo().halo_read.record(stream);
}

const std::int32_t* HaloExchange::sum_noise_counts() {
  const std::int32_t* own = own_.gpu.refinement().noise_counts();
  if (frames_.size() == 1) return own;
  const kernels::Stream& stream = own_.gpu.stream();
  own_.gpu.halo().results_written.record(stream);
  team_.barrier();
  const int gpus = static_cast<int>(frames_.size());
  std::int32_t* all = own_.gpu.refinement().gathered_counts(gpus);
  for (int rank = 0; rank < gpus; ++rank) {
    GpuContext& other = frames_[rank].gpu;
    stream.wait(other.halo().results_written);
    kernels::copy_between(all + rank * kernels::NoiseCounts::kCount, other.refinement().noise_counts(),
                          kernels::NoiseCounts::kBytes, stream.handle());
  }
  std::int32_t* sums = all + gpus * kernels::NoiseCounts::kCount;
  kernels::launch_add_counts(all, gpus, sums, stream.handle());
  return sums;
}

void HaloExchange::wait_until_read() {
  if (frames_.size() == 1) return;
  team_.barrier();
  for (const GpuFrame& other : frames_)
    if (halo(other, own_).count() > 0) own_.gpu.stream().wait(other.gpu.halo().halo_read);
}

}  // namespace dic::track::cuda
