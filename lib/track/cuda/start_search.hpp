#pragma once

#include <stop_token>
#include <string>

#include "track/cuda/side.hpp"

namespace dic::track::cuda {

/// The search: finds a start for every point of an anchor in the current picture, by the steps of the CPU's
/// StartSearch. A rank of the crew does it for its own points.
class StartSearch {
 public:
  /// measured_before: the reference's tracked points are those of the frame before.
  StartSearch(Workbench& bench, const Side& side, bool measured_before, const std::stop_token& stop)
      : bench_(bench),
        side_(side),
        station_(side.station),
        points_(side.reference.points()),
        stream_(side.station.stream),
        measured_before_(measured_before),
        stop_(stop),
        radius_(bench.options.refine.subset / 2) {}

  /// Queues it, but for the waits for the lengths of lists. Returns the starts; `trackable` is how many
  /// points all ranks look for.
  const kernels::PointStart* find(std::int64_t& trackable);
  /// Has the motion since the last frame been too large to follow? Waits until all ranks have searched.
  bool lost_many();
  /// Searches for the lost points in another way. Better starts take the place of those that were found.
  void find_lost();

 private:
  bool automatic() const { return bench_.options.search < 0; }
  void read_lists() { station_.lists.read(stream_, "the search"); }
  /// Of all ranks, as read last.
  std::int64_t total(PointLists::Name list) { return bench_.crew.sum(station_.lists.size(list)); }
  void search_from(kernels::PointStart* starts);
  void search_list(PointLists::Name which, PointLists::Name again, bool cut, kernels::PointStart* starts);
  std::string find_peaks(const SubsetWindows& windows, bool cut, Peak* peaks);
  void start_from_coarse(PointLists::Name which, kernels::PointStart* starts);
  void run_coarse_search();

  Workbench& bench_;
  const Side& side_;
  Station& station_;
  const kernels::GridPoints& points_;
  const kernels::Stream& stream_;
  bool measured_before_;
  const std::stop_token& stop_;
  int radius_;
  std::int64_t of_trackable_ = 0;  ///< points, where some may be lost
};

}  // namespace dic::track::cuda
