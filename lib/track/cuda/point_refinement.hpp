#pragma once

#include <span>
#include <stop_token>

#include "track/cuda/shares.hpp"

namespace dic::track::cuda {

/// From starts to points: refines them, recovers what was lost, and judges what was found, by the steps of
/// the CPU's PointRefinement.
class PointRefinement {
 public:
  PointRefinement(Workbench& bench, std::span<const Side> sides, const std::stop_token& stop)
      : bench_(bench),
        sides_(sides),
        reference_(sides.front().reference),
        stream_(bench.lead().stream),
        stop_(stop) {}

  /// Writes the reference's tracked points. Queues it, but for the waits for the lengths of lists.
  void run(const kernels::PointStart* starts);

 private:
  std::int64_t select(const kernels::PointStart* starts, float least, float below);
  std::int64_t read_tasks();
  void recover(std::int64_t tasks);
  void refine(std::int64_t tasks);
  void judge();

  Workbench& bench_;
  std::span<const Side> sides_;
  const ReferenceSide& reference_;  ///< of the first GPU
  const kernels::Stream& stream_;
  const std::stop_token& stop_;
};

}  // namespace dic::track::cuda
