#include "match/candidates.hpp"

#include <algorithm>
#include <dic/refine.hpp>
#include <span>

namespace dic {
namespace {

constexpr int kRowsPerChunk = 32;

/// In independent lanes, so that the compiler keeps them in vectors.
float row_maximum(const float* row, int n) {
  constexpr int kLanes = 16;
  float lanes[kLanes];
  std::fill(lanes, lanes + kLanes, row[0]);
  int i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lanes[l] = row[i + l] > lanes[l] ? row[i + l] : lanes[l];
  for (; i < n; ++i) lanes[0] = std::max(lanes[0], row[i]);
  return *std::max_element(lanes, lanes + kLanes);
}

/// True where no neighbour is higher; of equal neighbours the first in row-major order wins.
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
  // A quadratic gains half of slope times offset between the sample and its top.
  candidate.estimate += 0.25 * ((around[5] - around[3]) * offset_x + (around[7] - around[1]) * offset_y);
  return candidate;
}

}  // namespace

std::vector<Candidate> find_candidates(const SurfaceView& surface, double lowest, ThreadPool& pool) {
  std::vector<float> maxima(surface.ny);
  std::vector<std::vector<Candidate>> found(pool.size());
  pool.parallel_for(surface.ny, kRowsPerChunk, [&](std::int64_t begin, std::int64_t end, int worker) {
    for (int y = static_cast<int>(begin); y < end; ++y) {
      const float* row = surface.row(y);
      maxima[y] = row_maximum(row, surface.nx);
      if (maxima[y] < lowest) continue;
      for (int x = 0; x < surface.nx; ++x)
        if (row[x] >= lowest && is_local_maximum(surface, x, y))
          found[worker].push_back(make_candidate(surface, x, y));
    }
  });
  std::vector<Candidate> candidates;
  for (const auto& part : found) candidates.insert(candidates.end(), part.begin(), part.end());
  if (candidates.empty()) {
    const int y = static_cast<int>(std::max_element(maxima.begin(), maxima.end()) - maxima.begin());
    const float* row = surface.row(y);
    candidates.push_back(
        make_candidate(surface, static_cast<int>(std::max_element(row, row + surface.nx) - row), y));
  }
  // The position breaks ties: threads find candidates in any order.
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    if (a.estimate != b.estimate) return a.estimate > b.estimate;
    return a.y != b.y ? a.y < b.y : a.x < b.x;
  });
  return candidates;
}

}  // namespace dic
