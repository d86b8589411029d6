#include "track/cpu/refinement.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "track/steering.hpp"

namespace dic::track {
namespace {

constexpr std::size_t kBatch = 1 << 18;  // refinements at once: fills a GPU, and 30 MB of results

/// True where the point is measured by the result.
bool accept(RefinedPoint& known, const RefinedPoint& result) {
  if (result.status != Status::ok && known.iterations > 0) return false;
  if (known.status == Status::ok && result.zncc <= known.zncc) return false;
  known = result;
  return known.status == Status::ok;
}

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
    for (std::size_t k = 0; k < count; ++k)
      if (accept(results[which[first + k]], refined[k])) fresh.push_back(which[first + k]);
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

/// Points beside `fresh` ones that are lost or contradict a better one, each with the shape of its best
/// measured neighbour.
PointRefinement::Attempts PointRefinement::front(const Results& results, const PointList& fresh) const {
  std::set<std::int64_t> wanted;
  for (const std::int64_t i : fresh)
    points_.visit_neighbours(i, [&](std::int64_t n) {
      if (!anchor_.trackable(n)) return;
      const bool doubtful = results[n].zncc < std::min(kCertain, results[i].zncc);
      if (results[n].status != Status::ok || (doubtful && !agree(results, i, n))) wanted.insert(n);
    });
  Attempts out;
  for (const std::int64_t i : wanted) {
    std::int64_t best = -1;
    points_.visit_neighbours(i, [&](std::int64_t n) {
      if (results[n].status == Status::ok && (best < 0 || results[n].zncc > results[best].zncc)) best = n;
    });
    out.add(i, between(results, best, i));
  }
  return out;
}

/// A refinement may settle on a wrong place with a fair zncc, and pass it on to its neighbours. Such points
/// form small islands: what lies around them was lost, or contradicts them.
void PointRefinement::drop_unconfirmed(Results& results) const {
  std::vector<bool> seen(results.size(), false);
  PointList island;
  for (std::int64_t seed = 0; seed < anchor_.size(); ++seed) {
    if (seen[seed] || results[seed].status != Status::ok || results[seed].zncc >= kCertain) continue;
    island.assign(1, seed);
    seen[seed] = true;
    bool contested = false, certain = false;
    for (std::size_t head = 0; head < island.size(); ++head)
      points_.visit_neighbours(island[head], [&](std::int64_t n) {
        if (!anchor_.trackable(n)) return;
        if (!agree(results, island[head], n))
          contested = true;
        else if (results[n].zncc >= kCertain)
          certain = true;
        else if (!seen[n]) {
          seen[n] = true;
          island.push_back(n);
        }
      });
    if (certain || !contested || island.size() > kSmallIsland) continue;
    for (const std::int64_t i : island) results[i].status = Status::low_correlation;
  }
}

/// Tells points that left the picture from points that were not recognized: by where the nearest measured
/// point (in steps on the grid) says they are.
void PointRefinement::explain_lost(Results& results) const {
  PointList source(results.size(), -1), queue;
  for (std::int64_t i = 0; i < anchor_.size(); ++i)
    if (results[i].status == Status::ok) {
      source[i] = i;
      queue.push_back(i);
    }
  for (std::size_t head = 0; head < queue.size(); ++head) {
    const std::int64_t from = source[queue[head]];
    points_.visit_neighbours(queue[head], [&](std::int64_t n) {
      if (source[n] >= 0) return;
      source[n] = from;
      queue.push_back(n);
      if (anchor_.trackable(n) && leaves(n, between(results, from, n)))
        results[n].status = Status::out_of_image;
    });
  }
}

/// The shape of point `from`, continued to point `to`.
ShapeParameters PointRefinement::between(const Results& results, std::int64_t from, std::int64_t to) const {
  const Subsets& s = anchor_.subsets;
  return continued(results[from].shape, s.x[to] - s.x[from], s.y[to] - s.y[from]);
}

bool PointRefinement::agree(const Results& results, std::int64_t a, std::int64_t b) const {
  if (results[a].status != Status::ok || results[b].status != Status::ok) return false;
  const ShapeParameters s = between(results, a, b);
  return std::hypot(s.u - results[b].shape.u, s.v - results[b].shape.v) <= kAgreement;
}

bool PointRefinement::leaves(std::int64_t i, const ShapeParameters& shape) const {
  const ImageView picture = anchor_.picture();
  const double r = anchor_.refiner.options().subset / 2;
  const int at_x = anchor_.subsets.x[i], at_y = anchor_.subsets.y[i];
  const double x = at_x + shape.u, y = at_y + shape.v;
  return x - std::min<double>(r, at_x) < -0.5 || y - std::min<double>(r, at_y) < -0.5 ||
         x + std::min<double>(r, picture.width - 1 - at_x) > picture.width - 0.5 ||
         y + std::min<double>(r, picture.height - 1 - at_y) > picture.height - 0.5;
}

}  // namespace dic::track
