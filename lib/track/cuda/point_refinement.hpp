#pragma once

#include <functional>
#include <span>
#include <stop_token>

#include "track/cuda/side.hpp"

namespace dic::track::cuda {

/// From starts to points: refines them, recovers what was lost, and gives up islands, by the steps of the
/// CPU's PointRefinement. A rank of the team does it for its own points, side by side with the others.
class PointRefinement {
 public:
  PointRefinement(Workbench& bench, std::span<const Side> sides, int rank, const std::stop_token& stop)
      : bench_(bench),
        sides_(sides),
        station_(sides[rank].station),
        reference_(sides[rank].reference),
        current_(sides[rank].current),
        stream_(sides[rank].station.stream),
        stop_(stop) {}

  /// Queues the refinement of the surest starts; waits for nobody else. May be begun anew with better ones.
  void begin(const kernels::PointStart* starts);
  /// Writes the reference's tracked points. Queues it, but for waits for the lengths of lists: before each,
  /// `queued` is called, since most often there was nothing more to do.
  void finish(const kernels::PointStart* starts, const std::function<void()>& queued);

 private:
  kernels::RefineTask* tasks() const;
  std::uint8_t* fresh() const;
  void select(const kernels::PointStart* starts, float least, float below, kernels::RefineTask* listed,
              PointLists::Name count);
  bool recover(const kernels::PointStart* starts, float tried, const std::function<void()>& queued);
  std::int64_t total(PointLists::Name list);
  void list_front(PointLists::Name count);
  kernels::RefineTasks listed(PointLists::Name count) const;
  void refine(PointLists::Name count, kernels::Event* most_done = nullptr);
  void accept(PointLists::Name count);
  void hear_from_others();
  void let_others_hear();

  Workbench& bench_;
  std::span<const Side> sides_;
  Station& station_;
  const ReferenceSide& reference_;
  const DeviceFrame& current_;
  const kernels::Stream& stream_;
  const std::stop_token& stop_;
};

}  // namespace dic::track::cuda
