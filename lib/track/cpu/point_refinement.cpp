#include "track/cpu/point_refinement.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "track/cpu/frame_points.hpp"

namespace dic::track {
namespace {

constexpr std::size_t kBatch = 1 << 18;  // refinements at once: 30 MB of results

}  // namespace

static_assert(RefinementOperations<PointRefinement>);

PointRefinement::PointRefinement(const Points& points, const HostReference& reference, ImageView current,
                                 const std::vector<Start>& starts, std::stop_token stop,
                                 std::function<void()> check_stop)
    : points_(points),
      reference_(reference),
      current_(current),
      starts_(starts),
      stop_(std::move(stop)),
      check_stop_(std::move(check_stop)),
      results_(starts.size()) {}

void PointRefinement::start_over() {
  for (std::int64_t i = 0; i < reference_.size(); ++i) results_[i] = unrefined(i);
  tried_ = std::numeric_limits<float>::infinity();
  refine_starts(0);
}

void PointRefinement::refine_starts(int step) {
  Attempts attempts;
  for (std::int64_t i = 0; i < reference_.size(); ++i)
    if (waits(i, kScoreLadder[step], tried_)) attempts.add(i, starts_[i].shape);
  tried_ = kScoreLadder[step];
  refine(attempts);
}

RefinedPoint PointRefinement::unrefined(std::int64_t i) const {
  RefinedPoint out;
  out.status = reference_.status(i);
  if (out.status == Status::ok) out.status = Status::low_correlation;
  out.zncc = std::max(0.0f, starts_[i].score);
  return out;
}

bool PointRefinement::waits(std::int64_t i, float least, float below) const {
  return results_[i].status != Status::ok && reference_.trackable(i) && starts_[i].score >= least &&
         starts_[i].score < below;
}

/// Makes the attempts and keeps what is better than what is known.
void PointRefinement::refine(const Attempts& attempts) {
  fresh_.clear();
  std::vector<RefinedPoint> refined;
  const std::span which(attempts.points);
  const std::span starts(attempts.starts);
  for (std::size_t first = 0; first < which.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, which.size() - first);
    check_stop_();
    refined.resize(count);
    reference_.refiner.refine(which.subspan(first, count), starts.subspan(first, count), refined, stop_);
    check_stop_();
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t i = which[first + k];
      if (!replaces(refined[k], results_[i])) continue;
      results_[i] = refined[k];
      if (results_[i].status == Status::ok) fresh_.push_back(i);
    }
  }
}

/// The points that the next wave refines, each from the shape of its best measured neighbour.
PointRefinement::Attempts PointRefinement::front() const {
  const FramePoints points{points_, reference_, results_};
  std::vector<std::uint8_t> is_fresh(results_.size()), seen(results_.size());
  for (const std::int64_t i : fresh_) is_fresh[i] = 1;
  Attempts out;
  for (const std::int64_t i : fresh_)
    points.for_each_neighbour(i, [&](std::int64_t n) {
      if (std::exchange(seen[n], 1) || !wanted(points, is_fresh, n)) return;
      out.add(n, between(points, best_neighbour(points, n), n));
    });
  return out;
}

int PointRefinement::recover(int most_waves) {
  int waves = 0;
  for (; waves < most_waves && !front_.points.empty(); ++waves) {
    refine(front_);
    front_ = front();
  }
  return waves;
}

RemainingPoints PointRefinement::remaining() const {
  RemainingPoints left{.front = std::ssize(front_.points)};
  for (std::int64_t i = 0; i < reference_.size(); ++i) left.untried += waits(i, kLeastScore, tried_);
  return left;
}

void PointRefinement::drop_islands() {
  const FramePoints points{points_, reference_, results_};
  std::vector<NeighbourSupport> supports(results_.size());
  for (std::int64_t i = 0; i < reference_.size(); ++i) supports[i] = neighbour_support(points, i);
  std::array<std::int64_t, kSmallIsland> island;
  for (std::int64_t i = 0; i < reference_.size(); ++i)
    if (supports[i] != 0 && unconfirmed(points, supports, i, island))
      results_[i].status = Status::low_correlation;
}

LostPoints PointRefinement::find_lost() const {
  const FramePoints points{points_, reference_, results_};
  return lost_points(points, reference_.size(), reference_.refiner.options().subset / 2, current_.size());
}

bool PointRefinement::refine_from_features(Stretch stretch) {
  check_stop_();
  const auto starts =
      starts_from_features(find_lost(), reference_.refiner.options(), reference_.image(), current_, stretch);
  Attempts attempts;
  for (const FeatureStart& start : starts) attempts.add(start.point, start.shape);
  refine(attempts);
  if (starts.empty()) return false;
  tried_ = kLeastScore;
  return true;
}

}  // namespace dic::track
