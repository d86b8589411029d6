#include "track/cuda/point_refinement.hpp"

#include <iterator>
#include <limits>

#include "track/steering.hpp"

namespace dic::track::cuda {

using kernels::RefineResult;
using kernels::RefineTask;

void PointRefinement::run(const kernels::PointStart* starts) {
  const auto& points = reference_.points();
  bench_.lead().tasks.reserve<RefineTask>(points.count);
  kernels::launch_unrefined(points, starts, reference_.tracked(), stream_.handle());
  float tried = std::numeric_limits<float>::infinity();
  for (const float least : kScoreLadder) {
    recover(select(starts, least, tried));
    tried = least;
    if (select(starts, *std::rbegin(kScoreLadder), tried) == 0) break;  // most frames need no further rung
  }
  judge();
}

/// Lists the points that are not measured and whose start scores from `least` to `below`. Returns how many.
std::int64_t PointRefinement::select(const kernels::PointStart* starts, float least, float below) {
  kernels::launch_select(reference_.points(), reference_.tracked(), starts, least, below,
                         bench_.options.refine.order, static_cast<RefineTask*>(bench_.lead().tasks.data()),
                         bench_.lists.count(PointLists::tasks), stream_.handle());
  return read_tasks();
}

std::int64_t PointRefinement::read_tasks() {
  bench_.lists.read(stream_, "the refinement");
  return bench_.lists.size(PointLists::tasks);
}

/// Does the tasks, and goes on from what they measured, wave by wave.
void PointRefinement::recover(std::int64_t tasks) {
  for (int round = 0; round <= kMaxRounds && tasks > 0; ++round) {
    check_stop(stop_);
    refine(tasks);
    kernels::launch_front(reference_.points(), reference_.tracked(),
                          static_cast<const std::uint8_t*>(bench_.marks.data()),
                          static_cast<RefineTask*>(bench_.lead().tasks.data()),
                          bench_.lists.count(PointLists::tasks), stream_.handle());
    tasks = read_tasks();
  }
}

/// Marks the points that are measured now.
void PointRefinement::refine(std::int64_t count) {
  const auto& points = reference_.points();
  const auto* tasks = static_cast<const RefineTask*>(bench_.lead().tasks.data());
  auto* results = bench_.lead().results.reserve<RefineResult>(points.count);
  share_out(sides_, count, [&](const Side& side, const Share& share) {
    Station& station = side.station;
    const ReferenceSide& reference = side.reference;
    RefineResult* refined = place_for(station.results, results, share);
    kernels::launch_refine(reference.reference(), bench_.options.refine, reference.points().subsets,
                           reference.matrices(), side.current.coefficients,
                           brought(side, station.tasks, tasks, share), share.count, refined,
                           station.stream.handle());
    hand_back(side, refined, results, share);
  });
  kernels::launch_accept(points, tasks, results, count, reference_.tracked(),
                         bench_.marks.reserve<std::uint8_t>(points.count),
                         bench_.lists.count(PointLists::fresh), stream_.handle());
}

void PointRefinement::judge() {
  const auto& points = reference_.points();
  const auto stream = stream_.handle();
  const ImageView& picture = sides_.front().current.picture;
  kernels::launch_drop_unconfirmed(points, reference_.tracked(), bench_.marks.reserve<Bonds>(points.count),
                                   stream);
  kernels::launch_explain_lost(
      points, reference_.tracked(), bench_.options.refine.subset / 2, picture.width, picture.height,
      bench_.memory.reserve(kernels::explain_lost_workspace_bytes(points.count)), stream);
}

}  // namespace dic::track::cuda
