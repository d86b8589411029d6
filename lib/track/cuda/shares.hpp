#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/kernels/points.hpp>

#include "track/points.hpp"

namespace dic::track::cuda {

/// GPUs, of `devices`, that are worth their steps for so many points.
inline int ranks_for(std::int64_t points, int devices) {
  constexpr std::int64_t worth_a_gpu = 1 << 13;
  return static_cast<int>(std::clamp<std::int64_t>(points / worth_a_gpu, 1, devices));
}

/// Where the share of GPU number `rank` of `ranks` begins, of n points; rank = ranks: the end. The first GPU
/// makes the field of the whole frame, and takes so many points less.
inline std::int64_t share_begin(std::int64_t n, int rank, int ranks) {
  constexpr double alone = 0.03;  // of the work on a frame
  if (rank == 0) return 0;
  if (rank == ranks) return n;
  const double first = std::max(0.0, (1 - (ranks - 1) * alone / (1 - alone)) / ranks);
  const double before = first + (rank - 1) * (1 - first) / (ranks - 1);
  return static_cast<std::int64_t>(static_cast<double>(n) * before);
}

/// The points of a GPU's share.
inline kernels::PointRange own_points(std::int64_t n, int rank, int ranks) {
  return {share_begin(n, rank, ranks), share_begin(n, rank + 1, ranks)};
}

/// Own points, and those around that decide on them.
inline kernels::PointRange known_points(const Points& points, const kernels::PointRange& own) {
  if (own.count() == 0) return own;
  const std::int64_t nx = points.grid.nx;
  const auto first_of_row = [&](std::int64_t row) {
    return std::ranges::lower_bound(points.node_of, row * nx) - points.node_of.begin();
  };
  return {first_of_row(points.node_of[own.first] / nx - kernels::kIslandReach),
          first_of_row(points.node_of[own.last - 1] / nx + kernels::kIslandReach + 1)};
}

}  // namespace dic::track::cuda
