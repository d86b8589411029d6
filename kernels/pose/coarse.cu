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
        [&](int e) {
          const float* from = at(job.patterns.offsets[e]);
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) {
            const float value = from[i * columns];
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
        [&](int e) {
          const float t = job.patterns.t[e];
          const float* from = at(job.patterns.offsets[e]);
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) tv[i] = fmaf(t, from[i * columns], tv[i]);
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
        [&](int e) {
          const CoarsePatterns::Offset o = patterns.offsets[e];
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

constexpr int strip_columns = warp_size - 2, strip_rows = 8;
constexpr float nowhere = -2, no_peak = -3;  ///< below all scores, and below that

/// The strips in which warps search local maxima: places inside the image, of one template and one scale, at
/// some of the angles.
struct StripGrid {
  int across, down, chunks;  ///< of the angles

  __host__ __device__ std::int64_t all(const CoarsePlanes& planes) const {
    return std::int64_t{planes.templates} * planes.neighbours.sizes * chunks * across * down;
  }
};

struct MaximaJob {
  CoarsePlanes planes;
  StripGrid grid;
  int first_template;
  PeakList all;
  std::int32_t* bins;
};

/// First score of a bin; scores are at most 1, or a little more by rounding.
__device__ float bin_begin(float threshold, int bin) {
  return threshold + (1 - threshold) * static_cast<float>(bin) / kScoreBins;
}
__device__ int bin_of(float threshold, float score) {
  int bin = min(static_cast<int>((score - threshold) / (1 - threshold) * kScoreBins), kScoreBins - 1);
  while (bin > 0 && score < bin_begin(threshold, bin)) --bin;  // where rounding put it too high
  return bin;
}

/// Peaks of a warp on their way to the list of all: one atomic operation for many.
class PeakQueue {
 public:
  static constexpr int capacity = 2 * warp_size;

  /// memory: `capacity` elements in shared memory.
  __device__ PeakQueue(const MaximaJob& job, CoarsePeak* memory) : job_(job), memory_(memory) {}
  /// All lanes must call it.
  __device__ void add(bool is_peak, const CoarsePeak& peak) {
    const unsigned peaks = __ballot_sync(all_lanes, is_peak);
    if (peaks == 0) return;
    const unsigned before = peaks & ((1u << threadIdx.x % warp_size) - 1);
    if (is_peak) memory_[count_ + __popc(before)] = peak;
    count_ += __popc(peaks);
    if (count_ > capacity - warp_size) flush();
  }
  __device__ void flush() {
    __syncwarp();
    const int lane = threadIdx.x % warp_size;
    int first = 0;
    if (lane == 0 && count_ > 0) first = atomicAdd(job_.all.count, count_);
    first = __shfl_sync(all_lanes, first, 0);
    for (int k = lane; k < count_; k += warp_size) {
      const CoarsePeak peak = memory_[k];
      const int bin = bin_of(job_.planes.threshold, peak.score);
      atomicAdd(&job_.bins[std::int64_t{peak.template_index} * kScoreBins + bin], 1);
      if (first + k < job_.all.capacity) job_.all.peaks[first + k] = peak;
    }
    __syncwarp();
    count_ = 0;
  }

 private:
  const MaximaJob& job_;
  CoarsePeak* memory_;
  int count_ = 0;
};

/// The scores of a strip at one pose.
struct StripScores {
  float own[strip_rows], highest[strip_rows];  ///< highest: of the 3 x 3 scores around a place
};

/// One warp's strip. A lane has a column; the first and the last one only decide about their neighbours.
class PeakStrip {
 public:
  __device__ PeakStrip(const MaximaJob& job, int task)
      : job_(job), width_(job.planes.width + 2), height_(job.planes.height + 2) {
    const StripGrid& grid = job.grid;
    const CoarseNeighbours& n = job.planes.neighbours;
    column_ = task % grid.across * strip_columns + static_cast<int>(threadIdx.x) % warp_size;
    row_ = task / grid.across % grid.down * strip_rows;
    task /= grid.across * grid.down;
    const int chunk = task % grid.chunks;
    first_turn_ = chunk * n.turns / grid.chunks, end_turn_ = (chunk + 1) * n.turns / grid.chunks;
    task /= grid.chunks;
    size_ = task % n.sizes, template_ = task / n.sizes;
  }

  __device__ void search(PeakQueue& queue) const {
    const CoarseNeighbours& n = job_.planes.neighbours;
    const bool is_linked = n.by_turn && n.turns > 2;
    float before[strip_rows],
        rising[strip_rows];  // highest scores at the pose before; peaks unless one follows
    StripScores scores;
    if (is_linked && (first_turn_ > 0 || n.full_circle))
      load(first_turn_ > 0 ? first_turn_ - 1 : n.turns - 1, scores);
    else
      fill(scores.highest, nowhere);
#pragma unroll
    for (int i = 0; i < strip_rows; ++i) before[i] = scores.highest[i], rising[i] = no_peak;
    for (int turn = first_turn_; turn < end_turn_; ++turn) {
      load(turn, scores);
      if (turn > first_turn_) take(turn - 1, rising, scores.highest, is_linked, queue);
#pragma unroll
      for (int i = 0; i < strip_rows; ++i) {
        const float own = scores.own[i];
        const bool is_high = own >= job_.planes.threshold && own >= scores.highest[i] && own > before[i];
        rising[i] = is_high ? own : no_peak;
        if (is_linked) before[i] = scores.highest[i];
      }
    }
    const bool is_followed = is_linked && (end_turn_ < n.turns || n.full_circle);
    if (is_followed) load(end_turn_ < n.turns ? end_turn_ : 0, scores);
    take(end_turn_ - 1, rising, scores.highest, is_followed, queue);
  }

 private:
  __device__ static void fill(float (&values)[strip_rows], float value) {
#pragma unroll
    for (int i = 0; i < strip_rows; ++i) values[i] = value;
  }
  __device__ const float* plane(int pose) const {
    const CoarseNeighbours& n = job_.planes.neighbours;
    const std::int64_t places = std::int64_t{width_} * height_;
    return job_.planes.scores + (std::int64_t{template_} * n.turns * n.sizes + pose) * places;
  }
  __device__ int pose_at(int turn) const { return size_ * job_.planes.neighbours.turns + turn; }

  __device__ void load(int turn, StripScores& scores) const {
    const float* from = plane(pose_at(turn)) + std::int64_t{row_} * width_ + column_;
    float own[strip_rows + 2], across[strip_rows + 2];
#pragma unroll
    for (int i = 0; i < strip_rows + 2; ++i)
      own[i] = column_ < width_ && row_ + i < height_ ? from[std::int64_t{i} * width_] : nowhere;
#pragma unroll
    for (int i = 0; i < strip_rows + 2; ++i) {
      const float left = __shfl_up_sync(all_lanes, own[i], 1), right = __shfl_down_sync(all_lanes, own[i], 1);
      across[i] = fmaxf(own[i], fmaxf(left, right));
    }
#pragma unroll
    for (int i = 0; i < strip_rows; ++i) {
      scores.own[i] = own[i + 1];
      scores.highest[i] = fmaxf(across[i], fmaxf(across[i + 1], across[i + 2]));
    }
  }

  /// Takes the peaks at a pose, that no score at the next angle surpasses if there is one.
  __device__ void take(int turn, const float (&rising)[strip_rows], const float (&next)[strip_rows],
                       bool has_next, PeakQueue& queue) const {
    const int pose = pose_at(turn), lane = static_cast<int>(threadIdx.x) % warp_size;
    const bool is_inside = lane > 0 && lane + 1 < warp_size && column_ + 1 < width_;
    unsigned rows = 0;  // with a peak, a bit each
#pragma unroll
    for (int i = 0; i < strip_rows; ++i) {
      const float value = rising[i];
      const bool is_peak =
          is_inside && row_ + i + 2 < height_ && value > no_peak && !(has_next && next[i] > value);
      rows |= is_peak ? 1u << i : 0u;
    }
    const auto value_at = [&](int row) {
      float value = rising[0];
#pragma unroll
      for (int i = 1; i < strip_rows; ++i) value = row == i ? rising[i] : value;
      return value;
    };
    if (job_.planes.neighbours.by_size)
      for (unsigned left = rows; left != 0; left &= left - 1) {
        const int row = __ffs(static_cast<int>(left)) - 1;
        if (!is_highest_size(pose, row_ + row + 1, value_at(row))) rows &= ~(1u << row);
      }
    for (; __any_sync(all_lanes, rows != 0); rows &= rows - 1) {
      const int row = __ffs(static_cast<int>(rows)) - 1;
      queue.add(rows != 0, {template_ + job_.first_template, pose, column_ - 1, row_ + row, value_at(row)});
    }
  }
  /// True if no score at a neighbouring scale surpasses a score, or is as high at the scale before.
  __device__ bool is_highest_size(int pose, int row, float value) const {
    const CoarseNeighbours& n = job_.planes.neighbours;
    return !(size_ > 0 && highest_at(pose - n.turns, row) >= value) &&
           !(size_ + 1 < n.sizes && highest_at(pose + n.turns, row) > value);
  }
  __device__ float highest_at(int pose, int row) const {
    const float* at = plane(pose) + std::int64_t{row} * width_ + column_;
    float highest = nowhere;
#pragma unroll
    for (int j = -1; j <= 1; ++j)
#pragma unroll
      for (int i = -1; i <= 1; ++i) highest = fmaxf(highest, at[j * width_ + i]);
    return highest;
  }

  const MaximaJob& job_;
  int width_, height_;  ///< of the score planes
  int column_, row_;    ///< of the score planes: of the lane, and the row above the strip
  int first_turn_, end_turn_, size_, template_;
};

/// A warp has a strip.
__global__ void __launch_bounds__(threads) find_maxima(const __grid_constant__ MaximaJob job) {
  __shared__ CoarsePeak queues[warps][PeakQueue::capacity];
  const int warp = warp_index();
  PeakQueue queue(job, queues[warp]);
  for_each_task(job.grid.all(job.planes), warps, warp,
                [&](std::int64_t task) { PeakStrip(job, static_cast<int>(task)).search(queue); });
  queue.flush();
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

/// Appends the peaks of at least their template's cut.
__global__ void __launch_bounds__(threads)
    take_highest(const PeakList all, const float* cuts, PeakList highest) {
  for_each_task(min(*all.count, all.capacity), threads, threadIdx.x, [&](std::int64_t k) {
    const CoarsePeak peak = all.peaks[k];
    if (!(peak.score >= cuts[peak.template_index])) return;
    const int at = atomicAdd(highest.count, 1);
    if (at < highest.capacity) highest.peaks[at] = peak;
  });
}

/// Few strips are shared by several warps, which have some of the angles.
StripGrid strips_of(const CoarsePlanes& planes) {
  constexpr std::int64_t enough = 4096;
  constexpr int least_turns = 4;
  StripGrid grid{(planes.width + strip_columns - 1) / strip_columns,
                 (planes.height + strip_rows - 1) / strip_rows, 1};
  const std::int64_t whole = std::max<std::int64_t>(1, grid.all(planes)),
                     most = std::max(1, planes.neighbours.turns / least_turns);
  grid.chunks = static_cast<int>(std::clamp<std::int64_t>((enough + whole - 1) / whole, 1, most));
  return grid;
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

void launch_coarse_maxima(const CoarsePlanes& planes, int first_template, const PeakList& all,
                          std::int32_t* bins, StreamHandle stream) {
  const MaximaJob job{planes, strips_of(planes), first_template, all, bins};
  const std::int64_t strips = job.grid.all(planes);
  if (strips == 0) return;
  find_maxima<<<grid_size(strips, warps), threads, 0, stream>>>(job);
  check_launch("local maxima of coarse scores");
}

void launch_highest_maxima(const PeakList& all, const std::int32_t* bins, int templates, int most,
                           float threshold, float* cuts, const PeakList& highest, StreamHandle stream) {
  if (templates == 0) return;
  find_cuts<<<templates, threads, 0, stream>>>(bins, most, threshold, cuts);
  check_launch("cuts of coarse scores");
  constexpr int most_blocks = 1024;
  take_highest<<<std::min<unsigned>(grid_size(all.capacity, threads), most_blocks), threads, 0, stream>>>(
      all, cuts, highest);
  check_launch("the highest coarse scores");
}

}  // namespace dic::kernels
