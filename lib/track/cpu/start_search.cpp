#include "track/cpu/start_search.hpp"

#include <algorithm>
#include <dic/shared/common_motion.hpp>
#include <utility>

#include "track/cpu/frame_points.hpp"

namespace dic::track {

template <typename Body>
void StartSearch::for_each_of(std::span<const std::int64_t> which, const Body& body) const {
  core::for_each_index(reference_.pool, std::ssize(which), [&](std::int64_t k) { body(which[k], k); });
}

static_assert(StartSearchOperations<StartSearch>);

StartSearch::StartSearch(const PointNodes& points, HostReference& reference, ImageView current,
                         Correlator& correlator, std::optional<int> range, std::function<void()> check_stop,
                         std::set<std::string>& variants, const core::RawVector<RefinedPoint>& results)
    : points_(points),
      reference_(reference),
      current_(current),
      correlator_(correlator),
      range_(range),
      check_stop_(std::move(check_stop)),
      variants_(variants),
      results_(results),
      trackable_(core::indices_where(reference.pool, reference.size(),
                                     [&](std::int64_t i) { return reference.trackable(i); })),
      starts_(reference.size()) {
  core::for_each_index(reference.pool, reference.size(), [&](std::int64_t i) { starts_[i] = {}; });
}

void StartSearch::predict_from_last() {
  unpredicted_ = trackable_;
  if (!has_last()) return;
  const FramePoints last{points_, reference_, reference_.last};
  std::vector<std::uint8_t> predicted(starts_.size());
  for_each_of(trackable_, [&](std::int64_t i, std::size_t) {
    const std::int64_t from = start_source(last, i);
    if (from < 0) return;
    starts_[i].shape = predicted_shape(last, from, i);
    predicted[i] = 1;
  });
  std::erase_if(unpredicted_, [&](std::int64_t i) { return predicted[i] != 0; });
  const auto is_left_to_neighbours = [&](std::int64_t i) {
    return !predicted[i] && !reference_.is_missed(i);
  };
  std::erase_if(unpredicted_, is_left_to_neighbours);
  std::erase_if(trackable_, is_left_to_neighbours);
}

StartSearch::PointList StartSearch::sampled() const {
  PointList points;
  for (int k = 0; k < kMotionSamples; ++k) points.push_back(sampled_point(k, reference_.size()));
  points.erase(std::ranges::unique(points).begin(), points.end());
  const FramePoints last{points_, reference_, reference_.last};
  std::erase_if(points, [&](std::int64_t i) { return !last.trackable(i) || start_source(last, i) < 0; });
  return points;
}

void StartSearch::follow_common_motion() {
  const PointList asked = sampled();
  std::vector<Start> predicted;
  for (const std::int64_t i : asked) predicted.push_back(starts_[i]);
  search(asked, starts_);
  std::vector<MotionSample> samples;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    Start& start = starts_[asked[k]];
    samples.push_back({static_cast<float>(reference_.subsets.x[asked[k]]),
                       static_cast<float>(reference_.subsets.y[asked[k]]),
                       static_cast<float>(start.shape.u - predicted[k].shape.u),
                       static_cast<float>(start.shape.v - predicted[k].shape.v),
                       start.score >= kRecognized ? MotionSample::found : MotionSample::not_found});
    start = predicted[k];
  }
  const LinearMotion motion = common_motion(samples.data(), static_cast<int>(samples.size()), kAutoRange);
  for_each_of(trackable_, [&](std::int64_t i, std::size_t) {
    const int x = reference_.subsets.x[i], y = reference_.subsets.y[i];
    starts_[i].shape.u += motion.u_at(x, y);
    starts_[i].shape.v += motion.v_at(x, y);
  });
}

void StartSearch::predict_from_pyramid(std::span<const std::int64_t> which, std::span<Start> starts) {
  check_stop_();
  if (!coarse_) {
    coarse_ = reference_.coarse().run(correlator_, current_);
    variants_.insert(correlator_.last_plan().variant);
  }
  for_each_of(which, [&](std::int64_t i, std::size_t) {
    starts[i] = {start_of(coarse_->at(reference_.subsets.x[i], reference_.subsets.y[i]))};
  });
}

/// Searches `which` around the shapes in `starts` and writes what was found there. In automatic range, a peak
/// on the border of the searched rectangle is followed. If the same peak is found again, it now has all
/// neighbours for the sub-pixel fit.
void StartSearch::search(PointList which, std::span<Start> starts) {
  const int range = range_.value_or(kAutoRange);
  std::vector<Prediction> predictions(which.size());
  for_each_of(which, [&](std::int64_t i, std::size_t k) {
    predictions[k] = rounded(starts[i].shape.u, starts[i].shape.v);
  });
  for (int step = 0; step <= kAutoSteps && !which.empty(); ++step) {
    check_stop_();
    const auto found = reference_.search().around(correlator_, current_, which, predictions, range);
    variants_.insert(correlator_.last_plan().variant);
    std::vector<std::uint8_t> goes_on(which.size());
    for_each_of(which, [&](std::int64_t i, std::size_t k) {
      Start& start = starts[i];
      if (!found[k].found || found[k].score < start.score) return;
      start.shape.u = found[k].u;
      start.shape.v = found[k].v;
      start.score = found[k].score;
      goes_on[k] = automatic() && found[k].at_border;
    });
    PointList at_border;
    std::vector<Prediction> followed;
    for (std::size_t k = 0; k < which.size(); ++k) {
      if (!goes_on[k]) continue;
      at_border.push_back(which[k]);
      followed.push_back(rounded(found[k].u, found[k].v));
    }
    which = std::move(at_border);
    predictions = std::move(followed);
  }
}

StartSearch::PointList StartSearch::lost_points() const {
  PointList lost = core::indices_where(reference_.pool, std::ssize(trackable_), [&](std::int64_t k) {
    const std::int64_t i = trackable_[k];
    return starts_[i].score < kRecognized && reference_.is_missed(i) &&
           !(leaves_out_measured_ && results_[i].status == Status::ok);
  });
  for (std::int64_t& k : lost) k = trackable_[k];
  return lost;
}

std::int64_t StartSearch::missed(const PointList& missing) const {
  if (!has_last()) return std::ssize(missing);
  const auto excused = [&](const PointList& points) {
    return core::count_where(reference_.pool, std::ssize(points),
                             [&](std::int64_t k) { return is_excused(reference_.last[points[k]].status); });
  };
  return track::missed(std::ssize(missing), excused(missing), excused(trackable_), trackable());
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
