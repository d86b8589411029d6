#include "track/cpu/start_search.hpp"

#include <utility>

#include "track/cpu/frame_points.hpp"

namespace dic::track {

static_assert(StartSearchOperations<StartSearch>);

StartSearch::StartSearch(const Points& points, HostReference& reference, ImageView current,
                         Correlator& correlator, std::optional<int> range, std::function<void()> check_stop,
                         std::set<std::string>& variants)
    : points_(points),
      reference_(reference),
      current_(current),
      correlator_(correlator),
      range_(range),
      check_stop_(std::move(check_stop)),
      variants_(variants),
      starts_(reference.size()) {
  for (std::int64_t i = 0; i < reference_.size(); ++i)
    if (reference_.trackable(i)) trackable_.push_back(i);
}

void StartSearch::predict_from_last() {
  unpredicted_.clear();
  const FramePoints last{points_, reference_, reference_.last};
  for (const std::int64_t i : trackable_) {
    const std::int64_t from = has_last() ? start_source(last, i) : -1;
    if (from >= 0)
      starts_[i].shape = between(last, from, i);
    else
      unpredicted_.push_back(i);
  }
}

void StartSearch::predict_from_pyramid(std::span<const std::int64_t> which, std::vector<Start>& starts) {
  check_stop_();
  const CoarseField field = reference_.coarse().run(correlator_, current_);
  variants_.insert(correlator_.last_plan().variant);
  for (const std::int64_t i : which)
    starts[i] = {start_of(field.at(reference_.subsets.x[i], reference_.subsets.y[i]))};
}

/// Searches `which` around the shapes in `starts` and writes what was found there. In automatic range, a peak
/// on the border of the searched rectangle is followed. Where the same peak is found again, it has all its
/// neighbours for the sub-pixel fit.
void StartSearch::search(PointList which, std::vector<Start>& starts) {
  const int range = range_.value_or(kAutoRange);
  std::vector<Prediction> predictions;
  for (const std::int64_t i : which) predictions.push_back(rounded(starts[i].shape.u, starts[i].shape.v));
  for (int step = 0; step <= kAutoSteps && !which.empty(); ++step) {
    check_stop_();
    const auto found = reference_.search().around(correlator_, current_, which, predictions, range);
    variants_.insert(correlator_.last_plan().variant);
    PointList at_border;
    std::vector<Prediction> followed;
    for (std::size_t k = 0; k < which.size(); ++k) {
      Start& start = starts[which[k]];
      if (!found[k].found || found[k].score < start.score) continue;
      start.shape.u = found[k].u;
      start.shape.v = found[k].v;
      start.score = found[k].score;
      if (!automatic() || !found[k].at_border) continue;
      at_border.push_back(which[k]);
      followed.push_back(rounded(found[k].u, found[k].v));
    }
    which = std::move(at_border);
    predictions = std::move(followed);
  }
}

StartSearch::PointList StartSearch::lost_points() const {
  PointList lost;
  for (const std::int64_t i : trackable_)
    if (starts_[i].score < kRecognized) lost.push_back(i);
  return lost;
}

void StartSearch::search_again(bool all) {
  const PointList which = all ? trackable_ : lost_points();
  std::vector<Start> others(starts_.size());
  predict_from_pyramid(which, others);
  search(which, others);
  for (const std::int64_t i : which)
    if (others[i].score > starts_[i].score) starts_[i] = others[i];
}

}  // namespace dic::track
