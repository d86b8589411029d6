#include "track/cuda/multi_gpu/partition.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

namespace dic::track::cuda {
namespace {

std::int64_t row_of(const fields::PointNodes& points, std::int64_t point) {
  return points.node_of[point] / points.grid.nx;
}

/// The first point of a row of nodes, or of a later one.
std::int64_t first_of_row(const fields::PointNodes& points, std::int64_t row) {
  return std::ranges::lower_bound(points.node_of, row * points.grid.nx) - points.node_of.begin();
}

}  // namespace

int gpus_for(std::int64_t points, int devices) {
  constexpr std::int64_t points_per_gpu = 1 << 13;
  return static_cast<int>(std::clamp<std::int64_t>(points / points_per_gpu, 1, devices));
}

Partition first_partition(std::int64_t points, int gpus) {
  const auto end_of = [&](int rank) {
    const double part = (1 + kFieldWork) * (rank + 1) / gpus - kFieldWork;
    return std::llround(static_cast<double>(points) * std::max(0.0, part));
  };
  Partition partition;
  for (int rank = 0; rank < gpus; ++rank)
    partition.push_back({rank > 0 ? end_of(rank - 1) : 0, end_of(rank)});
  return partition;
}

PointRange known_points(const fields::PointNodes& points, const PointRange& own) {
  if (own.count() == 0) return own;
  constexpr int reach = kIslandReach + kLargestMove;
  return {first_of_row(points, row_of(points, own.first) - reach),
          first_of_row(points, row_of(points, own.last - 1) + reach + 1)};
}

Partition balanced(const fields::PointNodes& points, const Partition& partition,
                   const std::vector<double>& seconds) {
  const auto idle = [](const PointRange& own) { return own.count() == 0; };
  if (std::ranges::any_of(partition, idle) || std::ranges::min(seconds) <= 0) return partition;
  const double total = std::reduce(seconds.begin(), seconds.end());
  Partition out = partition;
  std::size_t from = 0;  // part that contains the boundary of equal times
  double before = 0;     // seconds of the parts before that one
  for (std::size_t rank = 1; rank < partition.size(); ++rank) {
    const double target = total * static_cast<double>(rank) / static_cast<double>(partition.size());
    while (from + 1 < partition.size() && before + seconds[from] < target) before += seconds[from++];
    const double into = (target - before) / seconds[from] * static_cast<double>(partition[from].count());
    const std::int64_t now = partition[rank].first,
                       equal = partition[from].first + static_cast<std::int64_t>(into);
    const std::int64_t row = row_of(points, now), move = (equal - now) / 2;
    if (static_cast<double>(std::abs(move)) < kLeastMove * static_cast<double>(partition[rank].count()))
      continue;
    out[rank].first = out[rank - 1].last = std::clamp(now + move, first_of_row(points, row - kLargestMove),
                                                      first_of_row(points, row + kLargestMove));
  }
  return out;
}

}  // namespace dic::track::cuda
