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

  /// The partition that suited the last frames.
  const Partition& latest() const { return latest_; }

  /// Counts a frame. seconds: time of each GPU for its part, until it first waited for another. Every few
  /// frames, `next` becomes a better partition.
  void count_frame(const Partition& used, std::span<const double> seconds, Partition& next) {
    if (seconds_.size() == 1) return;
    for (std::size_t rank = 0; rank < seconds_.size(); ++rank) seconds_[rank] += seconds[rank];
    if (++frames_ % kFrames != 0) return;
    latest_ = next = balanced(points_, used, seconds_);
    restart();
  }
  /// Forgets the times, which belong to another partition.
  void restart() { std::ranges::fill(seconds_, 0); }

 private:
  /// Frames between two moves: times of single frames vary, and lists can be kept between moves.
  static constexpr int kFrames = 4;

  const PointNodes& points_;
  Partition latest_;
  std::vector<double> seconds_;  ///< time of each GPU since the last move
  std::int64_t frames_ = 0;
};

}  // namespace dic::track::cuda
