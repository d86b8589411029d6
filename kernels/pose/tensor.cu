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

/// Where a tile lies: all patterns are whole there, at most one side of the image cuts them, or several sides
/// or a mask do.
enum class Place { inside, side, corner };
/// How templates are scored: patterns that at most one side of the image cuts have known factors; of others,
/// the visible pixels are summed up.
enum class Rating { known, visible };

/// The statistics of a place and a part: 1 / root, mean / root; or n, v, v v, of which those of the visible
/// pixels follow.
constexpr int statistics_of(Place place) { return place == Place::corner ? 3 : 2; }
/// Blocks per multiprocessor; leaves 255, 168 or 128 registers.
constexpr int blocks_of(Place place) { return place == Place::corner ? 2 : place == Place::side ? 3 : 4; }

/// Sums of products over all blocks and over those at each side. deep: products of templates.
template <int kDeep>
struct RingSums {
  using Tile = float[kDeep][4];
  Tile all = {}, side[kPatternParts - 1];

  __device__ float of(int part, int d, int i) const {
    return part == 0 ? all[d][i] : all[d][i] - side[part - 1][d][i];
  }

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

/// Sides of the image that cut a pattern at some of the places (x, y) .. (x + columns - 1, y + rows - 1), a
/// bit each: left, right, top, bottom. All of them if the image has a mask.
__device__ unsigned cutting_sides(const ScoreJob& job, int pose, int x, int y, int columns, int rows) {
  const CoarsePlane& image = job.image;
  const CoarsePatterns::Extent e = job.patterns.extents[pose];
  const int right = min(x + columns - 1, image.width), bottom = min(y + rows - 1, image.height);
  if (image.has_mask) return 15;
  return (x + e.left < 0 ? 1u : 0u) | (right + e.right >= image.width ? 2u : 0u) | (y + e.top < 0 ? 4u : 0u) |
         (bottom + e.bottom >= image.height ? 8u : 0u);
}
__device__ Place place_of(unsigned sides) {
  return sides == 0 ? Place::inside : (sides & (sides - 1)) == 0 ? Place::side : Place::corner;
}

/// A tile at one pose. Grey values are relative to their mean in the tile, in units of about the image's
/// deviation, so that half floats keep what is different.
template <Place kPlace, bool any_polarity>
class TensorTile {
  static constexpr bool cut = kPlace != Place::inside;

 public:
  __device__ TensorTile(const ScoreJob& job, float* memory, int stride, int pose, int x, int y)
      : job_(job),
        statistics_(memory),
        values_(memory + statistics_of(kPlace) * kPatternParts * tile_places),
        counts_(values_ + stride * (tile_rows + 2 * job.patterns.reach)),
        stride_(stride),
        pose_(pose),
        x0_(x),
        y0_(y),
        lane_(threadIdx.x % warp_size),
        warp_(threadIdx.x / warp_size) {
    demands_ = job.demands;
    demands_.least_variance *= scale() * scale();
    if constexpr (cut) {
      const std::int32_t* begin = job.patterns.begin + pose * (kPatternBlocks + 1);
      demands_.least_visible *= static_cast<float>(begin[kPatternBlocks] - begin[0]);
    }
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
  /// Scores kLanes templates at a row of the tile.
  __device__ void score_row(int first, int row) const {
    for (int column = 0; column < tile_columns; column += product_places) {
      if (x0_ + column > job_.image.width) continue;
      const unsigned sides = cut ? cutting_sides(job_, pose_, x0_ + column, y0_ + row, product_places, 1) : 0;
      if (kPlace != Place::corner || sides == 0) {
        correlate<Rating::known>(first, row, column, sides);
        continue;
      }
      if constexpr (kPlace == Place::corner)
        for (int deep = 0; deep < CoarsePatterns::kLanes; deep += product_templates)
          correlate<Rating::visible>(first + deep, row, column, sides);
    }
  }

  __device__ float scale() const { return 0.03f * rsqrtf(job_.demands.least_variance); }

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
    const float origin = sum / fmaxf(number, 1.0f), unit = scale();
    for (int k = threadIdx.x; k < count; k += threads) {
      const int at = k / columns * stride_ + k % columns;
      values_[at] = counts_[at] != 0 ? (values_[at] - origin) * unit : 0.0f;
    }
  }

  __device__ float& statistic(int kind, int part, int place) const {
    return statistics_[(kind * kPatternParts + part) * tile_places + place];
  }

  __device__ int pixels_of(int block) const {
    const std::int32_t* begin = job_.patterns.begin + pose_ * (kPatternBlocks + 1) + block;
    return begin[1] - begin[0];
  }

  /// Sums up the image under the parts at some rows of a column.
  __device__ void sum_windows() const {
    const int row = warp_ * rows_per_thread, reach = job_.patterns.reach;
    const int own = (row + reach) * stride_ + lane_ + reach;
    PartSums number, n[rows_per_thread], v[rows_per_thread], vv[rows_per_thread];
    float one_n[rows_per_thread] = {}, one_v[rows_per_thread] = {}, one_vv[rows_per_thread] = {};
    const int* shifts = job_.patterns.shifts;
    for_each_block(
        job_.patterns, pose_,
        [&](int e) {
          const int at = own + shifts[e];
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
          if constexpr (!cut) number.add(block, static_cast<float>(pixels_of(block)));
        });
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part)
#pragma unroll
      for (int i = 0; i < rows_per_thread; ++i) {
        const int place = (row + i) * tile_columns + lane_;
        const float sum = v[i].of(part), squares = vv[i].of(part);
        const float pixels = cut ? n[i].of(part) : number.of(part);
        if constexpr (kPlace == Place::corner) {
          statistic(0, part, place) = pixels;
          statistic(1, part, place) = sum;
          statistic(2, part, place) = squares;
        } else {
          const float2 window = root_and_mean(pixels, sum, squares);
          statistic(0, part, place) = window.x;
          statistic(1, part, place) = window.y;
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

  /// Products of templates that a warp has at a time; kinds of sums: of t v, and of the visible pixels of
  /// patterns those of t and t t as well.
  struct Few {
    static constexpr int deep = 1, kinds = 3;
  };
  struct Many {
    static constexpr int deep = 2, kinds = 1;
  };
  template <Rating rating>
  using Extent = std::conditional_t<rating == Rating::visible, Few, Many>;
  template <typename Size>
  using Sums = RingSums<Size::deep>[Size::kinds];
  template <typename Size>
  using Best = float[Size::deep][4];

  /// Correlates some templates, from `first` on, with places of a row of the tile, from a column on. sides:
  /// that cut their patterns.
  template <Rating rating>
  __device__ void correlate(int first, int row, int column, unsigned sides) const {
    using Size = Extent<rating>;
    constexpr int deep = Size::deep;
    Sums<Size> sums;
    const CoarsePatterns& patterns = job_.patterns;
    const int reach = patterns.reach, step_words = patterns.lanes / product_templates * warp_size;
    const int shift = (row + reach) * stride_ + column + reach + lane_ / 4;
    const Word* values = reinterpret_cast<const Word*>(values_) + shift;
    const Word* counts = reinterpret_cast<const Word*>(counts_) + shift;
    // Indices, since pointers would need twice as many registers. A lane has two words of each product of
    // kLanes templates.
    const auto* greys = reinterpret_cast<const uint2*>(patterns.halves);
    const int2* pairs = reinterpret_cast<const int2*>(patterns.pairs);
    const unsigned product = first / product_templates;
    const std::int32_t* steps = patterns.steps + pose_ * (kPatternBlocks + 1);
    int step = steps[0], end = steps[1];
    unsigned grey = step * step_words + product / 2 * 2 * warp_size + 2 * lane_ + product % 2;
    unsigned pair = 4 * step + lane_ % 4;
    const auto load_places = [&](int2 shifts, Word(&words)[4]) {
      words[0] = values[shifts.x], words[1] = values[shifts.x + 8];
      words[2] = values[shifts.y], words[3] = values[shifts.y + 8];
    };
    const auto load_greys = [&](Word(&words)[deep][2]) {
#pragma unroll
      for (int d = 0; d < deep; ++d) {
        const uint2 both = greys[grey + d];
        words[d][0] = both.x, words[d][1] = both.y;
      }
    };
    // Places and grey values are loaded one step ahead, pairs two; behind the last ones are those of another
    // pose.
    int2 at = pairs[pair];
    Word t[deep][2], v[4];
    load_greys(t);
    load_places(at, v);
    int2 next = pairs[pair += 4];
#pragma unroll
    for (int block = 0; block < kPatternBlocks; ++block) {
      const int last = end;
      if (block + 1 < kPatternBlocks) end = steps[block + 2];
#pragma unroll 1  // mostly two steps: copies of them would not stay in the cache of instructions
      for (; step < last; ++step) {
        grey += step_words;
        Word next_t[deep][2], next_v[4];
        load_greys(next_t);
        load_places(next, next_v);
        const int2 later = pairs[pair += 4];
#pragma unroll
        for (int d = 0; d < deep; ++d) multiply(sums[0].all[d], v, t[d]);
        if constexpr (rating == Rating::visible) {
          const Word c[4] = {counts[at.x], counts[at.x + 8], counts[at.y], counts[at.y + 8]};
          const Word squares[2] = {squared(t[0][0]), squared(t[0][1])};
          multiply(sums[1].all[0], c, t[0]);
          multiply(sums[2].all[0], c, squares);
        }
        at = next, next = later;
#pragma unroll
        for (int d = 0; d < deep; ++d) t[d][0] = next_t[d][0], t[d][1] = next_t[d][1];
#pragma unroll
        for (int i = 0; i < 4; ++i) v[i] = next_v[i];
      }
#pragma unroll
      for (auto& kind : sums) kind.end_block(block);
    }
    const int own = first + 2 * (lane_ % 4);
    Best<Size> best;
    if constexpr (rating == Rating::known) rate(own, row, column, sides, sums, best);
    if constexpr (rating == Rating::visible) rate_visible(own, row, column, sums, best);
    write<Size>(own, row, column, best);
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

  /// The best scores of a part. A lane has two neighbouring templates at two places of each product.
  __device__ void rate(int own, int row, int column, unsigned sides, const Sums<Many>& sums,
                       Best<Many>& best) const {
    const int place = place_of(row, column, 0), x = x0_ + place % tile_columns, y = y0_ + row;
    const unsigned first = factors_at(sides, x, y) + own,
                   second = kPlace == Place::side ? factors_at(sides, x + 8, y) + own : first;
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part) {
      const float2 windows[2] = {window_at(part, place), window_at(part, place + 8)};
#pragma unroll
      for (int d = 0; d < Many::deep; ++d) {
        // Factor of each of the two templates, and the factor times the sum of its grey values.
        const unsigned ahead = part * job_.patterns.lanes + d * product_templates;
        const float4 of_first = load_factors(first + ahead),
                     of_second = kPlace == Place::side ? load_factors(second + ahead) : of_first;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float4 of = i < 2 ? of_first : of_second;
          const float2 window = windows[i / 2];
          const float score = fmaf(i % 2 == 0 ? of.x : of.z, sums[0].of(part, d, i) * window.x,
                                   -(i % 2 == 0 ? of.y : of.w) * window.y);
          const float rated = any_polarity ? fabsf(score) : score;
          best[d][i] = part == 0 ? rated : fmaxf(best[d][i], rated);
        }
      }
    }
  }
  __device__ float4 load_factors(unsigned index) const {
    return *reinterpret_cast<const float4*>(job_.patterns.factors + index);
  }
  __device__ float2 window_at(int part, int place) const {
    if constexpr (kPlace != Place::corner) return {statistic(0, part, place), statistic(1, part, place)};
    return root_and_mean(statistic(0, part, place), statistic(1, part, place), statistic(2, part, place));
  }
  /// Index of the factors of all parts and templates at a place. sides: that cut some patterns of the warp,
  /// at most one.
  __device__ unsigned factors_at(unsigned sides, int x, int y) const {
    const CoarsePatterns& patterns = job_.patterns;
    const int last = patterns.depths() - 1;
    int side = 0, depth = last;
    if (kPlace == Place::side && sides != 0) {
      side = __ffs(static_cast<int>(sides)) - 1;
      const int distance = side == 0   ? x
                           : side == 1 ? job_.image.width - 1 - x
                           : side == 2 ? y
                                       : job_.image.height - 1 - y;
      depth = min(max(distance + 1, 0), last);
    }
    return static_cast<unsigned>((pose_ * 4 + side) * patterns.depths() + depth) * kPatternParts *
           patterns.lanes;
  }
  /// 1 / root of the sum of squared deviations of some pixels of the image, and their mean times that.
  __device__ float2 root_and_mean(float pixels, float sum, float squares) const {
    const float number = fmaxf(pixels, 1.0f), deviations = squares - sum * sum / number;
    const float root = rsqrtf(fmaxf(deviations, demands_.least_variance * number));
    return {root, root * sum / number};
  }

  /// Scores below which those of a cut pattern do not count: that of places at which it is cut is 0.
  __device__ float least_at(int x, int y) const {
    return cutting_sides(job_, pose_, x, y, 1, 1) != 0 ? 0.0f : -1.0f;
  }
  __device__ float contrast_of(int template_index) const {
    return job_.patterns.contrast[static_cast<std::int64_t>(pose_) * job_.patterns.lanes + template_index];
  }
  /// The score of a part of a template at a place, of which t, t t and t v are known.
  __device__ float score_of(int part, int place, float t, float tt, float tv, float weight,
                            float contrast) const {
    const CutSums sums{statistic(0, part, place), t, tt, statistic(1, part, place),
                       statistic(2, part, place), tv};
    return cut_score(sums, weight, contrast, demands_.least_visible, demands_);
  }

  /// The best scores of a part's visible pixels.
  __device__ void rate_visible(int own, int row, int column, const Sums<Few>& sums, Best<Few>& best) const {
#pragma unroll
    for (int half = 0; half < 2; ++half)
      best[0][2 * half] = best[0][2 * half + 1] = least_at(x0_ + column + lane_ / 4 + half * 8, y0_ + row);
    const float contrasts[2] = {contrast_of(own), contrast_of(own + 1)};
#pragma unroll
    for (int part = 0; part < kPatternParts; ++part) {
      CoarsePatterns::Part parts[2];
      load_parts(own, part, parts);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const auto of = [&](int kind) { return sums[kind].of(part, 0, i); };
        best[0][i] = fmaxf(best[0][i], score_of(part, place_of(row, column, i / 2), of(1), of(2), of(0),
                                                parts[i % 2].weight, contrasts[i % 2]));
      }
    }
  }

  template <typename Size>
  __device__ void write(int own, int row, int column, const Best<Size>& best) const {
    const CoarsePatterns& patterns = job_.patterns;
    const int y = y0_ + row, group = lane_ / 4;
    const int width = job_.image.width + 2, x = x0_ + column + group;
    // 32 bits are enough for all scores of a launch, see kMostScores in lib/match/cuda.
    const unsigned places = static_cast<unsigned>(width) * (job_.image.height + 2);
    const unsigned to = (own * patterns.poses + pose_) * places + (y + 1) * width + x + 1;
#pragma unroll
    for (int d = 0; d < Size::deep; ++d)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        const int ahead = d * product_templates + j;
        const unsigned plane = to + ahead * patterns.poses * places;
        if (own + ahead >= patterns.templates) continue;
#pragma unroll
        for (int half = 0; half < 2; ++half)
          if (x + 8 * half <= job_.image.width) job_.scores[plane + 8 * half] = best[d][2 * half + j];
      }
  }
  const ScoreJob& job_;
  CoarseDemands demands_;  ///< in units of the tile's grey values; the least number of visible pixels
  float *statistics_, *values_, *counts_;
  int stride_, pose_, x0_, y0_, lane_, warp_;
};

/// Scores of all tiles and poses, a block each, of one kind of place. Blocks that run at the same time have
/// the same pose, so that its patterns stay in the cache.
template <Place kPlace, bool any_polarity>
__global__ void __launch_bounds__(threads, blocks_of(kPlace))
    tensor_scores(const __grid_constant__ ScoreJob job, int stride, TileGrid grid) {
  extern __shared__ float memory[];
  const int pose = blockIdx.x / grid.all, tile = blockIdx.x % grid.all;
  const int x0 = tile % grid.across * tile_columns - 1, y0 = tile / grid.across * tile_rows - 1;
  if (place_of(cutting_sides(job, pose, x0, y0, tile_columns, tile_rows)) == kPlace)
    TensorTile<kPlace, any_polarity>(job, memory, stride, pose, x0, y0).score();
}

/// Makes CoarsePatterns::factors of half floats t, a thread for all parts of a template, a pose, a side and a
/// distance to it.
__global__ void __launch_bounds__(threads)
    make_factors(const __grid_constant__ CoarsePatterns patterns, float least_visible, std::int64_t count,
                 CoarsePatterns::Factor* factors) {
  for_each_task(count, threads, threadIdx.x, [&](std::int64_t k) {
    const int lane = static_cast<int>(k % patterns.lanes);
    const std::int64_t line = k / patterns.lanes;
    const int depth = static_cast<int>(line % patterns.depths()),
              side = static_cast<int>(line / patterns.depths() % 4),
              pose = static_cast<int>(line / patterns.depths() / 4);
    PartSums n, t, tt;
    float one_n = 0, one_t = 0, one_tt = 0, whole = 0;
    for_each_block(
        patterns, pose,
        [&](int e) {
          const CoarsePatterns::Offset o = patterns.offsets[e];
          const int across = side < 2 ? o.x : o.y, inwards = side % 2 == 0 ? across : -across;
          ++whole;
          if (inwards < 1 - depth) return;
          const float grey =
              __half2float(__float2half_rn(patterns.t[e * std::int64_t{patterns.lanes} + lane]));
          ++one_n, one_t += grey, one_tt = fmaf(grey, grey, one_tt);
        },
        [&](int block) {
          n.add(block, one_n), t.add(block, one_t), tt.add(block, one_tt);
          one_n = one_t = one_tt = 0;
        });
    const float contrast = patterns.contrast[std::int64_t{pose} * patterns.lanes + lane];
    for (int part = 0; part < kPatternParts; ++part) {
      const float pixels = n.of(part), sum = t.of(part),
                  weight = patterns.parts[(std::int64_t{pose} * kPatternParts + part) * patterns.lanes + lane]
                               .weight;
      const float deviations = tt.of(part) - sum * sum / fmaxf(pixels, 1.0f);
      const bool is_whole = n.of(0) == whole;
      const bool counts =
          weight != 0 && (is_whole || (pixels >= least_visible * whole && deviations >= contrast * pixels));
      const float factor = counts ? weight * rsqrtf(fmaxf(deviations, 1e-20f)) : 0;
      factors[(line * kPatternParts + part) * patterns.lanes + lane] = {factor, factor * sum};
    }
  });
}

/// Grey values of patterns as the lanes of a warp take them, per step and kLanes templates: two words of each
/// of their products.
__global__ void __launch_bounds__(threads)
    make_halves(const float* t, int lanes, const std::int32_t* elements, std::int64_t words, Word* halves) {
  for_each_task(words, threads, threadIdx.x, [&](std::int64_t k) {
    constexpr int lane_words = CoarsePatterns::kLanes / product_templates * pairs_per_lane;
    const int groups = lanes / CoarsePatterns::kLanes, word = static_cast<int>(k % lane_words),
              lane = static_cast<int>(k / lane_words % warp_size);
    const std::int64_t group = k / (lane_words * warp_size), step = group / groups;
    const std::int64_t pair =
        PatternPairs::kStep * step + pairs_per_lane * (lane % 4) + word % pairs_per_lane;
    const std::int64_t own =
        group % groups * CoarsePatterns::kLanes + word / pairs_per_lane * product_templates + lane / 4;
    const auto grey = [&](int element) {
      return element < 0 ? 0.0f : t[element * std::int64_t{lanes} + own];
    };
    const __half2 both = __floats2half2_rn(grey(elements[2 * pair]), grey(elements[2 * pair + 1]));
    halves[k] = *reinterpret_cast<const Word*>(&both);
  });
}

/// Shared memory of a block.
int bytes_of(Place place, int reach) {
  const int words = 2 * (tile_rows + 2 * reach) * stride_of(reach);
  return static_cast<int>(sizeof(float)) * (statistics_of(place) * kPatternParts * tile_places + words);
}

template <Place kPlace, bool any_polarity>
void launch(const ScoreJob& job, StreamHandle stream) {
  const TileGrid grid(job.image);
  const int stride = stride_of(job.patterns.reach), bytes = bytes_of(kPlace, job.patterns.reach);
  check(cudaFuncSetAttribute(tensor_scores<kPlace, any_polarity>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             bytes),
        "shared memory of coarse scores");
  tensor_scores<kPlace, any_polarity>
      <<<grid_size(static_cast<std::int64_t>(grid.all) * job.patterns.poses, 1), threads, bytes, stream>>>(
          job, stride, grid);
  check_launch("coarse scores of several templates");
}

template <bool any_polarity>
void launch_all(const ScoreJob& job, StreamHandle stream) {
  launch<Place::corner, any_polarity>(job, stream);
  if (job.image.has_mask) return;
  launch<Place::side, any_polarity>(job, stream);
  launch<Place::inside, any_polarity>(job, stream);
}

}  // namespace

void launch_tensor_scores(const ScoreJob& job, StreamHandle stream) {
  if (job.demands.any_polarity)
    launch_all<true>(job, stream);
  else
    launch_all<false>(job, stream);
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
  while (reach > 0 && coarse::bytes_of(coarse::Place::corner, reach) > bytes) --reach;
  return reach;
}

void launch_pattern_halves(const float* t, int lanes, const std::int32_t* elements, std::int64_t words,
                           std::uint32_t* halves, StreamHandle stream) {
  if (words == 0) return;
  coarse::make_halves<<<grid_size(words, coarse::threads), coarse::threads, 0, stream>>>(t, lanes, elements,
                                                                                         words, halves);
  check_launch("half floats of patterns");
}

std::int64_t pattern_factors(const CoarsePatterns& patterns) {
  return std::int64_t{patterns.poses} * 4 * patterns.depths() * kPatternParts * patterns.lanes;
}
void launch_pattern_factors(const CoarsePatterns& patterns, float least_visible,
                            CoarsePatterns::Factor* factors, StreamHandle stream) {
  const std::int64_t count = pattern_factors(patterns) / kPatternParts;
  if (count == 0) return;
  coarse::make_factors<<<grid_size(count, coarse::threads), coarse::threads, 0, stream>>>(
      patterns, least_visible, count, factors);
  check_launch("factors of patterns");
}

PatternPairs pattern_pairs(std::span<const CoarsePatterns::Offset> offsets,
                           std::span<const std::int32_t> begin, int reach) {
  PatternPairs pairs;
  const int stride = coarse::stride_of(reach);
  for (const CoarsePatterns::Offset& o : offsets) pairs.pixels.push_back(o.y * stride + o.x);
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
