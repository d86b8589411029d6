#include "track/cuda/point_refinement.hpp"

#include <algorithm>
#include <dic/kernels/peer.hpp>
#include <iterator>
#include <limits>

#include "track/steering.hpp"

namespace dic::track::cuda {

using kernels::RefineResult;
using kernels::RefineTask;

namespace {

std::uint8_t* fresh_of(const Station& station) { return static_cast<std::uint8_t*>(station.fresh.data()); }

/// None: of no length.
kernels::PointRange common(const kernels::PointRange& a, const kernels::PointRange& b) {
  const std::int64_t first = std::max(a.first, b.first);
  return {first, std::max(first, std::min(a.last, b.last))};
}

/// As kernels::launch_read_halo, where GPUs cannot read each other's memory.
void copy(const kernels::HaloSource& other, kernels::TrackedPoint* tracked, std::uint8_t* fresh,
          const kernels::Stream& stream) {
  const std::int64_t first = other.points.first, n = other.points.count();
  kernels::copy_between(tracked + first, other.tracked + first, n * sizeof(*tracked), stream.handle());
  kernels::copy_between(fresh + first, other.fresh + first, n, stream.handle());
}

}  // namespace

void PointRefinement::begin(const kernels::PointStart* starts) {
  const auto& points = reference_.points();
  station_.tasks.reserve<RefineTask>(points.count);
  station_.fresh.reserve<std::uint8_t>(points.count);
  kernels::launch_initial_tasks(points, starts, kScoreLadder[0], bench_.options.refine.order,
                                reference_.tracked(), tasks(), station_.lists.count(PointLists::tasks),
                                stream_.handle());
  refine(PointLists::tasks, &station_.refined);
  accept(PointLists::tasks);
}

void PointRefinement::finish(const kernels::PointStart* starts, const std::function<void()>& queued) {
  int looks = 0;
  const auto looking = [&] {
    ++looks;
    queued();
  };
  const float* rung = std::begin(kScoreLadder);
  while (recover(starts, *rung, looking)) {  // most frames need no further rung
    const float tried = *rung++;
    select(starts, *rung, tried, tasks(), PointLists::tasks);
    refine(PointLists::tasks);
    accept(PointLists::tasks);
  }
  station_.settles = looks == 1;
}

RefineTask* PointRefinement::tasks() const { return static_cast<RefineTask*>(station_.tasks.data()); }
std::uint8_t* PointRefinement::fresh() const { return fresh_of(station_); }

/// Lists the points that are not measured and whose start scores from `least` to `below`.
void PointRefinement::select(const kernels::PointStart* starts, float least, float below, RefineTask* listed,
                             PointLists::Name count) {
  kernels::launch_tasks_from_starts(reference_.points(), reference_.tracked(), starts, least, below,
                                    bench_.options.refine.order, listed, station_.lists.count(count),
                                    stream_.handle());
}

/// Goes on from what was measured, wave by wave, and then gives up islands. Returns whether some points, of
/// all ranks, have starts that were not tried, below `tried`: then nothing is given up yet. The host waits
/// only after some waves, and islands are given up before it knows that there was nothing more to refine.
bool PointRefinement::recover(const kernels::PointStart* starts, float tried,
                              const std::function<void()>& queued) {
  const PointLists& lists = station_.lists;
  PointLists::Name front = PointLists::first_front;
  list_front(front);
  for (int waves = 0, at_once = station_.waves;; at_once = 4) {
    check_stop(stop_);
    for (int k = 0; k < at_once && waves <= kMaxRounds; ++k, ++waves) {
      refine(front);
      let_others_hear();
      accept(front);
      list_front(front = PointLists::tasks);
    }
    select(starts, *std::rbegin(kScoreLadder), tried, nullptr, PointLists::untried);
    const int telling = station_.lists.tell(stream_);
    let_others_hear();
    kernels::launch_drop_unconfirmed(reference_.points(), reference_.tracked(),
                                     station_.supports.reserve<NeighbourSupport>(reference_.points().count),
                                     lists[PointLists::dropped], stream_.handle());
    queued();
    station_.lists.wait(telling, "the refinement");
    const bool settled = total(front) == 0 || waves > kMaxRounds;
    if (settled && total(PointLists::untried) == 0) {
      station_.waves = total(PointLists::first_front) > 0 ? 1 : 0;
      return false;
    }
    kernels::launch_restore_dropped(lists[PointLists::dropped], reference_.tracked(), stream_.handle());
    if (settled) return true;
  }
}

/// Of all ranks, as told last.
std::int64_t PointRefinement::total(PointLists::Name list) {
  return bench_.team.sum(station_.lists.size(list));
}

/// Lists the points beside those that are measured since the last wave.
void PointRefinement::list_front(PointLists::Name count) {
  hear_from_others();
  kernels::launch_recovery_tasks(reference_.points(), reference_.tracked(), fresh(), tasks(),
                                 station_.lists.count(count), stream_.handle());
}

kernels::RefineTasks PointRefinement::listed(PointLists::Name count) const {
  return {tasks(), reference_.points().own.count(), station_.lists.count(count)};
}

/// Does the tasks. most_done: see kernels::launch_refine.
void PointRefinement::refine(PointLists::Name count, kernels::Event* most_done) {
  const auto& points = reference_.points();
  PointLists& lists = station_.lists;
  auto* results = station_.results.reserve<RefineResult>(points.count);
  if (!station_.bands)
    return kernels::launch_refine(reference_.reference(), bench_.options.refine, points.subsets,
                                  reference_.matrices(), current_.coefficients, listed(count), results,
                                  stream_, most_done);
  lists.read(stream_, "the refinement");
  station_.bands->refine(reference_.banded(), current_, points.subsets, reference_.matrices(), tasks(),
                         lists.size(count), results, stream_);
}

/// Keeps what is better than before, and marks the points that are measured now.
void PointRefinement::accept(PointLists::Name count) {
  kernels::launch_accept_results(reference_.points(), listed(count),
                                 static_cast<const RefineResult*>(station_.results.data()),
                                 reference_.tracked(), fresh(), stream_.handle());
}

/// Copies what is known now of points around the own ones.
void PointRefinement::hear_from_others() {
  if (sides_.size() == 1) return;
  station_.accepted.record(stream_);
  bench_.team.barrier();
  std::vector<kernels::HaloSource> heard;
  for (const Side& other : sides_) {
    const kernels::PointRange points = common(reference_.points().known, other.reference.points().own);
    if (&other.station == &station_ || points.count() == 0) continue;
    stream_.wait(other.station.accepted);
    heard.push_back({other.reference.tracked(), fresh_of(other.station), points});
  }
  if (station_.reads_others)
    kernels::launch_read_halo(heard, reference_.tracked(), fresh(), stream_.handle());
  else
    for (const kernels::HaloSource& other : heard) copy(other, reference_.tracked(), fresh(), stream_);
  station_.heard.record(stream_);
}

/// What is queued from now on may write what others know of the own points.
void PointRefinement::let_others_hear() {
  if (sides_.size() == 1) return;
  bench_.team.barrier();
  for (const Side& other : sides_)
    if (common(other.reference.points().known, reference_.points().own).count() > 0)
      stream_.wait(other.station.heard);
}

}  // namespace dic::track::cuda
