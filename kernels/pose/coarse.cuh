#pragma once

#include <dic/kernels/pose.hpp>

#include "common/launch.cuh"

/// Tiles of places and parts of patterns, which all kernels of coarse scores use.
namespace dic::kernels::coarse {

constexpr int threads = 128, warps = threads / warp_size;
constexpr int rows_per_thread = 4, tile_rows = warps * rows_per_thread, tile_columns = warp_size;
constexpr int tile_places = tile_rows * tile_columns;

/// True if a block of 3 x 3 lies at a side: left, right, top, bottom.
__device__ constexpr bool is_at(int block, int side) {
  return (side < 2 ? block % 3 : block / 3) == 2 * (side % 2);
}

/// Sums over all blocks, and over those at each side.
struct PartSums {
  float all = 0, side[kPatternParts - 1] = {};

  __device__ void add(int block, float sum) {
    all += sum;
#pragma unroll
    for (int s = 0; s < kPatternParts - 1; ++s)
      if (is_at(block, s)) side[s] += sum;
  }
  __device__ float of(int part) const { return part == 0 ? all : all - side[part - 1]; }
};

/// Scores of some templates.
struct ScoreJob {
  CoarsePlane image;
  CoarsePatterns patterns;
  CoarseDemands demands;
  float* scores;
};

__device__ inline const CoarsePatterns::Part& part_of(const CoarsePatterns& p, int pose, int part, int lane) {
  return p.parts[(static_cast<std::int64_t>(pose) * kPatternParts + part) * p.lanes + lane];
}

__device__ inline std::int64_t plane_of(const ScoreJob& job, int template_index, int pose) {
  const std::int64_t places = static_cast<std::int64_t>(job.image.width + 2) * (job.image.height + 2);
  return (static_cast<std::int64_t>(template_index) * job.patterns.poses + pose) * places;
}

/// Calls product(element) for the elements of each block of a pose, and end(block) after a block.
template <typename Product, typename End>
__device__ void for_each_block(const CoarsePatterns& patterns, int pose, Product&& product, End&& end) {
  const std::int32_t* begin = patterns.begin + pose * (kPatternBlocks + 1);
#pragma unroll
  for (int block = 0; block < kPatternBlocks; ++block) {
    const int last = begin[block + 1];
#pragma unroll 4  // hides the latency of the loads
    for (int e = begin[block]; e < last; ++e) product(e);
    end(block);
  }
}

/// Sums over the visible pixels of a part of a template (t) and of the image (v).
struct CutSums {
  float n, t, tt, v, vv, tv;
};
/// Score of a part of which not all pixels need be visible; -1 if too few are, or too little contrast.
__device__ inline float cut_score(const CutSums& s, float weight, float contrast, float least_visible,
                                  const CoarseDemands& demands) {
  const float one = 1 / fmaxf(s.n, 1.0f);
  const float of_t = s.tt - s.t * s.t * one, of_v = s.vv - s.v * s.v * one, both = s.tv - s.t * s.v * one;
  const bool counts = weight != 0 && s.n >= least_visible && of_t >= contrast * s.n;
  const float power = fmaxf(of_t * fmaxf(of_v, demands.least_variance * s.n), 1e-20f);
  const float score = weight * both * rsqrtf(power);
  return counts ? demands.any_polarity ? fabsf(score) : score : -1.0f;
}

/// Number of tiles across and of all tiles.
struct TileGrid {
  int across, all;

  explicit TileGrid(const CoarsePlane& image)
      : across((image.width + 2 + tile_columns - 1) / tile_columns),
        all(across * ((image.height + 2 + tile_rows - 1) / tile_rows)) {}
};

/// Queues the scores of several templates, see tensor.cu.
void launch_tensor_scores(const ScoreJob& job, StreamHandle stream);

}  // namespace dic::kernels::coarse
