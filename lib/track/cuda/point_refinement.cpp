#include "track/cuda/point_refinement.hpp"

#include <algorithm>
#include <dic/kernels/peer.hpp>
#include <iterator>
#include <limits>

#include "track/steering.hpp"

namespace dic::track::cuda {

using kernels::RefineResult;
using kernels::RefineTask;

void PointRefinement::begin(const kernels::PointStart* starts) {
  const auto& points = reference_.points();
  station_.tasks.reserve<RefineTask>(points.count);
  kernels::launch_unrefined(points, starts, reference_.tracked(), stream_.handle());
  select(starts, kScoreLadder[0], std::numeric_limits<float>::infinity());
  refine();
}

void PointRefinement::finish(const kernels::PointStart* starts) {
  const float* rung = std::begin(kScoreLadder);
  recover();
  while (true) {
    select(starts, *std::rbegin(kScoreLadder), *rung);
    if (total_tasks() == 0) break;  // most frames need no further rung
    const float tried = *rung++;
    select(starts, *rung, tried);
    refine();
    recover();
  }
  kernels::launch_drop_unconfirmed(reference_.points(), reference_.tracked(),
                                   station_.bonds.reserve<Bonds>(reference_.points().count),
                                   stream_.handle());
}

/// Lists the points that are not measured and whose start scores from `least` to `below`.
void PointRefinement::select(const kernels::PointStart* starts, float least, float below) {
  kernels::launch_select(reference_.points(), reference_.tracked(), starts, least, below,
                         bench_.options.refine.order, static_cast<RefineTask*>(station_.tasks.data()),
                         station_.lists.count(PointLists::tasks), stream_.handle());
  read_tasks();
}

void PointRefinement::read_tasks() { station_.lists.read(stream_, "the refinement"); }

/// Of all ranks.
std::int64_t PointRefinement::total_tasks() {
  return bench_.crew.sum(station_.lists.size(PointLists::tasks));
}

/// Goes on from what was measured, wave by wave.
void PointRefinement::recover() {
  for (int round = 0; round <= kMaxRounds; ++round) {
    check_stop(stop_);
    hear_from_others();
    kernels::launch_front(reference_.points(), reference_.tracked(),
                          static_cast<const std::uint8_t*>(station_.fresh.data()),
                          static_cast<RefineTask*>(station_.tasks.data()),
                          station_.lists.count(PointLists::tasks), stream_.handle());
    read_tasks();
    if (total_tasks() == 0) return;
    refine();
  }
}

/// Does the tasks, and marks the points that are measured now.
void PointRefinement::refine() {
  const auto& points = reference_.points();
  const std::int64_t count = station_.lists.size(PointLists::tasks);
  const auto* tasks = static_cast<const RefineTask*>(station_.tasks.data());
  auto* results = station_.results.reserve<RefineResult>(points.count);
  station_.work.start(stream_);
  if (station_.bands)
    station_.bands->refine(reference_.banded(), current_, points.subsets, reference_.matrices(), tasks, count,
                           results, stream_);
  else
    kernels::launch_refine(reference_.reference(), bench_.options.refine, points.subsets,
                           reference_.matrices(), current_.coefficients, tasks, count, results,
                           stream_.handle());
  kernels::launch_accept(points, tasks, results, count, reference_.tracked(),
                         station_.fresh.reserve<std::uint8_t>(points.count),
                         station_.lists.count(PointLists::fresh), stream_.handle());
  station_.work.stop(stream_);
}

/// Copies what is known now of points around the own ones. The others do not touch them before all ranks have
/// read their tasks, which waits for these copies.
void PointRefinement::hear_from_others() {
  station_.accepted.record(stream_);
  bench_.crew.meet();
  const kernels::PointRange& known = reference_.points().known;
  for (const Side& other : sides_) {
    if (&other.station == &station_) continue;
    const kernels::PointRange& theirs = other.reference.points().own;
    const std::int64_t first = std::max(known.first, theirs.first), last = std::min(known.last, theirs.last);
    if (first >= last) continue;
    other.station.accepted.hold(stream_);
    const auto copy = [&](auto* to, const auto* from) {
      kernels::copy_between(to + first, from + first, (last - first) * sizeof(*to), stream_.handle());
    };
    copy(reference_.tracked(), other.reference.tracked());
    copy(static_cast<std::uint8_t*>(station_.fresh.data()),
         static_cast<const std::uint8_t*>(other.station.fresh.data()));
  }
}

}  // namespace dic::track::cuda
