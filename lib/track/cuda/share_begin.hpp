#pragma once

#include <algorithm>
#include <cstdint>

namespace dic::track::cuda {

/// Where the share of GPU number `rank` of `ranks` begins, of n entries; rank = ranks: the end. The first GPU
/// has a tenth of a frame's work for itself alone, and takes so much less of what is shared.
inline std::int64_t share_begin(std::int64_t n, int rank, int ranks) {
  constexpr double alone = 0.1;
  if (rank == 0) return 0;
  if (rank == ranks) return n;
  const double first = std::max(0.0, (1 - (ranks - 1) * alone / (1 - alone)) / ranks);
  const double before = first + (rank - 1) * (1 - first) / (ranks - 1);
  return static_cast<std::int64_t>(static_cast<double>(n) * before);
}

}  // namespace dic::track::cuda
