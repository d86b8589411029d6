#pragma once

#include <stop_token>
#include <string>
#include <utility>

#include "track/cuda/side.hpp"
#include "track/steering.hpp"

namespace dic::track::cuda {

/// A search that is queued to its end.
struct EarlySearch {
  kernels::PointStart* starts = nullptr;
  std::int64_t trackable = 0;  ///< of a rank
  int telling = 0;             ///< of the lengths of lists
};

/// The search: finds a start for every point of an anchor in the current image, by the steps of the CPU's
/// StartSearch. A rank of the team does it for its own points.
class StartSearch {
 public:
  /// last: of the frame before, if it was measured from the same reference, else null.
  StartSearch(Workbench& bench, const Side& side, const kernels::TrackedPoint* last, std::stop_token stop)
      : bench_(bench),
        side_(side),
        station_(side.station),
        points_(side.reference.points()),
        stream_(side.station.stream),
        last_(last),
        stop_(std::move(stop)),
        radius_(bench.options.refine.subset / 2),
        follows_(automatic() && !station_.bands &&
                 station_.search.follows(side.current.image, bench.options.refine.subset, kAutoRange)) {}

  /// Will `find` wait for no lengths of lists?
  bool waits_for_nothing() const;
  /// Queues it, but for the waits for the lengths of lists. turn: 0 and 1 from frame to frame.
  EarlySearch find(int turn);
  /// Goes on from where that came, in another object.
  void go_on(const EarlySearch& begun);
  const kernels::PointStart* starts() const { return starts_; }
  /// Were too many points begun from nothing? Waits until all ranks have searched.
  bool without_many();
  /// Begins these, and then all, anew.
  void find_those_without();
  /// Has the motion since the last frame been too large to follow? To be asked afterwards.
  bool lost_many();
  /// Searches for the lost points in another way. Better starts take the place of those that were found.
  void find_lost();
  /// Points that all ranks look for; known when without_many was asked.
  std::int64_t trackable() const { return trackable_; }

 private:
  /// The points that are searched, and which of them must be searched again.
  struct Step {
    PointLists::Name from, again, spare;
    bool cut;  ///< by the border or the ROI

    void advance() {
      from = again;
      std::swap(again, spare);
    }
  };

  bool automatic() const { return !bench_.options.search; }
  void read_lists() { station_.lists.read(stream_, "the search"); }
  /// Of all ranks, as read last.
  std::int64_t total(PointLists::Name list) { return bench_.team.sum(station_.lists.size(list)); }
  void start_from_last();
  bool divided() const;
  void divide_own();
  void search_from(kernels::PointStart* starts);
  void split(const std::int32_t* list, std::int64_t n);
  void follow_whole(kernels::PointStart* starts);
  void search_list(const Step& step, kernels::PointStart* starts, const kernels::Stream& stream);
  std::string find_peaks(const SubsetWindows& windows, bool cut, Peak* peaks, const kernels::Stream& stream);
  void start_from_coarse(PointLists::Name which, kernels::PointStart* starts);
  void run_coarse_search();

  Workbench& bench_;
  const Side& side_;
  Station& station_;
  const kernels::GridPoints& points_;
  const kernels::Stream& stream_;
  const kernels::TrackedPoint* last_;
  const std::stop_token stop_;
  int radius_;
  bool follows_;                ///< the list `whole` is searched in one launch, and has all rectangles
  std::int64_t trackable_ = 0;  ///< points, of all ranks once they have searched
  std::int64_t without_ = 0;    ///< of them: without a start of their own
  kernels::PointStart* starts_ = nullptr;
  int telling_ = 0;  ///< of what was found and lost
};

}  // namespace dic::track::cuda
