#include "track/cpu/start_search.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "track/cpu/frame_points.hpp"
#include "track/steering.hpp"

namespace dic::track {
/// Starts the points of the frame before where they were then; returns the points that have no such start.
StartSearch::PointList StartSearch::start_from_last(std::span<const std::int64_t> which,
                                                    std::vector<Start>& starts) const {
  PointList without;
  const FramePoints last{points_, anchor_, anchor_.last};
  for (const std::int64_t i : which) {
    const std::int64_t from = anchor_.last.empty() ? -1 : start_source(last, i);
    if (from >= 0)
      starts[i].shape = between(last, from, i);
    else
      without.push_back(i);
  }
  return without;
}

void StartSearch::start_from_coarse(ImageView current, std::span<const std::int64_t> which,
                                    std::vector<Start>& starts) {
  check_stop_();
  const CoarseField field = anchor_.coarse().run(correlator_, current);
  variants_.insert(correlator_.last_plan().variant);
  for (const std::int64_t i : which)
    starts[i] = {start_of(field.at(anchor_.subsets.x[i], anchor_.subsets.y[i]))};
}

/// Searches `which` from the shapes in `starts` and writes what was found there. In automatic range, peaks on
/// the border of the searched rectangle are followed: where the same one is found again, it has all its
/// neighbours for the fit.
void StartSearch::search_from(ImageView current, PointList which, std::vector<Start>& starts) {
  const int range = range_.value_or(kAutoRange);
  std::vector<Prediction> predictions;
  for (const std::int64_t i : which) predictions.push_back(rounded(starts[i].shape.u, starts[i].shape.v));
  for (int step = 0; step <= kAutoSteps && !which.empty(); ++step) {
    check_stop_();
    const auto found = anchor_.search().around(correlator_, current, which, predictions, range);
    variants_.insert(correlator_.last_plan().variant);
    PointList again;
    std::vector<Prediction> moved;
    for (std::size_t k = 0; k < which.size(); ++k) {
      Start& start = starts[which[k]];
      if (!found[k].found || found[k].score < start.score) continue;
      start.shape.u = found[k].u;
      start.shape.v = found[k].v;
      start.score = found[k].score;
      if (!automatic() || !found[k].at_border) continue;
      again.push_back(which[k]);
      moved.push_back(rounded(found[k].u, found[k].v));
    }
    which = std::move(again);
    predictions = std::move(moved);
  }
}

std::vector<Start> StartSearch::find(ImageView current) {
  std::vector<Start> starts(anchor_.size());
  PointList which;
  for (std::int64_t i = 0; i < anchor_.size(); ++i)
    if (anchor_.trackable(i)) which.push_back(i);
  const PointList without = start_from_last(which, starts);
  if (automatic() && many_lost(std::ssize(without), std::ssize(which)))
    start_from_coarse(current, without, starts);
  search_from(current, which, starts);
  if (automatic() && without.size() < which.size()) find_lost(current, which, starts);
  return starts;
}

/// The motion since the last frame may have been too large to follow.
void StartSearch::find_lost(ImageView current, const PointList& which, std::vector<Start>& starts) {
  PointList lost;
  for (const std::int64_t i : which)
    if (starts[i].score < kRecognized) lost.push_back(i);
  if (!many_lost(std::ssize(lost), std::ssize(which))) return;
  const PointList& again = most_lost(std::ssize(lost), std::ssize(which)) ? which : lost;
  std::vector<Start> retry(starts.size());
  start_from_coarse(current, again, retry);
  search_from(current, again, retry);
  for (const std::int64_t i : again)
    if (retry[i].score > starts[i].score) starts[i] = retry[i];
}

}  // namespace dic::track
