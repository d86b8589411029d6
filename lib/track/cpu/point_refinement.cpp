#include "track/cpu/point_refinement.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>

#include "track/cpu/frame_points.hpp"
#include "track/steering.hpp"

namespace dic::track {
namespace {

constexpr std::size_t kBatch = 1 << 18;  // refinements at once: fills a GPU, and 30 MB of results

}  // namespace

std::vector<RefinedPoint> PointRefinement::run(const std::vector<Start>& starts) {
  Results results(starts.size());
  for (std::int64_t i = 0; i < anchor_.size(); ++i) results[i] = unrefined(i, starts[i]);
  float tried = std::numeric_limits<float>::infinity();
  for (const float least : kScoreLadder) {
    Attempts attempts;
    for (std::int64_t i = 0; i < anchor_.size(); ++i)
      if (results[i].status != Status::ok && anchor_.trackable(i) && starts[i].score >= least &&
          starts[i].score < tried)
        attempts.add(i, starts[i].shape);
    tried = least;
    recover(results, make(attempts, results));
  }
  drop_unconfirmed(results);
  explain_lost(results);
  return results;
}

RefinedPoint PointRefinement::unrefined(std::int64_t i, const Start& start) const {
  RefinedPoint out;
  out.status = anchor_.status(i);
  if (out.status == Status::ok) out.status = Status::low_correlation;
  out.zncc = std::max(0.0f, start.score);
  return out;
}

/// Makes the attempts and keeps what is better than what is known. Returns the points that are measured now.
PointRefinement::PointList PointRefinement::make(const Attempts& attempts, Results& results) const {
  PointList fresh;
  Results refined;
  const std::span which(attempts.points);
  const std::span starts(attempts.starts);
  for (std::size_t first = 0; first < which.size(); first += kBatch) {
    const std::size_t count = std::min(kBatch, which.size() - first);
    check_stop_();
    refined.resize(count);
    anchor_.refiner.refine(which.subspan(first, count), starts.subspan(first, count), refined, stop_);
    check_stop_();
    for (std::size_t k = 0; k < count; ++k) {
      const std::int64_t i = which[first + k];
      if (!replaces(refined[k], results[i])) continue;
      results[i] = refined[k];
      if (results[i].status == Status::ok) fresh.push_back(i);
    }
  }
  return fresh;
}

/// Refines lost and contested points again from the shape of a measured neighbour, wave by wave from the
/// `fresh` ones (the idea of reliability-guided DIC, Pan 2009). Deterministic: a wave sees only the waves
/// before.
void PointRefinement::recover(Results& results, PointList fresh) const {
  for (int round = 0; round < kMaxRounds && !fresh.empty(); ++round)
    fresh = make(front(results, fresh), results);
}

/// The points that are wanted again, each with the shape of its best measured neighbour.
PointRefinement::Attempts PointRefinement::front(const Results& results, const PointList& fresh) const {
  const FramePoints points{points_, anchor_, results};
  std::vector<std::uint8_t> is_fresh(results.size()), seen(results.size());
  for (const std::int64_t i : fresh) is_fresh[i] = 1;
  Attempts out;
  for (const std::int64_t i : fresh)
    points.for_each_neighbour(i, [&](std::int64_t n) {
      if (std::exchange(seen[n], 1) || !wanted(points, is_fresh, n)) return;
      out.add(n, between(points, best_neighbour(points, n), n));
    });
  return out;
}

void PointRefinement::drop_unconfirmed(Results& results) const {
  const FramePoints points{points_, anchor_, results};
  std::vector<NeighbourSupport> supports(results.size());
  for (std::int64_t i = 0; i < anchor_.size(); ++i) supports[i] = neighbour_support(points, i);
  std::array<std::int64_t, kSmallIsland> island;
  for (std::int64_t i = 0; i < anchor_.size(); ++i)
    if (supports[i] != 0 && unconfirmed(points, supports, i, island))
      results[i].status = Status::low_correlation;
}

void PointRefinement::explain_lost(Results& results) const {
  const FramePoints points{points_, anchor_, results};
  const ImageView image = anchor_.image();
  const int radius = anchor_.refiner.options().subset / 2;
  PointList source(results.size(), -1), wave, next;
  for (std::int64_t i = 0; i < anchor_.size(); ++i)
    if (results[i].status == Status::ok) wave.push_back(source[i] = i);
  for (; !wave.empty(); wave = std::move(next), next.clear()) {
    for (const std::int64_t from : wave)
      points.for_each_neighbour(from, [&](std::int64_t n) {
        if (source[n] >= 0) return;
        source[n] = source[from];
        next.push_back(n);
        if (points.trackable(n) && left_image(points, n, source[n], radius, image.width, image.height))
          results[n].status = Status::out_of_image;
      });
    std::sort(next.begin(), next.end());  // so that each hears from its first neighbour in this wave
  }
}

}  // namespace dic::track
