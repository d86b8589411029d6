#include "match/candidates.hpp"

#include <algorithm>
#include <dic/refine.hpp>
#include <limits>
#include <span>

namespace dic::match {
namespace {

constexpr int kRowsPerChunk = 32;
constexpr int kBlock = 128;  ///< values per block; a block is searched only if its maximum is high enough

/// The maximum of n values, in independent lanes, so that the compiler keeps them in vectors.
float maximum(const float* values, int n) {
  constexpr int kLanes = 16;
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, values[0]);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] = values[i + l] > lanes[l] ? values[i + l] : lanes[l];
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], values[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

/// True if no neighbour is higher; of equal neighbours the first in row-major order wins.
bool is_local_maximum(const SurfaceView& surface, int x, int y) {
  const float value = surface.row(y)[x];
  for (int j = std::max(y - 1, 0); j <= std::min(y + 1, surface.ny - 1); ++j)
    for (int i = std::max(x - 1, 0); i <= std::min(x + 1, surface.nx - 1); ++i) {
      const float neighbour = surface.row(j)[i];
      const bool earlier = j < y || (j == y && i < x);
      if (neighbour > value || (earlier && neighbour == value)) return false;
    }
  return true;
}

Candidate make_candidate(const SurfaceView& surface, int x, int y) {
  Candidate candidate{x, y, surface.row(y)[x]};
  candidate.estimate = candidate.value;
  if (x == 0 || y == 0 || x == surface.nx - 1 || y == surface.ny - 1) return candidate;
  float around[9];
  for (int k = 0; k < 9; ++k) around[k] = surface.row(y + k / 3 - 1)[x + k % 3 - 1];
  const auto [offset_x, offset_y] = peak_offset(std::span<const float, 9>(around));
  candidate.offset_x = offset_x;
  candidate.offset_y = offset_y;
  // From the sample to its top, a quadratic rises by half of slope times offset.
  candidate.estimate += 0.25 * ((around[5] - around[3]) * offset_x + (around[7] - around[1]) * offset_y);
  return candidate;
}

/// The highest value of all, which is used if no value reaches the limit.
Candidate highest(const SurfaceView& surface, const std::vector<float>& row_maxima) {
  const int y = static_cast<int>(std::max_element(row_maxima.begin(), row_maxima.end()) - row_maxima.begin());
  const float* row = surface.row(y);
  return make_candidate(surface, static_cast<int>(std::max_element(row, row + surface.nx) - row), y);
}

/// Compares estimates. Positions break ties, because threads find candidates in any order.
bool is_better(const Candidate& a, const Candidate& b) {
  if (a.estimate != b.estimate) return a.estimate > b.estimate;
  return a.y != b.y ? a.y < b.y : a.x < b.x;
}

}  // namespace

std::vector<Candidate> find_candidates(const SurfaceView& surface, double lowest, core::ThreadPool& pool) {
  std::vector<float> row_maxima(surface.ny, -std::numeric_limits<float>::infinity());
  std::vector<std::vector<Candidate>> found(pool.size());
  const auto search_block = [&](int begin, int end, int y, int worker) {
    const float* row = surface.row(y);
    const float most = maximum(row + begin, end - begin);
    row_maxima[y] = std::max(row_maxima[y], most);
    if (most < lowest) return;
    for (int x = begin; x < end; ++x)
      if (row[x] >= lowest && is_local_maximum(surface, x, y))
        found[worker].push_back(make_candidate(surface, x, y));
  };
  pool.parallel_for(surface.ny, kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (int y = static_cast<int>(begin); y < end; ++y)
      for (int x = 0; x < surface.nx; x += kBlock)
        search_block(x, std::min(x + kBlock, surface.nx), y, worker);
  });
  std::vector<Candidate> candidates;
  for (const auto& part : found) candidates.insert(candidates.end(), part.begin(), part.end());
  if (candidates.empty()) candidates.push_back(highest(surface, row_maxima));
  std::sort(candidates.begin(), candidates.end(), is_better);
  return candidates;
}

}  // namespace dic::match
