#include "track/cpu/point_refinement.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>

#include "track/cpu/frame_points.hpp"

namespace dic::track {
namespace {

/// Points that are worth a search by features.
struct SoughtPoints : FramePoints {
  bool trackable(Index i) const { return FramePoints::trackable(i) && reference.is_missed(i); }
};

}  // namespace

static_assert(RefinementOperations<PointRefinement>);

PointRefinement::PointRefinement(const PointNodes& points, const HostReference& reference, ImageView current,
                                 std::span<const Start> starts, RefinementMemory& memory,
                                 std::stop_token stop, std::function<void()> check_stop, int step)
    : points_(points),
      reference_(reference),
      current_(current),
      starts_(starts),
      stop_(std::move(stop)),
      check_stop_(std::move(check_stop)),
      step_(step),
      memory_(memory),
      results_(memory.results) {
  results_.resize(starts.size());
  memory_.is_fresh.assign(starts.size(), 0);
  memory_.seen.assign(starts.size(), 0);
  memory_.has_left.assign(starts.size(), 0);
}

void PointRefinement::start_over() {
  core::for_each_index(reference_.pool, reference_.size(),
                       [&](std::int64_t i) { results_[i] = unrefined(i); });
  refine_starts(0);
  give_up_noise();
}

void PointRefinement::give_up_noise() {
  std::vector<std::int32_t> residuals(ValueClasses::kCount);
  std::int64_t certain = 0, trackable = 0;
  for (std::int64_t i = 0; i < reference_.size(); ++i) {
    trackable += reference_.trackable(i);
    if (results_[i].status != Status::ok || results_[i].zncc < kCertain) continue;
    ++residuals[ValueClasses::of(results_[i].residual_sd)];
    ++certain;
  }
  if (!knows_noise(certain, trackable, large_group(reference_.refiner.options().subset, step_))) return;
  const float normal = ValueClasses::lower_quartile(residuals.data());
  core::for_each_index(reference_.pool, reference_.size(), [&](std::int64_t i) {
    if (!reference_.trackable(i) || !is_noise_only(reference_.refiner.reference_contrast(i), normal)) return;
    results_[i].status = Status::flat;
    memory_.is_fresh[i] = 0;
  });
  std::erase_if(fresh_, [&](std::int64_t i) { return memory_.is_fresh[i] == 0; });
}

void PointRefinement::refine_starts(int step) {
  if (step == 0) tried_ = std::numeric_limits<float>::infinity();
  memory_.attempts.points = core::indices_where(reference_.pool, reference_.size(), [&](std::int64_t i) {
    return waits(i, kScoreLadder[step], tried_);
  });
  memory_.attempts.starts.clear();
  tried_ = kScoreLadder[step];
  refine();
}

RefinedPoint PointRefinement::unrefined(std::int64_t i) const {
  RefinedPoint out;
  out.status = reference_.status(i);
  if (out.status == Status::ok) out.status = Status::low_correlation;
  out.zncc = std::max(0.0f, starts_[i].score);
  return out;
}

bool PointRefinement::waits(std::int64_t i, float least, float below) const {
  return is_lost(i) && starts_[i].score >= least && starts_[i].score < below && memory_.has_left[i] == 0;
}

bool PointRefinement::is_lost(std::int64_t i) const {
  return results_[i].status != Status::ok && results_[i].status != Status::flat && reference_.trackable(i);
}

void PointRefinement::count_remaining(int) {
  const FramePoints points{points_, reference_, results_};
  memory_.has_left.assign(results_.size(), 0);
  const PointList left = core::indices_where(reference_.pool, reference_.size(), [&](std::int64_t i) {
    return is_lost(i) && has_surely_left(points, i);
  });
  for (const std::int64_t i : left) {
    memory_.has_left[i] = 1;
    results_[i].status = Status::out_of_image;
  }
}

std::span<const ShapeParameters> PointRefinement::starts_of_attempts(std::size_t first,
                                                                     std::size_t count) const {
  const RefinementAttempts& attempts = memory_.attempts;
  if (!attempts.starts.empty()) return std::span(attempts.starts).subspan(first, count);
  memory_.starts.resize(count);
  core::for_each_index(reference_.pool, std::ssize(memory_.starts), [&](std::int64_t k) {
    memory_.starts[k] = starts_[attempts.points[first + k]].shape;
  });
  return memory_.starts;
}

void PointRefinement::refine() {
  // A batch is small enough for the caches and has enough points for each thread.
  const std::size_t batch = 2048 * static_cast<std::size_t>(reference_.pool.size());
  for (const std::int64_t i : fresh_) memory_.is_fresh[i] = 0;
  fresh_.clear();
  core::RawVector<RefinedPoint>& refined = memory_.refined;
  const std::span which(std::as_const(memory_.attempts.points));
  for (std::size_t first = 0; first < which.size(); first += batch) {
    const std::size_t count = std::min(batch, which.size() - first);
    check_stop_();
    refined.resize(std::max(refined.size(), count));
    reference_.refiner.refine(which.subspan(first, count), starts_of_attempts(first, count),
                              std::span(refined).first(count), stop_);
    check_stop_();
    core::for_each_index(reference_.pool, static_cast<std::int64_t>(count), [&](std::int64_t k) {
      const std::int64_t i = which[first + k];
      if (!replaces(refined[k], results_[i])) return;
      results_[i] = refined[k];
      memory_.is_fresh[i] = refined[k].status == Status::ok;
    });
  }
  std::ranges::copy_if(which, std::back_inserter(fresh_),
                       [&](std::int64_t i) { return memory_.is_fresh[i] != 0; });
}

/// Lists the points that the next wave refines, each starting from the shape of its best measured neighbour.
void PointRefinement::find_front() {
  const FramePoints points{points_, reference_, results_};
  PointList beside;
  for (const std::int64_t i : fresh_)
    points.for_each_neighbour(i, [&](std::int64_t n) {
      if (!std::exchange(memory_.seen[n], 1)) beside.push_back(n);
    });
  for (const std::int64_t n : beside) memory_.seen[n] = 0;
  PointList front = core::indices_where(reference_.pool, std::ssize(beside), [&](std::int64_t k) {
    return needs_recovery(points, memory_.is_fresh, beside[k]);
  });
  for (std::int64_t& k : front) k = beside[k];
  // All starts come from earlier waves.
  core::RawVector<ShapeParameters>& starts = memory_.attempts.starts;
  starts.resize(front.size());
  core::for_each_index(reference_.pool, std::ssize(front), [&](std::int64_t k) {
    starts[k] = predicted_shape(points, best_neighbour(points, front[k]), front[k]);
  });
  memory_.attempts.points = std::move(front);
}

int PointRefinement::recover(int most_waves) {
  int waves = 0;
  for (; waves < most_waves && !memory_.attempts.points.empty(); ++waves) {
    refine();
    find_front();
  }
  return waves;
}

RemainingPoints PointRefinement::remaining() const {
  return {.front = std::ssize(memory_.attempts.points),
          .untried = core::count_where(reference_.pool, reference_.size(),
                                       [&](std::int64_t i) { return waits(i, kLeastScore, tried_); })};
}

void PointRefinement::drop_islands() {
  const FramePoints points{points_, reference_, results_};
  std::vector<NeighbourSupport> supports(results_.size());
  core::for_each_index(reference_.pool, reference_.size(),
                       [&](std::int64_t i) { supports[i] = neighbour_support(points, i); });
  std::array<std::int64_t, kSmallIsland> island;
  for (std::int64_t i = 0; i < reference_.size(); ++i)
    if (supports[i] != 0 && unconfirmed(points, supports, i, island))
      results_[i].status = Status::low_correlation;
}

/// True if enough points were found on the way that the search knows: what another camera sees more stretched
/// lies beside what it sees less stretched, and was reached from there.
bool PointRefinement::leads_to_stretched() const {
  constexpr std::int64_t kEnough = 4;  // one in so many points
  return reference_.is_guided() &&
         kEnough * core::count_where(reference_.pool, reference_.size(),
                                     [&](std::int64_t i) { return results_[i].status == Status::ok; }) >=
             reference_.size();
}

LostPoints PointRefinement::find_lost() const {
  const SoughtPoints points{{points_, reference_, results_}};
  return lost_points(points, reference_.size(), reference_.refiner.options().subset / 2, current_.size());
}

bool PointRefinement::refine_from_features(Stretch stretch) {
  if (stretch == Stretch::large && leads_to_stretched()) return false;
  check_stop_();
  if (!finder_) finder_.emplace(reference_.image(), current_);
  const auto starts = starts_from_features(find_lost(), reference_.refiner.options(), *finder_,
                                           reference_.image().size(), current_.size(), stretch);
  memory_.attempts = {};
  for (const FeatureStart& start : starts) {
    memory_.attempts.points.push_back(start.point);
    memory_.attempts.starts.push_back(start.shape);
  }
  refine();
  if (starts.empty()) return false;
  tried_ = kLeastScore;
  return true;
}

}  // namespace dic::track
