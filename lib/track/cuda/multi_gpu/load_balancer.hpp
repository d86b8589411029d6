#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "track/cuda/multi_gpu/partition.hpp"

namespace dic::track::cuda {

/// Measures how long GPUs take for their parts, and moves points from slower to faster ones. Does nothing for
/// one GPU.
class LoadBalancer {
 public:
  LoadBalancer(const PointNodes& points, int gpus)
      : points_(points), latest_(first_partition(points.size(), gpus)), seconds_(gpus) {}

  /// That suited the last frames.
  const Partition& latest() const { return latest_; }

  /// Counts a frame. seconds: of each GPU for its part, until it first waited for another. After every few
  /// frames `next` becomes a better partition.
  void count_frame(const Partition& used, std::span<const double> seconds, Partition& next) {
    if (seconds_.size() == 1) return;
    for (std::size_t rank = 0; rank < seconds_.size(); ++rank) seconds_[rank] += seconds[rank];
    if (++frames_ % kFrames != 0) return;
    latest_ = next = balanced(points_, used, seconds_);
    restart();
  }
  /// Forgets the times: they are of another partition.
  void restart() { std::ranges::fill(seconds_, 0); }

 private:
  /// Frames between two moves: single frames differ in time, and between moves lists can be kept.
  static constexpr int kFrames = 4;

  const PointNodes& points_;
  Partition latest_;
  std::vector<double> seconds_;  ///< by GPU, since the last move
  std::int64_t frames_ = 0;
};

}  // namespace dic::track::cuda
