#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <dic/kernels/points.hpp>
#include <numeric>
#include <vector>

#include "track/points.hpp"

namespace dic::track::cuda {

/// The points of every GPU, one range after the other.
using Shares = std::vector<kernels::PointRange>;

/// Rows that may pass from one GPU to another at once.
inline constexpr int kLargestMove = 8;

/// Part of a share that is not worth a move: a thousandth.
inline constexpr int kLeastMove = 1000;

/// Frames between two such moves: one takes longer than another, and lists of own points can be kept.
inline constexpr int kFramesOfShares = 4;

/// GPUs, of `devices`, that are worth their steps for so many points.
inline int ranks_for(std::int64_t points, int devices) {
  constexpr std::int64_t worth_a_gpu = 1 << 13;
  return static_cast<int>(std::clamp<std::int64_t>(points / worth_a_gpu, 1, devices));
}

/// What the first GPU has to do besides its points: it makes the field of all, which takes about as long as
/// measuring this share of them (on one H100 0.3 to 0.4 of 7.5 ms).
inline constexpr double kFieldWork = 0.04;

/// Shares to begin with: equal work.
inline Shares first_shares(std::int64_t points, int ranks) {
  const auto end_of = [&](int rank) {
    const double share = (1 + kFieldWork) * (rank + 1) / ranks - kFieldWork;
    return std::llround(static_cast<double>(points) * std::max(0.0, share));
  };
  Shares shares;
  for (int rank = 0; rank < ranks; ++rank) shares.push_back({rank > 0 ? end_of(rank - 1) : 0, end_of(rank)});
  return shares;
}

/// The first point of a row of nodes, or of a later one.
inline std::int64_t first_of_row(const Points& points, std::int64_t row) {
  return std::ranges::lower_bound(points.node_of, row * points.grid.nx) - points.node_of.begin();
}

/// Own points, and those around that decide on them and on points that may become own ones.
inline kernels::PointRange known_points(const Points& points, const kernels::PointRange& own) {
  if (own.count() == 0) return own;
  const auto row_of = [&](std::int64_t point) { return points.node_of[point] / points.grid.nx; };
  constexpr int reach = kernels::kIslandReach + kLargestMove;
  return {first_of_row(points, row_of(own.first) - reach),
          first_of_row(points, row_of(own.last - 1) + reach + 1)};
}

/// Shares for the next frames, after GPUs took so many seconds for theirs: half the way to equal times, as
/// far as rows may pass, unless that is hardly a move: a GPU's lists are made anew after each. Which GPU
/// measures a point does not change the result.
inline Shares balanced(const Points& points, const Shares& shares, const std::vector<double>& seconds) {
  const auto idle = [](const kernels::PointRange& share) { return share.count() == 0; };
  if (std::ranges::any_of(shares, idle) || std::ranges::min(seconds) <= 0) return shares;
  const double total = std::reduce(seconds.begin(), seconds.end());
  Shares out = shares;
  std::size_t from = 0;  // the share in which a boundary of equal times lies
  double before = 0;     // seconds of the shares before it
  for (std::size_t rank = 1; rank < shares.size(); ++rank) {
    const double wanted = total * static_cast<double>(rank) / static_cast<double>(shares.size());
    while (from + 1 < shares.size() && before + seconds[from] < wanted) before += seconds[from++];
    const double into = (wanted - before) / seconds[from] * static_cast<double>(shares[from].count());
    const std::int64_t now = shares[rank].first, equal = shares[from].first + static_cast<std::int64_t>(into);
    const std::int64_t row = points.node_of[now] / points.grid.nx, move = (equal - now) / 2;
    if (std::abs(move) * kLeastMove < shares[rank].count()) continue;
    out[rank].first = out[rank - 1].last = std::clamp(now + move, first_of_row(points, row - kLargestMove),
                                                      first_of_row(points, row + kLargestMove));
  }
  return out;
}

}  // namespace dic::track::cuda
