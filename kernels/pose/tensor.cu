#include <cuda_fp16.h>

#include "ncc/tensor/wide_products.cuh"
#include "pose/coarse.cuh"

/// Scores of several templates on tensor cores: at 16 places in a row, the image under a pattern times the
/// patterns of 8 templates is a product of matrices of half floats, summed as floats. A step takes 8 pairs of
/// pixels of one of the 3 x 3 blocks. The blocks of each side follow each other, so that sums over sides are
/// differences of one running sum.
namespace dic::kernels {
namespace coarse {
namespace {

constexpr int product_places = 16, product_templates = 8;
constexpr int pairs_per_lane = PatternPairs::kStep / 4;

/// The statistics of a place and a part: 1 / root, mean / root; or n, v, v v, of which those of the visible
/// pixels follow.
constexpr int statistics_of(bool cut) { return cut ? 3 : 2; }
/// Blocks per multiprocessor; leaves 255 or 128 registers.
constexpr int blocks_of(bool cut) { return cut ? 2 : 4; }

/// Sums of products over all blocks and over those at each side. deep: products of templates.
template <int kDeep>
struct RingSums {
  using Tile = float[kDeep][4];
  Tile all = {}, side[kPatternParts - 1];

  /// Takes over the running sum `all` behind a block, of the number `k` in PatternPairs::kRing.
  __device__ void end_block(int k) {
    enum Side { left, right, top, bottom };
#pragma unroll
    for (int d = 0; d < kDeep; ++d)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float sum = all[d][i];
        const auto of = [&](Side s) -> float& { return side[s][d][i]; };
        if (k == 0) of(left) = sum;   // the first block
        if (k == 1) of(right) = sum;  // before the right side
        if (k == 2) of(top) = sum;
        if (k == 3) of(bottom) = sum;  // before the lower side
        if (k == 4) of(right) = sum - of(right);
        if (k == 5) of(left) -= sum;  // before the other blocks of the left side
        if (k == 6) of(bottom) = sum - of(bottom);
        if (k == 7) of(left) += sum;
      }
  }
};

/// Distance of two rows of a tile in shared memory, words: lanes that read pairs of neighbouring rows
/// meet other banks.
int stride_of(int reach) {
  const int columns = tile_columns + 2 * reach;
  return (columns + 15) / 32 * 32 + 16;
}

/// True if a pattern is cut at some of the places (x, y) .. (x + columns - 1, y + rows - 1).
__device__ bool is_cut(const ScoreJob& job, int pose, int x, int y, int columns, int rows) {
  const CoarsePlane& image = job.image;
  const CoarsePatterns::Extent e = job.patterns.extents[pose];
  const int right = min(x + columns - 1, image.width), bottom = min(y + rows - 1, image.height);
  return image.has_mask || x + e.left < 0 || y + e.top < 0 || right + e.right >= image.width ||
         bottom + e.bottom >= image.height;
}

/// A tile at one pose. Grey values are relative to their mean in the tile, in units of about the image's
/// deviation, so that half floats keep what is different.
template <bool cut, bool any_polarity>
class TensorTile {
 public:
  __device__ TensorTile(const ScoreJob& job, float* memory, int stride, int pose, int x, int y)
      : job_(job),
        statistics_(memory),
        values_(memory + statistics_of(cut) * kPatternParts * tile_places),
        counts_(values_ + stride * (tile_rows + 2 * job.patterns.reach)),
        stride_(stride),
        pose_(pose),
        x0_(x),
        y0_(y),
        lane_(threadIdx.x % warp_size),
        warp_(threadIdx.x / warp_size),
        scale_(0.03f * rsqrtf(job.demands.least_variance)) {
    demands_ = job.demands;
    demands_.least_variance *= scale_ * scale_;
    const std::int32_t* begin = job.patterns.begin + pose * (kPatternBlocks + 1);
#pragma unroll
    for (int block = 0; block < kPatternBlocks; ++block)
      number_.add(block, static_cast<float>(begin[block + 1] - begin[block]));
    const std::int32_t* steps = job.patterns.steps + pose * (kPatternBlocks + 1);
    first_step_ = steps[0];
#pragma unroll
    for (int block = 0; block < kPatternBlocks; ++block)
      steps_[block / 4] |= static_cast<unsigned>(steps[block + 1] - steps[block]) << 8 * (block % 4);
  }

  __device__ void score() {
    load();
    __syncthreads();
    sum_windows();
    __syncthreads();
    make_pairs(values_);
    if constexpr (cut) make_pairs(counts_);
    __syncthreads();
    for (int first = 0; first < job_.patterns.templates; first += CoarsePatterns::kLanes)
      for (int row = warp_; row < tile_rows; row += warps)
        if (y0_ + row <= job_.image.height) score_row(first, row);
  }

 private:
  /// Sums of t v; of the visible pixels of patterns that are cut, those of t and t t as well.
  template <bool partly, int kDeep>
  using Sums = RingSums<kDeep>[partly ? 3 : 1];

  /// Scores kLanes templates at a row of the tile.
  __device__ void score_row(int first, int row) const {
    for (int column = 0; column < tile_columns; column += product_places) {
      if (x0_ + column > job_.image.width) continue;
      if (!cut || !is_cut(job_, pose_, x0_ + column, y0_ + row, product_places, 1)) {
        correlate<false, 2>(first, row, column);
        continue;
      }
      if constexpr (cut)
        for (int deep = 0; deep < CoarsePatterns::kLanes; deep += product_templates)
          correlate<true, 1>(first + deep, row, column);
    }
  }

  __device__ void load() {
    const int reach = job_.patterns.reach, columns = tile_columns + 2 * reach,
              count = columns * (tile_rows + 2 * reach), end = job_.image.margin;
    float sum = 0, number = 0;
    for (int k = threadIdx.x; k < count; k += threads) {
      const int column = k % columns, row = k / columns, px = x0_ - reach + column, py = y0_ - reach + row;
      const bool is_there = px < job_.image.width + end && py < job_.image.height + end;
      const std::int64_t at = static_cast<std::int64_t>(py) * job_.image.stride + px;
      const float counts = is_there ? job_.image.counts[at] : 0.0f;
      const float value = is_there ? job_.image.values[at] : 0.0f;
      values_[row * stride_ + column] = value;
      counts_[row * stride_ + column] = counts;
      sum = fmaf(value, counts, sum), number += counts;
    }
    __shared__ float sums[2][warps];
    sum = warp_sum(sum), number = warp_sum(number);
    if (lane_ == 0) sums[0][warp_] = sum, sums[1][warp_] = number;
    __syncthreads();
    sum = number = 0;
    for (int w = 0; w < warps; ++w) sum += sums[0][w], number += sums[1][w];
    const float origin = sum / fmaxf(number, 1.0f);
    for (int k = threadIdx.x; k < count; k += threads) {
      const int at = k / columns * stride_ + k % columns;
      values_[at] = counts_[at] != 0 ? (values_[at] - origin) * scale_ : 0.0f;
    }
  }

  __device__ float& statistic(int kind, int part, int place) const {
    return statistics_[(kind * kPatternParts + part) * tile_places + place];
  }

  /// Sums up the image under the parts at some rows of a column.
  __device__ void sum_windows() const {
    const int row = warp_ * rows_per_thread, reach = job_.patterns.reach;
    const int own = (row + reach) * stride_ + lane_ + reach;
    PartSums n[rows_per_thread], v[rows_per_thread], vv[rows_per_thread];
    float one_n[rows_per_thread] = {}, one_v[rows_per_thread] = {}, one_vv[rows_per_thread] = {};
    for_each_block(
        job_.patterns, pose_,
        [&](int, CoarsePatterns::Offset o) {
          const int at = own + o.y * stride_ + o.x;
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) {
            const float value = values_[at + i * stride_];
            if constexpr (cut) one_n[i] += counts_[at + i * stride_];
            one_v[i] += value;
            one_vv[i] = fmaf(value, value, one_vv[i]);
          }
        },
        [&](int block) {
#pragma unroll
          for (int i = 0; i < rows_per_thread; ++i) {
            if constexpr (cut) n[i].add(block, one_n[i]);
            v[i].add(block, one_v[i]), vv[i].add(block, one_vv[i]);
            one_n[i] = one_v[i] = one_vv[i] = 0;
          }
        });
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part)
#pragma unroll
      for (int i = 0; i < rows_per_thread; ++i) {
        const int place = (row + i) * tile_columns + lane_;
        const float sum = v[i].of(part), squares = vv[i].of(part);
        if constexpr (cut) {
          statistic(0, part, place) = n[i].of(part);
          statistic(1, part, place) = sum;
          statistic(2, part, place) = squares;
        } else {
          const float number = fmaxf(number_.of(part), 1.0f);
          const float root = rsqrtf(fmaxf(squares - sum * sum / number, demands_.least_variance * number));
          statistic(0, part, place) = root;
          statistic(1, part, place) = root * sum / number;
        }
      }
  }

  /// Replaces the floats of a tile by half floats of each pixel and its right neighbour.
  __device__ void make_pairs(float* tile) const {
    const int columns = tile_columns + 2 * job_.patterns.reach, rows = tile_rows + 2 * job_.patterns.reach;
    for (int row = warp_; row < rows; row += warps)
      for (int first = 0; first < columns; first += warp_size) {
        float* own = tile + row * stride_ + first + lane_;
        const int left = columns - first - lane_;
        const __half2 pair = __floats2half2_rn(left > 0 ? own[0] : 0.0f, left > 1 ? own[1] : 0.0f);
        __syncwarp();
        if (left > 0) *reinterpret_cast<__half2*>(own) = pair;
        __syncwarp();
      }
  }

  /// Correlates some templates, from `first` on, with places of a row of the tile, from a column on. partly:
  /// not all pixels of the patterns are visible.
  template <bool partly, int kDeep>
  __device__ void correlate(int first, int row, int column) const {
    Sums<partly, kDeep> sums;
    const CoarsePatterns& patterns = job_.patterns;
    const int reach = patterns.reach, step_words = patterns.lanes / product_templates * warp_size;
    const int shift = (row + reach) * stride_ + column + reach + lane_ / 4;
    const Word* values = reinterpret_cast<const Word*>(values_) + shift;
    const Word* counts = reinterpret_cast<const Word*>(counts_) + shift;
    // Indices, since pointers would need twice as many registers.
    const uint2* greys = reinterpret_cast<const uint2*>(patterns.halves);
    const int2* pairs = reinterpret_cast<const int2*>(patterns.pairs);
    unsigned grey = first_step_ * step_words + first / product_templates * warp_size + lane_;
    unsigned pair = 4 * first_step_ + lane_ % 4;
    const auto load_places = [&](int2 shifts, Word(&words)[4]) {
      words[0] = values[shifts.x], words[1] = values[shifts.x + 8];
      words[2] = values[shifts.y], words[3] = values[shifts.y + 8];
    };
    const auto load_greys = [&](Word(&words)[kDeep][2]) {
#pragma unroll
      for (int d = 0; d < kDeep; ++d) {
        const uint2 both = greys[grey + d * warp_size];
        words[d][0] = both.x, words[d][1] = both.y;
      }
    };
    // Places and grey values are loaded one step ahead, pairs two; behind the last ones are those of another
    // pose.
    int2 at = pairs[pair];
    Word t[kDeep][2], v[4];
    load_greys(t);
    load_places(at, v);
    int2 next = pairs[pair += 4];
#pragma unroll
    for (int block = 0; block < kPatternBlocks; ++block) {
      const int steps = steps_[block / 4] >> 8 * (block % 4) & 255;
      for (int step = 0; step < steps; ++step) {
        grey += step_words;
        Word next_t[kDeep][2], next_v[4];
        load_greys(next_t);
        load_places(next, next_v);
        const int2 later = pairs[pair += 4];
#pragma unroll
        for (int d = 0; d < kDeep; ++d) multiply(sums[0].all[d], v, t[d]);
        if constexpr (partly) {
          const Word c[4] = {counts[at.x], counts[at.x + 8], counts[at.y], counts[at.y + 8]};
          const Word squares[2] = {squared(t[0][0]), squared(t[0][1])};
          multiply(sums[1].all[0], c, t[0]);
          multiply(sums[2].all[0], c, squares);
        }
        at = next, next = later;
#pragma unroll
        for (int d = 0; d < kDeep; ++d) t[d][0] = next_t[d][0], t[d][1] = next_t[d][1];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = next_v[i];
      }
#pragma unroll
      for (auto& kind : sums) kind.end_block(block);
    }
    const int own = first + 2 * (lane_ % 4);
    Best<kDeep> best;
    if constexpr (partly)
      rate_visible(own, row, column, sums, best);
    else
      rate(own, row, column, sums[0], best);
    write(own, row, column, best);
  }
  __device__ static Word squared(Word pair) {
    const __half2 value = *reinterpret_cast<const __half2*>(&pair), square = __hmul2(value, value);
    return *reinterpret_cast<const Word*>(&square);
  }
  /// The part of two neighbouring templates.
  __device__ void load_parts(int template_index, int part, CoarsePatterns::Part (&parts)[2]) const {
    for (int j = 0; j < 2; ++j) parts[j] = part_of(job_.patterns, pose_, part, template_index + j);
  }
  __device__ int place_of(int row, int column, int half) const {
    return row * tile_columns + column + lane_ / 4 + half * 8;
  }

  template <int kDeep>
  using Best = float[kDeep][4];

  /// The best scores of a part. A lane has two neighbouring templates at two places of each product.
  template <int kDeep>
  __device__ void rate(int own, int row, int column, const RingSums<kDeep>& sums, Best<kDeep>& best) const {
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part) {
      CoarsePatterns::Part parts[kDeep][2];
#pragma unroll
      for (int d = 0; d < kDeep; ++d) load_parts(own + d * product_templates, part, parts[d]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 window = root_and_mean(part, place_of(row, column, half));
#pragma unroll
        for (int d = 0; d < kDeep; ++d)
#pragma unroll
          for (int j = 0; j < 2; ++j) {
            const int i = 2 * half + j;
            const float all = sums.all[d][i], sum = part == 0 ? all : all - sums.side[part - 1][d][i];
            const float score = fmaf(parts[d][j].factor, sum * window.x, -parts[d][j].of_mean * window.y);
            const float rated = any_polarity ? fabsf(score) : score;
            best[d][i] = part == 0 ? rated : fmaxf(best[d][i], rated);
          }
      }
    }
  }
  /// 1 / root of the sum of squared deviations under a part at a place, and the mean times that.
  __device__ float2 root_and_mean(int part, int place) const {
    if constexpr (!cut) return {statistic(0, part, place), statistic(1, part, place)};
    const float number = fmaxf(number_.of(part), 1.0f), sum = statistic(1, part, place);
    const float squares = statistic(2, part, place) - sum * sum / number;
    const float root = rsqrtf(fmaxf(squares, demands_.least_variance * number));
    return {root, root * sum / number};
  }

  /// The best scores of a part's visible pixels.
  __device__ void rate_visible(int own, int row, int column, const Sums<true, 1>& sums, Best<1>& best) const {
    const CoarsePatterns& patterns = job_.patterns;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int x = x0_ + column + lane_ / 4 + half * 8;
      const float least = is_cut(job_, pose_, x, y0_ + row, 1, 1) ? 0.0f : -1.0f;
      best[0][2 * half] = best[0][2 * half + 1] = least;
    }
    float contrasts[2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
      contrasts[j] = patterns.contrast[static_cast<std::int64_t>(pose_) * patterns.lanes + own + j];
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part) {
      CoarsePatterns::Part parts[2];
      load_parts(own, part, parts);
      const auto of = [&](int kind, int i) {
        const float all = sums[kind].all[0][i];
        return part == 0 ? all : all - sums[kind].side[part - 1][0][i];
      };
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int place = place_of(row, column, half);
        const float n = statistic(0, part, place), v = statistic(1, part, place),
                    vv = statistic(2, part, place);
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          const CutSums of_part{n, of(1, i), of(2, i), v, vv, of(0, i)};
          best[0][i] = fmaxf(best[0][i], cut_score(of_part, parts[i % 2].weight, contrasts[i % 2],
                                                   demands_.least_visible * number_.of(0), demands_));
        }
      }
    }
  }

  template <int kDeep>
  __device__ void write(int own, int row, int column, const Best<kDeep>& best) const {
    const CoarsePatterns& patterns = job_.patterns;
    const int y = y0_ + row, group = lane_ / 4;
    const int width = job_.image.width + 2, x = x0_ + column + group;
    const std::int64_t places = static_cast<std::int64_t>(width) * (job_.image.height + 2);
    const std::int64_t of_template = places * patterns.poses;
    float* to = job_.scores + own * of_template + pose_ * places + (y + 1) * width + x + 1;
#pragma unroll
    for (int d = 0; d < kDeep; ++d)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int ahead = d * product_templates + j;
        float* plane = to + ahead * of_template;
        if (own + ahead >= patterns.templates) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (x + 8 * half <= job_.image.width) plane[8 * half] = best[d][2 * half + j];
      }
  }
  const ScoreJob& job_;
  CoarseDemands demands_;  ///< in units of the tile's grey values
  float *statistics_, *values_, *counts_;
  int stride_, pose_, x0_, y0_, lane_, warp_;
  float scale_;
  PartSums number_;         ///< of the pattern's pixels
  int first_step_;          ///< of the pose
  unsigned steps_[3] = {};  ///< steps of each block, a byte each
};

/// Scores of all tiles and poses, a block each, that are cut or not. Blocks that run at the same time have
/// the same pose, so that its patterns stay in the cache.
template <bool cut, bool any_polarity>
__global__ void __launch_bounds__(threads, blocks_of(cut))
    tensor_scores(const __grid_constant__ ScoreJob job, int stride, TileGrid grid) {
  extern __shared__ float memory[];
  const int pose = blockIdx.x / grid.all, tile = blockIdx.x % grid.all;
  const int x0 = tile % grid.across * tile_columns - 1, y0 = tile / grid.across * tile_rows - 1;
  if (is_cut(job, pose, x0, y0, tile_columns, tile_rows) == cut)
    TensorTile<cut, any_polarity>(job, memory, stride, pose, x0, y0).score();
}

/// Grey values of patterns as the lanes of a warp take them: two words per step, product and lane.
__global__ void __launch_bounds__(threads)
    make_halves(const float* t, int lanes, const std::int32_t* elements, std::int64_t words, Word* halves) {
  for_each_task(words, threads, threadIdx.x, [&](std::int64_t k) {
    const int tiles = lanes / product_templates, lane = static_cast<int>(k / 2 % warp_size);
    const std::int64_t product = k / (2 * warp_size), step = product / tiles;
    const std::int64_t pair = PatternPairs::kStep * step + pairs_per_lane * (lane % 4) + k % 2;
    const std::int64_t own = product % tiles * product_templates + lane / 4;
    const auto grey = [&](int element) {
      return element < 0 ? 0.0f : t[element * std::int64_t{lanes} + own];
    };
    const __half2 both = __floats2half2_rn(grey(elements[2 * pair]), grey(elements[2 * pair + 1]));
    halves[k] = *reinterpret_cast<const Word*>(&both);
  });
}

/// Shared memory of a block.
template <bool cut>
int bytes_of(int reach) {
  const int words = 2 * (tile_rows + 2 * reach) * stride_of(reach);
  return static_cast<int>(sizeof(float)) * (statistics_of(cut) * kPatternParts * tile_places + words);
}

template <bool cut, bool any_polarity>
void launch(const ScoreJob& job, StreamHandle stream) {
  const TileGrid grid(job.image);
  const int stride = stride_of(job.patterns.reach), bytes = bytes_of<cut>(job.patterns.reach);
  check(cudaFuncSetAttribute(tensor_scores<cut, any_polarity>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes),
        "shared memory of coarse scores");
  tensor_scores<cut, any_polarity>
      <<<grid_size(static_cast<std::int64_t>(grid.all) * job.patterns.poses, 1), threads, bytes, stream>>>(
          job, stride, grid);
  check_launch("coarse scores of several templates");
}

}  // namespace

void launch_tensor_scores(const ScoreJob& job, StreamHandle stream) {
  const auto launch_all = [&](auto any_polarity) {
    if (!job.image.has_mask) launch<false, any_polarity>(job, stream);
    launch<true, any_polarity>(job, stream);
  };
  if (job.demands.any_polarity)
    launch_all(std::true_type{});
  else
    launch_all(std::false_type{});
}

}  // namespace coarse

std::int64_t pattern_words(const PatternPairs& pairs, int lanes) {
  return static_cast<std::int64_t>(pairs.shifts.size()) * lanes;
}
std::int64_t pattern_words_before(int template_index) {
  return std::int64_t{template_index} * PatternPairs::kStep;
}

int most_coarse_reach() {
  int device = 0, bytes = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "shared memory");
  int reach = 48;
  while (reach > 0 && coarse::bytes_of<true>(reach) > bytes) --reach;
  return reach;
}

void launch_pattern_halves(const float* t, int lanes, const std::int32_t* elements, std::int64_t words,
                           std::uint32_t* halves, StreamHandle stream) {
  if (words == 0) return;
  coarse::make_halves<<<grid_size(words, coarse::threads), coarse::threads, 0, stream>>>(t, lanes, elements,
                                                                                         words, halves);
  check_launch("half floats of patterns");
}

PatternPairs pattern_pairs(std::span<const CoarsePatterns::Offset> offsets,
                           std::span<const std::int32_t> begin, int reach) {
  PatternPairs pairs;
  const int stride = coarse::stride_of(reach);
  const auto add = [&](CoarsePatterns::Offset offset, int left, int right) {
    pairs.shifts.push_back(offset.y * stride + offset.x);
    pairs.elements.push_back(left), pairs.elements.push_back(right);
  };
  for (std::size_t k = 0; k < begin.size(); ++k) {
    pairs.begin.push_back(static_cast<std::int32_t>(pairs.shifts.size() / PatternPairs::kStep));
    const std::size_t place = k % (kPatternBlocks + 1);
    if (place == kPatternBlocks) continue;  // the end of a pose
    const std::size_t block = k - place + PatternPairs::kRing[place];
    for (int e = begin[block]; e < begin[block + 1]; ++e) {
      const bool has_next = e + 1 < begin[block + 1] && offsets[e + 1].y == offsets[e].y &&
                            offsets[e + 1].x == offsets[e].x + 1;
      add(offsets[e], e, has_next ? e + 1 : -1);
      e += has_next;
    }
    while (pairs.shifts.size() % PatternPairs::kStep != 0) add({0, 0}, -1, -1);
  }
  for (int k = 0; k < 2 * PatternPairs::kStep; ++k) add({0, 0}, -1, -1);  // steps that are read ahead
  return pairs;
}

}  // namespace dic::kernels
