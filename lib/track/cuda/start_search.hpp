#pragma once

#include <span>
#include <stop_token>

#include "track/cuda/shares.hpp"

namespace dic::track::cuda {

/// The search: finds a start for every point of an anchor in the current picture, by the steps of the CPU's
/// StartSearch.
class StartSearch {
 public:
  /// measured_before: the reference's tracked points are those of the frame before.
  StartSearch(Workbench& bench, std::span<const Side> sides, bool measured_before,
              const std::stop_token& stop)
      : bench_(bench),
        sides_(sides),
        reference_(sides.front().reference),
        stream_(bench.lead().stream),
        measured_before_(measured_before),
        stop_(stop),
        radius_(bench.options.refine.subset / 2) {}

  /// Queues it, but for the waits for the lengths of lists. Returns the starts; `trackable` is how many
  /// points were looked for.
  const kernels::PointStart* find(std::int64_t& trackable);

 private:
  bool automatic() const { return bench_.options.search < 0; }
  void read_lists() { bench_.lists.read(stream_, "the search"); }
  void search_from(kernels::PointStart* starts);
  void search_list(PointLists::Name which, PointLists::Name again, bool cut, kernels::PointStart* starts);
  void start_from_coarse(PointLists::Name which, kernels::PointStart* starts);
  void find_lost(kernels::PointStart* starts);

  Workbench& bench_;
  std::span<const Side> sides_;
  ReferenceSide& reference_;  ///< of the first GPU
  const kernels::Stream& stream_;
  bool measured_before_;
  const std::stop_token& stop_;
  int radius_;
};

}  // namespace dic::track::cuda
