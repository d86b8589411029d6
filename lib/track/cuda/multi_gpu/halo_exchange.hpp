#pragma once

#include <span>

#include "core/thread_team.hpp"
#include "track/cuda/gpu_frame.hpp"

namespace dic::track::cuda {

/// The exchange before each wave of the recovery, in which a GPU reads the points around its own from the
/// other GPUs. All GPUs call the same functions in the same order. Does nothing for one GPU.
class HaloExchange {
 public:
  /// frames: the frame on each GPU, by rank. peer_access: GPUs can read each other's memory.
  HaloExchange(core::ThreadTeam& team, std::span<const GpuFrame> frames, int rank, bool peer_access)
      : team_(team), frames_(frames), own_(frames[rank]), peer_access_(peer_access) {}

  /// Queues reading the current results of the points around the own ones from the other GPUs.
  void read();
  /// Makes queued work wait until the other GPUs have read the own points, which may then be overwritten.
  void wait_until_read();
  /// Queues adding up the noise counts of all GPUs. Returns where their sums will be.
  const std::int32_t* sum_noise_counts();
  /// The sum over all GPUs.
  std::int64_t sum(std::int64_t own) { return team_.sum(own); }

 private:
  core::ThreadTeam& team_;
  std::span<const GpuFrame> frames_;
  const GpuFrame& own_;
  const bool peer_access_;
};

}  // namespace dic::track::cuda
