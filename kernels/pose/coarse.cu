#include "pose/coarse.cuh"

namespace dic::kernels {
namespace {

using namespace coarse;

/// Mean and 1 / sqrt(sum of squared deviations) of the image under each part, of a tile.
struct WindowStatistics {
  float mean[kPatternParts][tile_places], one_root[kPatternParts][tile_places];
};

/// One tile at one pose, as if all patterns were inside the image. A thread has some rows of one column.
struct InsideTile {
  const ScoreJob& job;
  WindowStatistics& window;
  const float* own;  ///< in shared memory, the thread's first place
  int columns;       ///< elements from row to row there
  int pose, x0, y0;  ///< x0, y0: first place of the tile
  int lane, row;     ///< column and first row of the thread, from the tile's first place
  PartSums number;   ///< of the pattern's pixels

  __device__ InsideTile(const ScoreJob& of, WindowStatistics& statistics, float* pixels, int pose_index,
                        int x, int y)
      : job(of),
        window(statistics),
        columns(tile_columns + 2 * of.patterns.reach),
        pose(pose_index),
        x0(x),
        y0(y),
        lane(threadIdx.x % warp_size),
        row(threadIdx.x / warp_size * rows_per_thread) {
    const int reach = job.patterns.reach, rows = tile_rows + 2 * reach, end = job.image.margin;
    for (int k = threadIdx.x; k < rows * columns; k += threads) {
      const int px = x0 - reach + k % columns, py = y0 - reach + k / columns;
      const bool is_there = px < job.image.width + end && py < job.image.height + end;
      pixels[k] = is_there ? job.image.values[static_cast<std::int64_t>(py) * job.image.stride + px] : 0.0f;
    }
    __syncthreads();
    own = pixels + (row + reach) * columns + lane + reach;
    const std::int32_t* begin = job.patterns.begin + pose * (kPatternBlocks + 1);
#pragma unroll
    for (int block = 0; block < kPatternBlocks; ++block)
      number.add(block, static_cast<float>(begin[block + 1] - begin[block]));
  }

  __device__ const float* at(CoarsePatterns::Offset o) const { return own + o.y * columns + o.x; }

  /// Fills the statistics of the thread's places.
  __device__ void sum_windows() const {
    PartSums sum[rows_per_thread], square[rows_per_thread];
    float v[rows_per_thread] = {}, vv[rows_per_thread] = {};
    for_each_block(
        job.patterns, pose,
        [&](int, CoarsePatterns::Offset o) {
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) {
            const float value = at(o)[i * columns];
            v[i] += value;
            vv[i] = fmaf(value, value, vv[i]);
          }
        },
        [&](int block) {
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) {
            sum[i].add(block, v[i]), square[i].add(block, vv[i]);
            v[i] = vv[i] = 0;
          }
        });
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part)
#pragma unroll
      for (int i = 0; i < rows_per_thread; ++i) {
        const int place = (row + i) * tile_columns + lane;
        const float n = fmaxf(number.of(part), 1.0f), s = sum[i].of(part);
        const float variation = square[i].of(part) - s * s / n;
        window.mean[part][place] = s / n;
        window.one_root[part][place] = rsqrtf(fmaxf(variation, job.demands.least_variance * n));
      }
  }

  /// Sums of products with the template.
  __device__ void correlate(PartSums (&sums)[rows_per_thread]) const {
    float tv[rows_per_thread] = {};
    for_each_block(
        job.patterns, pose,
        [&](int e, CoarsePatterns::Offset o) {
          const float t = job.patterns.t[e];
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) tv[i] = fmaf(t, at(o)[i * columns], tv[i]);
        },
        [&](int block) {
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) {
            sums[i].add(block, tv[i]);
            tv[i] = 0;
          }
        });
  }

  /// Writes the best score of a part.
  __device__ void write_scores(const PartSums (&sums)[rows_per_thread]) const {
    float best[rows_per_thread];
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) best[i] = -1.0f;
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part) {
      const CoarsePatterns::Part of = part_of(job.patterns, pose, part, 0);
      if (of.weight == 0) continue;
#pragma unroll
      for (int i = 0; i < rows_per_thread; ++i) {
        const int place = (row + i) * tile_columns + lane;
        const float both = fmaf(of.factor, sums[i].of(part), -of.of_mean * window.mean[part][place]);
        float score = both * window.one_root[part][place];
        if (job.demands.any_polarity) score = fabsf(score);
        best[i] = fmaxf(best[i], score);
      }
    }
    const int x = x0 + lane;
    float* plane = job.scores + plane_of(job, 0, pose);
#pragma unroll
    for (int i = 0; i < rows_per_thread; ++i) {
      const int y = y0 + row + i;
      if (x <= job.image.width && y <= job.image.height)
        plane[static_cast<std::int64_t>(y + 1) * (job.image.width + 2) + x + 1] = best[i];
    }
  }
};

/// Scores of one template at all tiles and poses, a block each. Blocks that run at the same time have the
/// same pose, so that its pattern stays in the cache.
__global__ void __launch_bounds__(threads)
    scores_inside(const __grid_constant__ ScoreJob job, int tiles_across, int tiles) {
  __shared__ WindowStatistics window;
  extern __shared__ float pixels[];
  const int pose = blockIdx.x / tiles, tile = blockIdx.x % tiles;
  const InsideTile own(job, window, pixels, pose, tile % tiles_across * tile_columns - 1,
                       tile / tiles_across * tile_rows - 1);
  own.sum_windows();
  PartSums sums[rows_per_thread];
  own.correlate(sums);
  own.write_scores(sums);
}

/// The places at which a pattern reaches over the image's border, or all of them: rows above, rows below, and
/// in the rows between, columns to the left and to the right.
struct BorderPlaces {
  int width, height;  // of the score planes
  int above, below, left, right;

  __device__ BorderPlaces(const CoarsePlane& image, const CoarsePatterns::Extent& e)
      : width(image.width + 2), height(image.height + 2) {
    const auto clamped = [](int value, int most) { return min(max(value, 0), most); };
    above = image.has_mask ? height : clamped(1 - e.top, height);
    below = clamped(e.bottom + 1, height - above);
    left = clamped(1 - e.left, width);
    right = clamped(e.right + 1, width - left);
  }
  __device__ int count() const { return (above + below) * width + (height - above - below) * (left + right); }
  /// Column and row of a place of the score planes.
  __device__ int2 at(int k) const {
    if (k < above * width) return {k % width, k / width};
    k -= above * width;
    if (k < below * width) return {k % width, height - below + k / width};
    k -= below * width;
    const int column = k % (left + right), row = above + k / (left + right);
    return {column < left ? column : width - right + column - left, row};
  }
};

/// Scores of the visible pixels at places where a pattern is cut. A thread has a place.
__global__ void __launch_bounds__(threads)
    scores_at_border(const __grid_constant__ ScoreJob job, int blocks_per_pose) {
  const CoarsePatterns& patterns = job.patterns;
  const CoarsePlane& image = job.image;
  const int pose = blockIdx.x / blocks_per_pose;
  const BorderPlaces places(image, patterns.extents[pose]);
  const std::int32_t* begin = patterns.begin + pose * (kPatternBlocks + 1);
  const float whole = static_cast<float>(begin[kPatternBlocks] - begin[0]);
  const float contrast = patterns.contrast[pose];
  const int count = places.count();
  for (int k = blockIdx.x % blocks_per_pose * threads + threadIdx.x; k < count;
       k += blocks_per_pose * threads) {
    const int2 place = places.at(k);
    const std::int64_t own = static_cast<std::int64_t>(place.y - 1) * image.stride + place.x - 1;
    PartSums n, v, vv, t, tt, tv;
    float one_n = 0, one_v = 0, one_vv = 0, one_t = 0, one_tt = 0, one_tv = 0;
    for_each_block(
        patterns, pose,
        [&](int e, CoarsePatterns::Offset o) {
          const std::int64_t at = own + static_cast<std::int64_t>(o.y) * image.stride + o.x;
          const float counts = image.counts[at], value = image.values[at], grey = patterns.t[e];
          const float counted = grey * counts;
          one_n += counts, one_v += value, one_t += counted;
          one_vv = fmaf(value, value, one_vv);
          one_tt = fmaf(grey, counted, one_tt);
          one_tv = fmaf(grey, value, one_tv);
        },
        [&](int block) {
          n.add(block, one_n), v.add(block, one_v), vv.add(block, one_vv);
          t.add(block, one_t), tt.add(block, one_tt), tv.add(block, one_tv);
          one_n = one_v = one_vv = one_t = one_tt = one_tv = 0;
        });
    float best = 0;
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part) {
      const CutSums sums{n.of(part), t.of(part), tt.of(part), v.of(part), vv.of(part), tv.of(part)};
      best = fmaxf(best, cut_score(sums, part_of(patterns, pose, part, 0).weight, contrast,
                                   job.demands.least_visible * whole, job.demands));
    }
    job.scores[plane_of(job, 0, pose) + static_cast<std::int64_t>(place.y) * places.width + place.x] = best;
  }
}

struct PeakJob {
  CoarsePlanes planes;
  int width, height;  // of the score planes
  std::int64_t places;
  const float* cuts;
  int first_template;
  CoarsePeak* peaks;
  int capacity;
  std::int32_t* count;
};

/// True if no score around a place is higher; with `is_earlier`, or as high. All are loaded at the same time.
__device__ bool is_highest(const PeakJob& job, const float* at, float value, bool is_earlier) {
  float highest = -2;
#pragma unroll
  for (int j = -1; j <= 1; ++j)
#pragma unroll
    for (int i = -1; i <= 1; ++i) highest = fmaxf(highest, at[j * job.width + i]);
  return is_earlier ? highest < value : highest <= value;
}

/// The score planes beside that of a pose; none where a pose has no neighbour.
struct NeighbourPlanes {
  const float *own, *before, *after, *smaller, *larger;

  __device__ NeighbourPlanes(const PeakJob& job, const float* first, int pose)
      : own(first + pose * job.places), before(nullptr), after(nullptr), smaller(nullptr), larger(nullptr) {
    const CoarseNeighbours& n = job.planes.neighbours;
    const int turn = pose % n.turns, size = pose / n.turns;
    if (n.by_turn && n.turns > 2) {
      if (turn > 0 || n.full_circle) before = own + (turn > 0 ? -1 : n.turns - 1) * job.places;
      if (turn + 1 < n.turns || n.full_circle)
        after = own + (turn + 1 < n.turns ? 1 : 1 - n.turns) * job.places;
    }
    if (n.by_size && size > 0) smaller = own - n.turns * job.places;
    if (n.by_size && size + 1 < n.sizes) larger = own + n.turns * job.places;
  }
  __device__ bool has_peak(const PeakJob& job, int place, float value) const {
    return is_highest(job, own + place, value, false) &&
           (!before || is_highest(job, before + place, value, true)) &&
           (!after || is_highest(job, after + place, value, false)) &&
           (!smaller || is_highest(job, smaller + place, value, true)) &&
           (!larger || is_highest(job, larger + place, value, false));
  }
};

/// Calls body(peak) for the local maxima of a block's places. A plane, of one template and pose, has `blocks`
/// blocks.
template <typename Body>
__device__ void for_each_peak(const PeakJob& job, int blocks, Body&& body) {
  constexpr int together = 4;  // loads at the same time
  const int poses = job.planes.neighbours.turns * job.planes.neighbours.sizes;
  const int plane = blockIdx.x / blocks, template_index = plane / poses, pose = plane % poses;
  const float* first = job.planes.scores + static_cast<std::int64_t>(template_index) * poses * job.places;
  const NeighbourPlanes planes(job, first, pose);
  const float least = job.cuts ? fmaxf(job.cuts[template_index], job.planes.threshold) : job.planes.threshold;
  const int places = static_cast<int>(job.places), lane = threadIdx.x % warp_size;
  constexpr int block_places = threads * together;
  const int warp_first = static_cast<int>(threadIdx.x) - lane;
  for (int group = blockIdx.x % blocks * block_places + warp_first * together; group < places;
       group += blocks * block_places) {
    float values[together];
#pragma unroll
    for (int k = 0; k < together; ++k) {
      const int place = group + k * warp_size + lane;
      values[k] = place < places ? planes.own[place] : -1.0f;
    }
#pragma unroll
    for (int k = 0; k < together; ++k) {
      const float value = values[k];
      if (!__any_sync(all_lanes, value >= least)) continue;
      // Few places are higher than those beside them, which cost no load: they decide first.
      const float left = __shfl_up_sync(all_lanes, value, 1), right = __shfl_down_sync(all_lanes, value, 1);
      const bool is_left = lane > 0 && left > value, is_right = lane + 1 < warp_size && right > value;
      if (!(value >= least) || is_left || is_right) continue;
      const int place = group + k * warp_size + lane, x = place % job.width, y = place / job.width;
      if (x == 0 || y == 0 || x + 1 == job.width || y + 1 == job.height) continue;
      if (planes.has_peak(job, place, value)) body(CoarsePeak{template_index, pose, x - 1, y - 1, value});
    }
  }
}

/// First score of a bin; scores are at most 1, or a little more by rounding.
__device__ float bin_begin(float threshold, int bin) {
  return threshold + (1 - threshold) * static_cast<float>(bin) / kScoreBins;
}
__device__ int bin_of(float threshold, float score) {
  int bin = min(static_cast<int>((score - threshold) / (1 - threshold) * kScoreBins), kScoreBins - 1);
  while (bin > 0 && score < bin_begin(threshold, bin)) --bin;  // where rounding put it too high
  return bin;
}

__global__ void __launch_bounds__(threads)
    count_peaks(const __grid_constant__ PeakJob job, int blocks, std::int32_t* bins) {
  for_each_peak(job, blocks, [&](const CoarsePeak& peak) {
    const std::int64_t first = static_cast<std::int64_t>(peak.template_index) * kScoreBins;
    atomicAdd(&bins[first + bin_of(job.planes.threshold, peak.score)], 1);
  });
}

/// The lowest bin of the highest ones that hold `most` peaks. A block per template.
__global__ void __launch_bounds__(threads)
    find_cuts(const std::int32_t* bins, int most, float threshold, float* cuts) {
  constexpr int per_thread = kScoreBins / threads;
  __shared__ int sums[threads];
  const std::int32_t* own = bins + static_cast<std::int64_t>(blockIdx.x) * kScoreBins;
  int sum = 0;
  for (int k = 0; k < per_thread; ++k) sum += own[threadIdx.x * per_thread + k];
  sums[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int group = threads, above = 0;
  while (group > 0 && above + sums[group - 1] < most) above += sums[--group];
  int bin = group * per_thread;
  while (bin > 0 && above < most) above += own[--bin];
  cuts[blockIdx.x] = bin_begin(threshold, bin);
}

__global__ void __launch_bounds__(threads) find_peaks(const __grid_constant__ PeakJob job, int blocks) {
  for_each_peak(job, blocks, [&](CoarsePeak peak) {
    peak.template_index += job.first_template;
    const int at = atomicAdd(job.count, 1);
    if (at < job.capacity) job.peaks[at] = peak;
  });
}

/// The blocks that search for maxima.
struct PeakGrid {
  int per_plane;
  unsigned all;

  explicit PeakGrid(const CoarsePlanes& planes) {
    constexpr std::int64_t places_per_thread = 8;
    const std::int64_t places = coarse_places(planes.width, planes.height);
    per_plane = static_cast<int>((places + threads * places_per_thread - 1) / (threads * places_per_thread));
    all = grid_size(
        std::int64_t{per_plane} * planes.templates * planes.neighbours.turns * planes.neighbours.sizes, 1);
  }
};
PeakJob job_of(const CoarsePlanes& planes) {
  return {planes,
          planes.width + 2,
          planes.height + 2,
          coarse_places(planes.width, planes.height),
          nullptr,
          0,
          nullptr,
          0,
          nullptr};
}

void launch_single_scores(const ScoreJob& job, StreamHandle stream) {
  const CoarsePlane& image = job.image;
  const TileGrid grid(image);
  const int reach = job.patterns.reach;
  const std::size_t bytes =
      sizeof(float) * static_cast<std::size_t>(tile_columns + 2 * reach) * (tile_rows + 2 * reach);
  if (!image.has_mask) {
    check(cudaFuncSetAttribute(scores_inside, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(bytes)),
          "shared memory of coarse scores");
    scores_inside<<<grid_size(static_cast<std::int64_t>(grid.all) * job.patterns.poses, 1), threads, bytes,
                    stream>>>(job, grid.across, grid.all);
    check_launch("coarse scores");
  }
  const std::int64_t all = coarse_places(image.width, image.height);
  const std::int64_t frame = 2 * static_cast<std::int64_t>(reach + 1) * (image.width + image.height + 4);
  const std::int64_t most_blocks = 1 << 14;
  const auto blocks = static_cast<int>(
      std::min(most_blocks, (std::min(all, image.has_mask ? all : frame) + threads - 1) / threads));
  scores_at_border<<<grid_size(static_cast<std::int64_t>(blocks) * job.patterns.poses, 1), threads, 0,
                     stream>>>(job, blocks);
  check_launch("coarse scores at the border");
}

}  // namespace

void launch_coarse_scores(const CoarsePlane& image, const CoarsePatterns& patterns,
                          const CoarseDemands& demands, float* scores, StreamHandle stream) {
  if (patterns.poses == 0 || patterns.templates == 0) return;
  const ScoreJob job{image, patterns, demands, scores};
  if (patterns.lanes == 1)
    launch_single_scores(job, stream);
  else
    launch_tensor_scores(job, stream);
}

void launch_coarse_cuts(const CoarsePlanes& planes, int most, std::int32_t* bins, float* cuts,
                        StreamHandle stream) {
  const PeakGrid grid(planes);
  if (grid.all == 0) return;
  fill(bins, 0, sizeof(std::int32_t) * kScoreBins * planes.templates, stream);
  count_peaks<<<grid.all, threads, 0, stream>>>(job_of(planes), grid.per_plane, bins);
  check_launch("counting coarse scores");
  find_cuts<<<planes.templates, threads, 0, stream>>>(bins, most, planes.threshold, cuts);
  check_launch("cuts of coarse scores");
}

void launch_coarse_peaks(const CoarsePlanes& planes, const float* cuts, int first_template, CoarsePeak* peaks,
                         int capacity, std::int32_t* count, StreamHandle stream) {
  const PeakGrid grid(planes);
  if (grid.all == 0) return;
  PeakJob job = job_of(planes);
  job.cuts = cuts, job.first_template = first_template;
  job.peaks = peaks, job.capacity = capacity, job.count = count;
  find_peaks<<<grid.all, threads, 0, stream>>>(job, grid.per_plane);
  check_launch("local maxima of coarse scores");
}

}  // namespace dic::kernels
