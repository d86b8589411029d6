#pragma once

#include <new>
#include <utility>

#include "common/resident_blocks.hpp"
#include "ncc/tensor/u8_scores.cuh"
#include "ncc/tensor/u8_tiling.cuh"

/// Exact sums of u8 products on tensor cores (see u8_products.cuh), and their scores and peaks. A block
/// computes the shifts of one pair, or some of them, from shared memory. The sums over windows that scores
/// need were computed before (window_statistics.cuh).
namespace dic::kernels::u8_tensor {

/// A task, with its number among the parts of all pairs.
struct PartShifts : BlockShifts<u8> {
  std::int64_t part;

  PartShifts() = default;
  __device__ PartShifts(const JobView& view, const Tiling& tiling, const PartTasks& tasks,
                        const StatisticsTable& table, const Place& place)
      : BlockShifts(view, tiling, tasks, table, place),
        part(pair * tasks.parts() + place.part_y * tasks.parts_x + place.part_x) {}
};

/// A block's shared memory.
struct Memory {
  Word *reference, *window;

  __device__ Memory(const Tiling& tiling, uint4* shared)
      : reference(reinterpret_cast<Word*>(shared)), window(reference + tiling.reference_words()) {}
};

/// Stores the best of the block's scores, which are a part of the pair's scores.
template <WarpShape shape>
__device__ void find_best(const JobView& view, const PartShifts& block_shifts, Best* bests,
                          const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                          float scale) {
  Best best = Best::none();
  if (shifts.owned) {
    float highest = undefined;
    shifts.visit([&](int i, int, int) { highest = fmaxf(highest, scores[i]); });
    highest = fminf(max_of_warp(highest), __fdividef(1.0f, scale));  // same limit as in find_peak
    int index = after_all_shifts;
    shifts.visit([&](int i, int row, int column) {
      if (scores[i] >= highest)
        index = min(index, (block_shifts.y + row) * view.nx + block_shifts.x + column);
    });
    if (highest > undefined) best = {highest, __reduce_min_sync(all_lanes, index)};
  }
  best = best_of_warps(best);
  if (threadIdx.x == 0) bests[block_shifts.part] = best;
}

/// Stores the scores around the peak from a part near the pair's peak, and updates the second peak.
template <WarpShape shape>
__device__ void look_around(const JobView& view, const PartShifts& block_shifts, PairPeak& peak,
                            const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                            float scale) {
  if (!shifts.owned) return;
  const int peak_y = peak.best.index / view.nx, peak_x = peak.best.index - peak_y * view.nx;
  float second = peak.beyond;
  shifts.visit([&](int i, int row, int column) {
    const int dx = block_shifts.x + column - peak_x, dy = block_shifts.y + row - peak_y;
    if (abs(dx) > 2 || abs(dy) > 2) second = fmaxf(second, scores[i]);
    const bool is_beside = abs(dx) <= 1 && abs(dy) <= 1 && scores[i] > undefined;
    if (is_beside) peak.around[neighbours / 2 + 3 * dy + dx] = scores[i] * scale;
  });
  second = max_of_warp(second) * scale;
  if (shifts.lane == 0 && second > undefined)
    atomicMax(&peak.second, order_preserving(__float_as_int(second + 0.0f)));
}

/// Sum of products at the shift under the tail. If the k of products is split, each warp sums some of the
/// rows.
template <WarpShape shape>
__device__ Word multiply_corner(const JobView& view, const Tiling& tiling, const PartShifts& block_shifts,
                                const Memory& memory, const LaneShifts<shape>& shifts) {
  Word sum = 0;
  const int corner_row = shifts.first_row + warp_size, column = shifts.tail_column();
  const int first = shape.split_k == 1 ? shifts.lane : threadIdx.x;
  for (int row = first; row < view.reference.height; row += shape.split_k * warp_size) {
    ByteStream window(memory.window + (corner_row + row) * tiling.k.window_stride,
                      block_shifts.window.byte() + column);
    ByteStream reference(memory.reference + (1 + row) * tiling.k.reference_stride,
                         reference_pad + block_shifts.reference.byte());
    for (int x = 0; x < view.reference.width; x += 4) sum = dot(window.next(), reference.next(), sum);
  }
  return __reduce_add_sync(all_lanes, sum);
}

/// Places of the words of a lane if window and reference begin with a chunk. Values that take few
/// instructions are computed again for every task, to save registers.
template <WarpShape shape>
struct LaneWords {
  /// True if the number of words may be odd. For small windows the extra code costs as much as it saves.
  static constexpr bool takes_odd_words = shape.stride != small_stride;
  unsigned window, reference;  ///< addresses
  int first_column;            ///< first column of the warp

  __device__ LaneWords(const Tiling& tiling, const Memory& memory, const LaneShifts<shape>& shifts)
      : first_column(shifts.first_column()) {
    const auto [group, word, parity] = FragmentLane(shifts.lane);
    const int first_word = word + (has_first_part() ? 0 : words_of_first_part(tiling.k));
    window = opaque(shared_address(memory.window + (shifts.first_row + parity) * tiling.k.window_stride +
                                   first_word + group));
    const int row = 1 + parity - group % 2;
    reference = opaque(shared_address(memory.reference + row * tiling.k.reference_stride + first_word));
  }
  /// The words of k that this warp multiplies: all words that a reference of `width` touches when it is moved
  /// by up to 3 bytes, and by the byte at which the window begins in its word.
  __device__ ProductLayout layout(ProductLayout k, const PartShifts& block_shifts, int width) const {
    const int words = words_of_first_part(k);
    const int all = (width + 6 + (block_shifts.window.byte() + first_column) % 4) / 4;
    k.words = shape.split_k == 1 ? all : has_first_part() ? words : all - words;
    if (!takes_odd_words) k.words = round_up(k.words, 2);
    return k;
  }
  __device__ LaneAddresses start(const PartShifts& block_shifts, int window_stride) const {
    const int group = static_cast<int>(opaque(threadIdx.x) % warp_size) / 4, byte_shift = group / 2;
    const int window_byte = block_shifts.window.byte() + first_column;
    const int reference_byte = reference_pad + block_shifts.reference.byte() - byte_shift - window_byte % 4;
    const unsigned at = window + (window_byte & ~3);
    const unsigned tail = 4 * (2 * group * window_stride + columns_per_warp / 4 - group);
    return {at, at + tail, reference + (reference_byte & ~3), 8 * reference_byte};
  }

 private:
  __device__ static bool has_first_part() { return shape.split_k == 1 || opaque(threadIdx.x) < warp_size; }
  __device__ static int words_of_first_part(const ProductLayout& k) {
    return shape.split_k == 1 ? k.words : (k.words + 1) / 4 * 2;
  }
};

/// Computes the sums of products at a lane's shifts.
template <WarpShape shape>
__device__ void multiply_shifts(const JobView& view, const Tiling& tiling, const PartShifts& block_shifts,
                                const Memory& memory, const LaneShifts<shape>& shifts,
                                const LaneWords<shape>& words, LaneValues<shape, Word>& sums) {
  Word tile_sums[shape.tiles + shape.tail][4] = {};
  multiply_window<shape.tiles, shape.tail, LaneWords<shape>::takes_odd_words, shape.stride,
                  shape.reference_stride()>(words.layout(tiling.k, block_shifts, view.reference.width),
                                            words.start(block_shifts, tiling.k.window_stride), tile_sums);
#pragma unroll
  for (int i = 0; i < shifts.in_tiles; ++i) sums[i] = tile_sums[i / 4][i % 4];
  if constexpr (shape.tail) sums[shifts.in_tiles] = tail_of_lane(tile_sums[shape.tiles]);
  if constexpr (shape.has_corner())
    sums[shifts.in_tiles + 1] = multiply_corner<shape>(view, tiling, block_shifts, memory, shifts);
}

/// Adds the sums of both warps in the first one. `shared`: room for the sums of a warp.
template <WarpShape shape>
__device__ void add_parts(Word* shared, LaneValues<shape, Word>& sums) {
  __syncthreads();
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int i = 0; i < LaneShifts<shape>::count; ++i)
    if (static_cast<int>(threadIdx.x) != lane) shared[i * warp_size + lane] = sums[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < LaneShifts<shape>::count; ++i)
    if (static_cast<int>(threadIdx.x) == lane) sums[i] += shared[i * warp_size + lane];
}

/// Shared memory of a block that scores.
struct ScoringMemory {
  const ReferenceSums* sums_by_warp;
  Word* tile;  ///< room for the scores
};

/// Writes the result of the launch. peak_is_known: this is a part near the known peak.
template <WarpShape shape, Result output>
__device__ void finish(const JobView& view, const PartShifts& block_shifts, const LaneShifts<shape>& shifts,
                       const LaneValues<shape, Word>& sums, const Scoring& scoring, bool peak_is_known,
                       const ScoringMemory& memory) {
  if constexpr (output == Result::sums) {
    if (shifts.owned) store_surface(view, block_shifts, shifts, scoring.sums, [&](int i) { return sums[i]; });
    return;
  }
  LaneValues<shape, float> scores;
  float scale = no_score;
  if (shifts.owned)
    visit_criterion(scoring.criterion, [&]<Criterion criterion> {
      const Reference8<criterion> reference(view.reference.height * view.reference.width,
                                            sum_of_warps<shape.alone>(memory.sums_by_warp));
      scale = reference.scale;
      score_shifts<shape>(reference, block_shifts, shifts, sums, scores);
    });
  if constexpr (output == Result::peaks)
    find_peak_of_block<shape>(view, block_shifts, scoring, shifts, scores,
                              reinterpret_cast<float*>(memory.tile), scale);
  if constexpr (output == Result::parts) {
    if (peak_is_known)
      look_around<shape>(view, block_shifts, scoring.parts.pairs[block_shifts.pair], shifts, scores, scale);
    else
      find_best<shape>(view, block_shifts, scoring.parts.bests, shifts, scores, scale);
  }
  if (output == Result::scores && shifts.owned)
    store_scores<shape>(view, block_shifts, scoring, shifts, scores, scale);
}

template <std::size_t choice, Result output>
__global__ void __launch_bounds__(most_warps* warp_size, least_blocks(warp_shapes[choice], output))
    u8_tensor_kernel(const __grid_constant__ JobView view, const __grid_constant__ Tiling tiling,
                     const __grid_constant__ PartTasks tasks,
                     const __grid_constant__ StatisticsTable statistics,
                     const __grid_constant__ Scoring scoring) {
  constexpr WarpShape shape = warp_shapes[choice];
  constexpr int look_ahead = 8;  // tasks that the first lanes of a block look up at once
  extern __shared__ uint4 shared[];
  constexpr bool keeps_window = output != Result::peaks && shape.split_k == 1;
  __shared__ PartShifts known[2 * look_ahead];
  __shared__ ReferenceSums sums_by_warp[most_warps];
  const Memory memory(tiling, shared);
  const int window_stride = shape.stride > 0 ? shape.stride : tiling.k.window_stride;
  const int reference_stride = shape.stride > 0 ? shape.reference_stride() : tiling.k.reference_stride;
  Word* const first_of_reference =  // first row that is copied: zeros lie before and after a row
      memory.reference + reference_stride + reference_pad / sizeof(Word);
  const int warp = shape.alone ? 0 : threadIdx.x / warp_size;
  // The place of the warp. If k is split, the first warp has all shifts.
  const int warp_y = shape.split_k > 1 ? 0 : tiling.warps_x == 1 ? warp : warp / 2;
  const int warp_x = shape.split_k > 1 ? 0 : warp - warp_y * tiling.warps_x;
  const LaneShifts<shape> shifts(warp_y * shape.rows(), warp_x * shape.columns(),
                                 shape.split_k == 1 || warp == 0);
  const LaneWords<shape> words(tiling, memory, shifts);
  const int count = tasks.count_for_block();
  const auto look_up = [&](int task) {
    if (const int i = threadIdx.x; i < min(look_ahead, count - task))
      new (known + (task + i) % (2 * look_ahead))
          PartShifts(view, tiling, tasks, statistics, tasks.place(tasks.task_of_block(task + i)));
  };
  const auto stage = [&](int task) {
    const PartShifts& block_shifts = known[task % (2 * look_ahead)];
    if (!keeps_window || task == 0 || !block_shifts.continues_window)
      block_shifts.stage_window(view, tiling.window_chunks, window_stride, memory.window);
    block_shifts.stage_reference(view, tiling.reference_chunks, reference_stride, first_of_reference);
  };

  clear_rows(tiling.reference_rows() - 1, reference_stride, memory.reference);
  look_up(0);
  wait_for_block<shape.alone>();
  if (count > 0) stage(0);
  for (int task = 0; task < count; ++task) {
    const PartShifts& block_shifts = known[task % (2 * look_ahead)];
    wait_for_copies();
    wait_for_block<shape.alone>();
    if (task % look_ahead == look_ahead - 1) look_up(task + 1);
    sum_reference<output != Result::sums>(first_of_reference, reference_stride, view.reference.height,
                                          block_shifts.reference.byte(), tiling.reference_chunks.divisor,
                                          sums_by_warp);
    wait_for_block<shape.alone>();
    LaneValues<shape, Word> sums;
    multiply_shifts<shape>(view, tiling, block_shifts, memory, shifts, words, sums);
    if constexpr (shape.split_k == 2) add_parts<shape>(memory.window, sums);
    wait_for_block<shape.alone>();
    // The copies for the next task run while this one is scored, unless its scores are in their way.
    if (output != Result::peaks && task + 1 < count) stage(task + 1);
    finish<shape, output>(view, block_shifts, shifts, sums, scoring, tasks.list.parts != nullptr,
                          {sums_by_warp, memory.window});
    if (output == Result::peaks && task + 1 < count) {
      wait_for_block<shape.alone>();
      stage(task + 1);
    }
  }
}

template <std::size_t choice, Result output>
void launch_shape(const NccJob& job, const Tiling& tiling, PartTasks tasks, const StatisticsTable& statistics,
                  const Scoring& scoring, StreamHandle stream) {
  const auto kernel = u8_tensor_kernel<choice, output>;
  const std::int64_t resident = resident_blocks(kernel, tiling.threads(), tiling.shared_bytes());
  const std::int64_t blocks = tasks.distribute(resident, warp_shapes[choice].alone ? 0 : 4);
  kernel<<<static_cast<unsigned>(blocks), tiling.threads(), tiling.shared_bytes(), stream>>>(
      make_job_view(job), tiling, tasks, statistics, scoring);
}

/// Launches the kernel of the tiling's shape. The shapes in warp_shapes are the ones that are instantiated.
template <Result output>
void launch_tiling(const NccJob& job, const Tiling& tiling, const PartTasks& tasks,
                   const StatisticsTable& statistics, const Scoring& scoring, StreamHandle stream) {
  const auto try_shape = [&]<std::size_t i>() {
    if constexpr (is_compiled(warp_shapes[i], output))
      if (tiling.warp == warp_shapes[i])
        launch_shape<i, output>(job, tiling, tasks, statistics, scoring, stream);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) { (try_shape.template operator()<i>(), ...); }
  (std::make_index_sequence<std::size(warp_shapes)>{});
  check_launch(describe("cuda-u8-tensor", job));
}

}  // namespace dic::kernels::u8_tensor
