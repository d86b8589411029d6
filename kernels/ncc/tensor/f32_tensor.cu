#include <cuda_fp16.h>

#include "ncc/tensor/box_sums.cuh"
#include "ncc/tensor/split_products.cuh"
#include "ncc/tensor/wide_tensor.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

/// Extrema and mean of elements. Elements are divided by their number before they are added, so that the sum
/// does not overflow.
struct Range {
  float least, most, mean;

  __device__ static Range none() { return {-undefined, undefined, 0}; }
  __device__ void add(float element, float weight) {
    least = fminf(least, element);
    most = fmaxf(most, element);
    mean = fmaf(element, weight, mean);
  }
  __device__ void add(const Range& other) {
    least = fminf(least, other.least);
    most = fmaxf(most, other.most);
    mean += other.mean;
  }
  __device__ Range over_warp() const { return {-max_of_warp(-least), max_of_warp(most), warp_sum(mean)}; }
};

/// Converts elements of a patch, less their mean and scaled by their range, to operands and to integers.
struct Scale {
  float mean, to_halves;  ///< to_halves: a power of two; the largest operand is between 2^14 and 2^15
  float to_integers;      ///< sums over n elements then stay exact, see box_sums.cuh

  __device__ Scale(const Range& range, int n) : mean(range.mean) {
    constexpr float least_range = 0x1p-100f;  // a smaller range counts as no contrast
    const float reach = fmaxf(fmaxf(range.most - mean, mean - range.least), least_range);
    to_halves = __uint_as_float(((127u + 14 + 127) << 23) - (__float_as_uint(reach) & 0x7f800000u));
    to_integers = __fdividef(largest_box_integer(n), reach);
  }
  __device__ int integer(float element) const { return rounded((element - mean) * to_integers); }
  __device__ float operand(float element, float further = 0) const {
    return (element - mean - further) * to_halves;
  }
  /// Number of integer units that correspond to an operand of 1.
  __device__ float ratio() const {
    const float inverse = __uint_as_float((254u << 23) - __float_as_uint(to_halves));
    return to_integers * inverse;
  }

 private:
  /// Rounds a number up to 2^22.
  __device__ static int rounded(float number) {
    constexpr float integers = 0x1.8p23f;
    return __float_as_int(number + integers) - __float_as_int(integers);
  }
};

/// Splits two elements into two pairs of halves, see SplitProducts.
__device__ inline uint2 split(float first, float second) {
  const __half2 high = __floats2half2_rn(first, second);
  const __half2 low = __floats2half2_rn(first - __low2float(high), second - __high2float(high));
  return {reinterpret_cast<const Word&>(high), reinterpret_cast<const Word&>(low)};
}

/// Range of the staged columns or rows whose elements exist.
struct Existing {
  int first, end;

  __device__ bool holds(int i) const { return i >= first && i < end; }
  __device__ int count() const { return max(end - first, 0); }
};

/// The chunks of staged rows of floats that a thread reads and writes: a column of them.
class FloatChunks {
 public:
  __device__ FloatChunks(float* first, int stride, const Divisor& chunks, const Existing& rows,
                         const Existing& columns)
      : stride_(stride), rows_(rows), count_(max(rows.count() * columns.count(), 1)) {
    const int thread = thread_of_block();
    row_ = chunks.quotient(thread);
    const int column = thread - row_ * chunks.divisor;
    rows_at_once_ = chunks.quotient(blockDim.x);
    first_ = first + 4 * column;
    has_part_ = row_ < rows_at_once_;
#pragma unroll
    for (int i = 0; i < 4; ++i) exists_[i] = columns.holds(4 * column + i);
  }
  /// Calls body(element) for all elements that exist.
  template <typename Body>
  __device__ void visit(Body&& body) const {
    visit_chunks(rows_.first, rows_.end, [&](const float4& chunk, int) {
      const float elements[4]{chunk.x, chunk.y, chunk.z, chunk.w};
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (exists_[i]) body(elements[i]);
    });
  }
  /// Range of the elements of all threads of this warp.
  __device__ Range range() const {
    Range range = Range::none();
    const float weight = __fdividef(1.0f, count_);
    visit([&](float element) { range.add(element, weight); });
    return range.over_warp();
  }
  /// Converts elements to operands; elements that do not exist become zero.
  template <bool is_window>
  __device__ void convert(int rows, const Scale& scale, float further) const {
    visit_chunks(0, rows, [&](float4& chunk, int row) {
      const bool row_exists = rows_.holds(row);
      const auto operand = [&](float element, int i) {
        return row_exists && exists_[i] ? scale.operand(element, further) : 0.0f;
      };
      const uint2 left = split(operand(chunk.x, 0), operand(chunk.y, 1));
      const uint2 right = split(operand(chunk.z, 2), operand(chunk.w, 3));
      const uint4 alternating{left.x, left.y, right.x, right.y};
      const uint4 high_first{left.x, right.x, left.y, right.y}, low_first{left.y, right.y, left.x, right.x};
      reinterpret_cast<uint4&>(chunk) = !is_window ? alternating : row % 2 == 0 ? high_first : low_first;
    });
  }

 private:
  /// Calls body(chunk, row) for this thread's chunks of the rows.
  template <typename Body>
  __device__ void visit_chunks(int first_row, int end_row, Body&& body) const {
    if (!has_part_) return;
#pragma unroll 2
    for (int row = first_row + row_; row < end_row; row += rows_at_once_)
      body(reinterpret_cast<float4&>(first_[row * stride_]), row);
  }

  float* first_;
  int stride_, row_, rows_at_once_;
  Existing rows_;
  int count_;
  bool has_part_, exists_[4];
};

/// Images of floats, each element as two half floats, for zncc. The mean of the whole window is subtracted
/// from elements of the window, their own mean from elements of the reference: the sum of the latter is then
/// zero except for rounding, and sums of products are covariances. Variations come from integers, see
/// box_sums.cuh.
struct SplitMethod {
  static constexpr std::string_view name = "cuda-f32-tensor";
  using Products = SplitProducts;
  static constexpr bool keeps_window = false, keeps_tile = true, tail_in_steps = true;
  static constexpr int most_warps = 16, most_tiles = 4, tasks_per_block = 4;
  static constexpr WideShape shapes[]{WideShape{4, false, 34, 22}, WideShape{4, false, 64, 38},
                                      WideShape{3, true, 34, 22},  WideShape{3, true, 50, 38},
                                      WideShape{1, false},         WideShape{2, false},
                                      WideShape{4, false},         WideShape{3, true}};
  __host__ __device__ static constexpr int least_blocks(const WideShape&) { return 1; }

  using Task = WideTask<SplitMethod>;
  /// Sums and ranges of a warp.
  struct ReferenceSums {
    Range window, reference;
    int sum;  ///< sum of the reference's integers
    std::uint64_t squares;
  };

  /// Pairs in a row, with zeros before and after it.
  static int reference_pairs(int copied, int k_pairs, int /*width*/) {
    return reference_pad / static_cast<int>(sizeof(Products::Pair)) + std::max(copied, k_pairs + 2);
  }
  /// Places operands of the reference over its elements, and box sums where sums are exchanged later.
  static void lay_out(const NccJob& job, WideTiling& tiling) {
    const int stride = 2 * tiling.k.reference_stride;
    const int box_words = box_shape(columns_of_boxes(tiling, job.reference.width)).words();
    tiling.operand_chunks = tiling.reference_chunks;
    tiling.staged_at = stride + reference_pad / 4;
    tiling.tile_at = (tiling.k.rows + 1) * stride;
    tiling.tile_words =
        round_up(std::max(tiling.tile_words, tiling.exchange_at + tiling.warps() * box_words), 4);
    tiling.window_at = tiling.tile_at + tiling.tile_words;
    tiling.words = tiling.window_at + tiling.window_words;
  }
  __host__ __device__ static int columns_of_boxes(const WideTiling& tiling, int width) {
    return tiling.columns() + width - 1;
  }
  static int origin(const NccJob&) { return 0; }
  /// Zeroes all shared memory: the reference needs zeros around it, and values that products read beyond the
  /// window must be finite.
  __device__ static void clear(const WideTiling& tiling, int, const WideMemory& memory) {
    clear_rows(0, tiling.words, memory.operands);
  }

  __device__ static WideLaneStart<uint2> reference_of_lane(const WideTiling& tiling,
                                                           const StagedReference& reference,
                                                           const WideMemory& memory, int row, int shift) {
    const int at = reference_pad / 4 + reference.first - shift;
    return {.reference = reinterpret_cast<const uint2*>(memory.operands) +
                         (1 + row) * tiling.k.reference_stride + at / 2,
            .bit_shift = 16 * (at % 2)};
  }

  template <WideShape, bool>
  __device__ static void prepare(const Task& task) {
    find_ranges(task);
    __syncthreads();
    sum_reference(task);
    sum_windows(task);
    __syncthreads();
    convert(task);
  }

  template <WideShape shape>
  __device__ static void score(const Task& task, Criterion, const LaneShifts<shape>& shifts,
                               const LaneValues<shape, float>& sums, LaneValues<shape, float>& scores) {
    const Scale reference_scale = scale(task, &ReferenceSums::reference);
    const Scale window_scale = scale(task, &ReferenceSums::window);
    const int n = elements(task);
    const float pair_scale = static_cast<float>(n) * reference_scale.ratio() * window_scale.ratio() *
                             inverse_root_of_variation(n, sums_of_reference(task));
    const Defined rows{task.block_shifts.first_y, task.block_shifts.last_y},
        columns{task.block_shifts.first_x, task.block_shifts.last_x};
    shifts.visit([&](int i, int row, int column) {
      const bool is_defined = rows.holds(row) && columns.holds(column);
      scores[i] = is_defined ? sums[i] * (pair_scale * task.memory.tile[row * shape.tile_stride() + column])
                             : no_score;
    });
  }

 private:
  __device__ static int warps() { return static_cast<int>(blockDim.x) / warp_size; }
  __device__ static int warp() { return thread_of_block() / warp_size; }
  __device__ static bool is_first_lane() { return thread_of_block() % warp_size == 0; }
  __device__ static int elements(const Task& task) {
    return task.view.reference.height * task.view.reference.width;
  }
  __device__ static FloatChunks chunks_of_reference(const Task& task) {
    const StagedReference reference = task.reference();
    return {reinterpret_cast<float*>(task.memory.staged),
            2 * task.reference_stride,
            task.tiling.operand_chunks,
            {0, reference.height},
            {reference.first, reference.first + reference.width}};
  }
  __device__ static int first_column(const Task& task) {
    return task.block_shifts.window.byte() / static_cast<int>(sizeof(float));
  }
  __device__ static FloatChunks chunks_of_window(const Task& task) {
    const auto& block_shifts = task.block_shifts;
    const DevicePatches& reference = task.view.reference;
    const int first = first_column(task);
    return {reinterpret_cast<float*>(task.memory.window),
            2 * task.window_stride,
            task.tiling.window_chunks,
            {block_shifts.first_y, block_shifts.last_y + reference.height},
            {first + block_shifts.first_x, first + block_shifts.last_x + reference.width}};
  }
  __device__ static Scale scale(const Task& task, Range ReferenceSums::*of) {
    Range range = Range::none();
    for (int i = 0; i < warps(); ++i) range.add(task.sums_by_warp[i].*of);
    return {range, elements(task)};
  }
  __device__ static BoxSum sums_of_reference(const Task& task) {
    BoxSum sums{0, 0};
    for (int i = 0; i < warps(); ++i)
      sums.sum += task.sums_by_warp[i].sum, sums.squares += task.sums_by_warp[i].squares;
    return sums;
  }

  __device__ static void find_ranges(const Task& task) {
    const Range window = chunks_of_window(task).range(), reference = chunks_of_reference(task).range();
    if (is_first_lane())
      task.sums_by_warp[warp()].window = window, task.sums_by_warp[warp()].reference = reference;
  }
  __device__ static void sum_reference(const Task& task) {
    const Scale reference_scale = scale(task, &ReferenceSums::reference);
    BoxSum thread_sum{0, 0};
    chunks_of_reference(task).visit([&](float element) {
      const int integer = reference_scale.integer(element);
      thread_sum.sum += integer;
      thread_sum.squares += std::int64_t{integer} * integer;
    });
    const int sum = warp_sum(thread_sum.sum);
    const std::uint64_t squares = warp_sum(thread_sum.squares);
    if (is_first_lane()) task.sums_by_warp[warp()].sum = sum, task.sums_by_warp[warp()].squares = squares;
  }
  __device__ static void sum_windows(const Task& task) {
    const Scale window_scale = scale(task, &ReferenceSums::window);
    const DevicePatches& reference = task.view.reference;
    const int rows = task.block_shifts.shifts_y, per_warp = (rows + warps() - 1) / warps();
    const Boxes boxes{reinterpret_cast<const float*>(task.memory.window) + first_column(task),
                      2 * task.window_stride,
                      reference.height,
                      reference.width,
                      task.block_shifts.shifts_x,
                      warp() * per_warp,
                      min((warp() + 1) * per_warp, rows)};
    fill_inverse_roots(
        boxes, columns_of_boxes(task.tiling, reference.width),
        [=](float element) { return window_scale.integer(element); },
        task.memory.tile + task.tiling.exchange_at, task.memory.tile, task.tiling.warp.tile_stride());
  }
  /// Converts both patches to operands. It also subtracts the mean of the reference's integers, since the
  /// first mean was rounded.
  __device__ static void convert(const Task& task) {
    const Scale reference_scale = scale(task, &ReferenceSums::reference);
    const float sum = static_cast<float>(sums_of_reference(task).sum);
    const float further = __fdividef(sum, elements(task) * reference_scale.to_integers);
    const int h = task.view.reference.height;
    chunks_of_reference(task).convert<false>(h, reference_scale, further);
    chunks_of_window(task).convert<true>(h + task.block_shifts.shifts_y - 1,
                                         scale(task, &ReferenceSums::window), 0);
  }
};

}  // namespace

std::string F32Tensor::unsupported_reason(const NccJob& job) {
  if (job.shifts.count() > 0 && !fits(job, FusedOutput::scores))
    return "cuda-f32-tensor does references up to about 140x140.";
  return {};
}

int F32Tensor::shared_bytes(const NccJob& job) {
  return choose_wide_tiling<SplitMethod>(job, true).shared_bytes();
}

bool F32Tensor::fits(const NccJob& job, FusedOutput fused) {
  const WideTiling tiling = choose_wide_tiling<SplitMethod>(job, true);
  return tiling_fits(job, tiling, fused) &&
         SplitMethod::columns_of_boxes(tiling, job.reference.width) <= most_box_columns;
}

void F32Tensor::launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                              Workspace&, StreamHandle stream) {
  if (job.outputs() == 0) return;
  launch_wide<SplitMethod, WideResult::scores>(
      job, {}, {.criterion = criterion, .kind = kind, .scores = scores}, stream);
}

void F32Tensor::launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace&,
                             StreamHandle stream) {
  if (job.outputs() == 0) return;
  launch_wide<SplitMethod, WideResult::peaks>(job, {}, {.criterion = criterion, .peaks = peaks}, stream);
}

}  // namespace dic::kernels
