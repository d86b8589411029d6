#pragma once

#include <concepts>
#include <utility>

#include "common/resident_blocks.hpp"
#include "ncc/tensor/block_shifts.cuh"
#include "ncc/tensor/wide_products.cuh"
#include "ncc/tensor/wide_tiling.cuh"

/// The kernel for elements wider than a byte: cuda-u16-tensor, cuda-f16-tensor and cuda-f32-tensor. A block
/// computes one pair after the other, or the shifts of a pair that a WideTiling covers. It copies window and
/// reference to shared memory as they lie in the image, multiplies on tensor cores, and computes scores and
/// the peak. A method defines operands and scores: see WideMethod.
namespace dic::kernels {

/// Output of a launch.
enum class WideResult { sums, scores, peaks };

/// A block's shared memory.
struct WideMemory {
  Word *operands, *staged, *window;
  float* tile;

  __device__ WideMemory(const WideTiling& tiling, uint4* shared)
      : operands(reinterpret_cast<Word*>(shared) + tiling.operands_at),
        staged(reinterpret_cast<Word*>(shared) + tiling.staged_at),
        window(reinterpret_cast<Word*>(shared) + tiling.window_at),
        tile(reinterpret_cast<float*>(shared) + tiling.tile_at) {}
};

/// The reference of a task in shared memory: element (0, 0) is element `first` of its first row.
struct StagedReference {
  int first, height, width;

  /// Mask of the bits of existing elements in a word of a row.
  __device__ Word mask(int word) const {
    const auto low_elements = [](int n) { return ~__funnelshift_lc(0, 0xffffffffu, 16 * max(n, 0)); };
    return low_elements(first + width - 2 * word) & ~low_elements(first - 2 * word);
  }
};

/// The chunks of a staged reference that a thread reads: a column of them, with masks of the elements that
/// exist.
struct ReferenceChunks {
  int row, rows_at_once, column;
  Word masks[4];

  __device__ ReferenceChunks(const Divisor& chunks, const StagedReference& reference) {
    const int thread = thread_of_block();
    row = chunks.quotient(thread);
    column = thread - row * chunks.divisor;
    rows_at_once = chunks.quotient(blockDim.x);
#pragma unroll
    for (int i = 0; i < 4; ++i) masks[i] = reference.mask(4 * column + i);
  }
  /// Calls body(word) for the chunk of every row of the thread.
  template <typename Body>
  __device__ void visit(int height, int stride, Body&& body) const {
    if (row >= rows_at_once) return;
#pragma unroll 2
    for (int i = row; i < height; i += rows_at_once) body(i * stride + 4 * column);
  }
};

/// Sums over a reference.
struct WideReferenceSums {
  Word sum, squares_low, squares_high;  ///< the squares in two parts

  __device__ std::uint64_t squares() const { return (std::uint64_t{squares_high} << low_bits) + squares_low; }
  __device__ void add(const WideReferenceSums& other) {
    sum += other.sum;
    squares_low += other.squares_low;
    squares_high += other.squares_high;
  }
  /// Sums over a warp from those of its threads.
  __device__ static WideReferenceSums over_warp(Word sum, std::uint64_t squares) {
    return {__reduce_add_sync(all_lanes, sum),
            __reduce_add_sync(all_lanes, static_cast<Word>(squares) & ((1u << low_bits) - 1)),
            __reduce_add_sync(all_lanes, static_cast<Word>(squares >> low_bits))};
  }

 private:
  static constexpr int low_bits = 20;  // sums of a thread are up to 2^42
};
template <bool one_warp, typename Sums>
__device__ Sums sum_of_warps(const Sums* sums_by_warp) {
  Sums sums = sums_by_warp[0];
  const int warps = one_warp ? 1 : blockDim.x / warp_size;
  for (int i = 1; i < warps; ++i) sums.add(sums_by_warp[i]);
  return sums;
}

/// Adds a word's two elements to `sum`, and their squares to low + 256 * high.
__device__ inline void add_elements(Word word, Word& sum, Word& low, Word& high) {
  const Word bytes = __byte_perm(word, 0, 0x3120);
  sum = __dp2a_lo(word, 0x0101u, sum);
  low = __dp2a_lo(word, bytes, low);
  high = __dp2a_hi(word, bytes, high);
}

template <typename Method>
using BlockShiftsOf = BlockShifts<typename Method::Products::Element>;

/// The shifts of the block that a warp computes, and its part of the steps.
struct WarpPlace {
  int place = 0, part = 0, first_row = 0, first_column = 0;

  __device__ WarpPlace(const WideTiling& tiling, const WideShape& shape) {
    if (shape.alone) return;
    const int warp = thread_of_block() / warp_size;
    place = tiling.parts == 1 ? warp : warp / tiling.parts;
    part = warp - place * tiling.parts;
    const int warps_x = shape.tail ? 1 : tiling.warps_x, y = warps_x == 1 ? place : place / 2;
    first_row = y * shape.rows();
    first_column = (place - y * warps_x) * columns_per_warp;
  }
};

/// Computes the sums of products at a warp's shifts of the tail, and at the corner. Every row of the window
/// in the tail's column is multiplied with every row of the reference; the sum of a shift lies on a diagonal
/// of that product. Tiles of 16 x 8 that lie on the same diagonals are added.
template <typename Method, WideShape shape>
__device__ void multiply_tail(const WideTiling& tiling, const StagedReference& reference,
                              const WideMemory& memory, const WarpPlace& place, int window_at,
                              LaneValues<shape, typename Method::Products::Product>& sums) {
  using Products = typename Method::Products;
  constexpr int diagonals = shape.has_corner() ? warp_size + 1 : shape.rows();
  constexpr int heights = (diagonals + tail_rows - 1 + 15) / 16, tiles = 2 * heights;
  using Operands = typename Method::template TailOperands<shape>;
  const Operands operands(tiling, reference, memory, place, window_at);
  typename Products::Sums tile_sums[tiles];
  for (int row = tail_rows * (tiling.parts - 1 - place.part); row < reference.height;
       row += tail_rows * tiling.parts) {
    for (int q = 0; q < operands.words; q += Operands::words_per_step) {
      typename Products::Patch upper, lower;
      operands.load(row, q, upper);
      operands.load(row + 8, q, lower);
      typename Products::Quad quads[heights];
#pragma unroll
      for (int i = 0; i < heights; ++i) operands.load(row + 16 * i, q, quads[i]);
      const auto multiply = [&](int first, const auto& reference_patch) {
        Products::multiply_add(
            [&](auto&& multiply_tile) {
#pragma unroll
              for (int i = 0; i < heights; ++i) multiply_tile(tile_sums[2 * i + first], quads[i]);
            },
            reference_patch);
      };
      multiply(1, upper);
      multiply(0, lower);
    }
  }
  typename Products::Product products[tiles][4], last;
#pragma unroll
  for (int i = 0; i < 4 * tiles; ++i) products[i / 4][i % 4] = tile_sums[i / 4].product(i % 4);
  sum_diagonals<1>(products, sums[shape.rows()], last);
  if constexpr (shape.has_corner()) sums[shape.rows() + 1] = last;
}

/// Computes the sums of products at a lane's shifts, over its part of the steps.
template <typename Method, WideShape shape>
__device__ void multiply_shifts(const WideTiling& tiling, const BlockShiftsOf<Method>& block_shifts,
                                const StagedReference& reference, const WideMemory& memory,
                                const WarpPlace& place,
                                LaneValues<shape, typename Method::Products::Product>& sums) {
  using Products = typename Method::Products;
  using Sums = typename Products::Sums;
  const FragmentLane at(thread_of_block() % warp_size);
  const int window_stride = shape.stride > 0 ? shape.stride : tiling.k.window_stride;
  using Pair = typename Products::Pair;
  const int window_at = block_shifts.window.byte() / static_cast<int>(sizeof(typename Products::Element)),
            aligned = window_at / Products::alignment * Products::alignment;
  const int member_pair = at.word * Products::elements_per_member / 2;
  const Pair* const first = reinterpret_cast<const Pair*>(memory.window) +
                            (place.first_row + at.parity) * window_stride + member_pair +
                            (place.first_column + aligned) / 2;
  WideLaneStart<Pair> lane = Method::reference_of_lane(tiling, reference, memory, at.parity - at.group % 2,
                                                       at.group / 2 + window_at - aligned);
  lane.window = first + 2 * at.group;
  lane.tail = first + 2 * at.group * window_stride + columns_per_warp / 2;
  lane.reference += member_pair;

  constexpr bool tail_in_steps = shape.tail && Method::tail_in_steps;
  constexpr int products = shape.tiles + tail_in_steps;
  Sums tile_sums[products];
  constexpr int step = Products::elements_per_step / 2;
  const auto multiply = [&](const Stretch& stretch, Sums(&to)[products]) {
    multiply_columns<Products, shape.tiles, tail_in_steps, shape.stride, shape.reference_stride>(
        tiling.k, lane, stretch, to);
  };
  const Stretch whole{place.part * step, tiling.k.words, tiling.parts * step};
  if constexpr (Products::rounds && shape.in_parts) {
    const int at_once = max(steps_per_part / (tiling.k.rows / 4), 1) * whole.step;
    for (int q = whole.first; q < whole.end; q += at_once) {
      Sums part[products];
      multiply({q, min(q + at_once, whole.end), whole.step}, part);
#pragma unroll
      for (int t = 0; t < products; ++t) tile_sums[t].add(part[t]);
    }
  } else {
    multiply(whole, tile_sums);
  }
#pragma unroll
  for (int i = 0; i < shape.rows(); ++i) sums[i] = tile_sums[i / 4].product(i % 4);
  if constexpr (tail_in_steps) {
    const auto& tail_sums = tile_sums[shape.tiles];
    sums[shape.rows()] = tail_of_lane(
        {tail_sums.product(0), tail_sums.product(1), tail_sums.product(2), tail_sums.product(3)});
  }
  if constexpr (shape.tail && !tail_in_steps)
    multiply_tail<Method, shape>(tiling, reference, memory, place, window_at, sums);
}

/// Adds the sums of all parts of a place in its first warp. `shared`: see lay_out.
template <WideShape shape, typename Product>
__device__ void add_parts(const WideTiling& tiling, const WarpPlace& place, Product* shared,
                          LaneValues<shape, Product>& sums) {
  constexpr int count = LaneShifts<shape>::count;
  const int lane = threadIdx.x % warp_size;
  Product* const place_sums = shared + place.place * (tiling.parts - 1) * count * warp_size + lane;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i)
    if (place.part > 0) place_sums[((place.part - 1) * count + i) * warp_size] = sums[i];
  __syncthreads();
  if (place.part > 0) return;
  for (int part = 1; part < tiling.parts; ++part)
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += place_sums[((part - 1) * count + i) * warp_size];
}

/// A task, and the places of its block's data.
template <typename Method>
struct WideTask {
  const JobView& view;
  const WideTiling& tiling;
  const BlockShiftsOf<Method>& block_shifts;
  const WideMemory& memory;
  int window_stride, reference_stride;  ///< strides in pairs of elements
  int origin;
  bool has_new_window;
  typename Method::ReferenceSums* sums_by_warp;

  __device__ StagedReference reference() const {
    return {block_shifts.reference.byte() / static_cast<int>(sizeof(typename Method::Products::Element)),
            view.reference.height, view.reference.width};
  }
};

/// Requirements of a method: how operands are made of elements (see wide_products.cuh), and what a score is.
template <typename M>
concept WideMethod = requires(const NccJob& job, WideTiling& tiling, const WideTiling& chosen,
                              const StagedReference& reference, const WideMemory& memory, int n) {
  { M::name } -> std::convertible_to<std::string_view>;
  typename M::Products::Element;
  typename M::Products::Product;
  typename M::ReferenceSums;  // sums over a warp's rows of the reference
  // The shapes that are compiled, and the launch: warps of a block, tiles of a warp, tasks of a block before
  // another one follows (Tasks::distribute), blocks that a multiprocessor must have registers for.
  { M::shapes[0] } -> std::convertible_to<WideShape>;
  { M::most_warps } -> std::convertible_to<int>;
  { M::most_tiles } -> std::convertible_to<int>;
  { M::tasks_per_block } -> std::convertible_to<int>;
  { M::least_blocks(M::shapes[0]) } -> std::same_as<int>;
  // keeps_window: the window is not changed, so that the next task may use it. keeps_tile: scores need the
  // tile while sums are exchanged, so that both have memory of their own. tail_in_steps: a tail is a product
  // of every step; otherwise multiply_tail computes it with TailOperands<shape>.
  { M::keeps_window } -> std::convertible_to<bool>;
  { M::keeps_tile } -> std::convertible_to<bool>;
  { M::tail_in_steps } -> std::convertible_to<bool>;
  // Pairs of elements in a row of the reference, from: copied elements, words of a step, width.
  { M::reference_pairs(n, n, n) } -> std::same_as<int>;
  // Places references, scores and window in shared memory.
  { M::lay_out(job, tiling) } -> std::same_as<void>;
  // Value relative to which elements of the window are multiplied.
  { M::origin(job) } -> std::same_as<int>;
  // Writes the zeros that operands need around them, before the first task; n: words of a row.
  { M::clear(chosen, n, memory) } -> std::same_as<void>;
  // Start of a lane's operands of the reference, for row n, moved by n elements.
  {
    M::reference_of_lane(chosen, reference, memory, n, n)
    } -> std::same_as<WideLaneStart<typename M::Products::Pair>>;
};

/// A method that takes sums over windows from window_statistics.cuh. WithStatistics supplies the rest of a
/// WideMethod.
template <typename M>
concept StatisticsMethod = WideMethod<M> &&
    requires(const ReferenceChunks& chunks, const StagedReference& reference, const WideMemory& memory,
             int stride) {
  // True if elements must be converted to operands in shared memory: by convert_window and convert_reference.
  { M::converts } -> std::convertible_to<bool>;
  {
    M::template sum_reference<true>(chunks, reference, stride, memory)
    } -> std::same_as<typename M::ReferenceSums>;
  typename M::template Reference<Criterion::zncc>;  // computes a score from a sum of products
};

/// The common part of methods with a StatisticsTable.
template <typename Method>
struct WithStatistics {
  static constexpr bool keeps_window = true, keeps_tile = false, tail_in_steps = false;

  /// Sums the reference, and converts the elements in shared memory to operands.
  template <WideShape shape, bool scored>
  __device__ static void prepare(const WideTask<Method>& task) {
    static_assert(StatisticsMethod<Method>);
    const StagedReference reference = task.reference();
    const ReferenceChunks chunks(task.tiling.operand_chunks, reference);
    const auto warp_sums =
        Method::template sum_reference<scored>(chunks, reference, task.reference_stride, task.memory);
    if (const int thread = thread_of_block(); thread % warp_size == 0)
      task.sums_by_warp[thread / warp_size] = warp_sums;
    if constexpr (Method::converts) {
      if (task.has_new_window) Method::convert_window(task.tiling, task.memory, task.origin);
      wait_for_block<shape.alone>();
      Method::convert_reference(task.tiling, chunks, reference, task.reference_stride, task.memory,
                                sum_of_warps<shape.alone>(task.sums_by_warp), task.origin);
    }
  }
  template <WideShape shape, typename Product>
  __device__ static void score(const WideTask<Method>& task, Criterion criterion,
                               const LaneShifts<shape>& shifts, const LaneValues<shape, Product>& sums,
                               LaneValues<shape, float>& scores) {
    const int elements = task.view.reference.height * task.view.reference.width;
    Method::visit_criterion(criterion, [&]<Criterion criterion> {
      score_shifts<shape>(typename Method::template Reference<criterion>(
                              elements, sum_of_warps<shape.alone>(task.sums_by_warp), task.origin),
                          task.block_shifts, shifts, sums, scores);
    });
  }
};

/// Computes a lane's scores from its sums of products, and writes the result of the launch.
template <WideMethod Method, WideShape shape, WideResult result, typename Product>
__device__ void finish_scores(const WideTask<Method>& task, const LaneShifts<shape>& shifts,
                              const LaneValues<shape, Product>& sums, const TensorOutput<Product>& out) {
  LaneValues<shape, float> scores;
#pragma unroll
  for (float& score : scores) score = no_score;
  if (shifts.owned) Method::template score<shape>(task, out.criterion, shifts, sums, scores);
  if constexpr (result == WideResult::peaks)
    find_peak_of_block<shape>(task.view, task.block_shifts, out, shifts, scores, task.memory.tile);
  else if (shifts.owned)
    store_scores<shape>(task.view, task.block_shifts, out, shifts, scores);
}

template <WideMethod Method, std::size_t choice, WideResult result>
__global__ void __launch_bounds__(Method::most_warps* warp_size, Method::least_blocks(Method::shapes[choice]))
    wide_tensor(const __grid_constant__ JobView view, const __grid_constant__ WideTiling tiling,
                const __grid_constant__ Tasks tasks, int origin,
                const __grid_constant__ StatisticsTable statistics,
                const __grid_constant__ TensorOutput<typename Method::Products::Product> out) {
  using Product = typename Method::Products::Product;
  constexpr WideShape shape = Method::shapes[choice];
  constexpr bool scored = result != WideResult::sums;
  constexpr int words_per_pair = sizeof(typename Method::Products::Pair) / sizeof(Word);
  // Number of tasks that the first lanes of a block look up at once. Single warps look up fewer: they take
  // less memory, and more of them fit.
  constexpr int look_ahead = shape.alone ? 4 : 8;
  extern __shared__ uint4 shared[];
  __shared__ BlockShiftsOf<Method> upcoming[look_ahead], current[2];
  __shared__ typename Method::ReferenceSums sums_by_warp[shape.alone ? 1 : Method::most_warps];
  const WideMemory memory(tiling, shared);
  const int window_stride = shape.stride > 0 ? shape.stride : tiling.k.window_stride;
  const int reference_stride = shape.stride > 0 ? shape.reference_stride : tiling.k.reference_stride;
  const int count = tasks.count_for_block();
  const auto look_up = [&](int task) {
    if (const int i = threadIdx.x; i < min(look_ahead, count - task))
      upcoming[i] =
          BlockShiftsOf<Method>(view, tiling, tasks, statistics, Place(tasks, tasks.task_of_block(task + i)));
  };
  const auto needs_window = [](int task, const BlockShiftsOf<Method>& block_shifts) {
    return !Method::keeps_window || task == 0 || !block_shifts.continues_window;
  };
  const auto stage = [&](int task) {
    const BlockShiftsOf<Method>& block_shifts = upcoming[task % look_ahead];
    if (needs_window(task, block_shifts))
      block_shifts.stage_window(view, tiling.window_chunks, words_per_pair * window_stride, memory.window);
    block_shifts.stage_reference(view, tiling.reference_chunks, words_per_pair * reference_stride,
                                 memory.staged);
    if (threadIdx.x == 0) current[task % 2] = block_shifts;
  };

  Method::clear(tiling, reference_stride, memory);
  look_up(0);
  wait_for_block<shape.alone>();
  stage(0);
  for (int task = 0; task < count; ++task) {
    wait_for_copies();
    wait_for_block<shape.alone>();  // the memory of the last task is free now, too
    const BlockShiftsOf<Method>& block_shifts = current[task % 2];
    const WideTask<Method> wide_task{
        view,          tiling,           block_shifts, memory,
        window_stride, reference_stride, origin,       needs_window(task, block_shifts),
        sums_by_warp};
    if (task % look_ahead == look_ahead - 1) look_up(task + 1);
    Method::template prepare<shape, scored>(wide_task);
    wait_for_block<shape.alone>();
    const WarpPlace place(tiling, shape);
    LaneValues<shape, Product> sums;
    multiply_shifts<Method, shape>(tiling, block_shifts, wide_task.reference(), memory, place, sums);
    if (!shape.alone && tiling.parts > 1)
      add_parts<shape>(tiling, place, reinterpret_cast<Product*>(memory.tile + tiling.exchange_at), sums);
    wait_for_block<shape.alone>();
    if (task + 1 < count) stage(task + 1);  // its copies run while this task is scored
    const LaneShifts<shape> shifts(place.first_row, place.first_column, place.part == 0);
    if constexpr (scored)
      finish_scores<Method, shape, result>(wide_task, shifts, sums, out);
    else
      store_surface(view, block_shifts, shifts, out.sums, [&](int i) { return sums[i]; });
  }
}

template <WideMethod Method, std::size_t choice, WideResult result>
void launch_wide_shape(const NccJob& job, const WideTiling& tiling, const StatisticsTable& statistics,
                       const TensorOutput<typename Method::Products::Product>& out, StreamHandle stream) {
  Tasks tasks(job, tiling.columns(), tiling.rows());
  const auto kernel = wide_tensor<Method, choice, result>;
  const std::int64_t blocks = tasks.distribute(
      resident_blocks(kernel, tiling.threads(), tiling.shared_bytes()), Method::tasks_per_block);
  kernel<<<static_cast<unsigned>(blocks), tiling.threads(), tiling.shared_bytes(), stream>>>(
      make_job_view(job), tiling, tasks, Method::origin(job), statistics, out);
}

/// Launches the kernel of the tiling's shape. The shapes in Method::shapes are the ones that are
/// instantiated.
template <WideMethod Method, WideResult result>
void launch_wide(const NccJob& job, const StatisticsTable& statistics,
                 const TensorOutput<typename Method::Products::Product>& out, StreamHandle stream) {
  const WideTiling tiling = choose_wide_tiling<Method>(job, result != WideResult::sums);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((tiling.shape == i ? launch_wide_shape<Method, i, result>(job, tiling, statistics, out, stream)
                        : void()),
     ...);
  }
  (std::make_index_sequence<std::size(Method::shapes)>{});
  check_launch(describe(Method::name, job));
}

template <WideMethod Method>
void launch_wide_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                        Workspace& workspace, StreamHandle stream) {
  with_statistics(
      job, criterion, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t pairs_before, const StatisticsTable& statistics, std::byte*) {
        float* const part_scores = scores + pairs_before * job.shifts.count();
        launch_wide<Method, WideResult::scores>(
            part, statistics, {.criterion = criterion, .kind = kind, .scores = part_scores}, stream);
      });
}
template <WideMethod Method>
void launch_wide_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                       StreamHandle stream) {
  with_statistics(
      job, criterion, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t pairs_before, const StatisticsTable& statistics, std::byte*) {
        launch_wide<Method, WideResult::peaks>(
            part, statistics, {.criterion = criterion, .peaks = peaks + pairs_before}, stream);
      });
}

/// True if the tiling fits. For peaks, one block must have all shifts of a pair.
inline bool tiling_fits(const NccJob& job, const WideTiling& tiling, FusedOutput output) {
  return fits(tiling) && (output == FusedOutput::scores ||
                          (tiling.columns() >= job.shifts.nx() && tiling.rows() >= job.shifts.ny()));
}
template <WideMethod Method>
bool wide_scores_fit(const NccJob& job, FusedOutput output) {
  return statistics_fit(job) && tiling_fits(job, choose_wide_tiling<Method>(job, true), output);
}

}  // namespace dic::kernels
