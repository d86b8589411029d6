#pragma once

#include <algorithm>
#include <concepts>
#include <iterator>
#include <utility>

#include "common/resident_blocks.hpp"
#include "ncc/tensor/block_shifts.cuh"
#include "ncc/tensor/wide_products.cuh"

/// The kernel for elements wider than a byte: cuda-u16-tensor, cuda-f16-tensor and cuda-f32-tensor. A block
/// takes one pair after the other, or as many of its shifts as a WideCut covers. It copies window and
/// reference to shared memory as they lie in the image, multiplies on tensor cores, and makes scores and the
/// peak of the products. A method says how elements become products and what a score is: see WideMethod.
namespace dic::kernels {

/// What a warp computes: `tiles` products one above the other, and with a tail the one column that 2 R + 1
/// shifts are often too wide: by one more product that is 4 columns by 32 rows, or by multiply_tail.
struct WideShape {
  int tiles = 0;
  bool tail = false;
  int stride = 0, reference_stride = 0;  ///< of rows in shared memory, in pairs of elements; 0: any
  bool in_parts = false;                 ///< sums of many steps are made of several, against rounding
  bool alone = false;                    ///< the only warp of its block, which waits for no other

  __host__ __device__ constexpr int rows() const { return tiles * rows_per_tile; }
  __host__ __device__ constexpr bool has_corner() const { return tail && rows() > warp_size; }
  __host__ __device__ constexpr int tile_stride() const {
    return (tail || (stride > 0 && stride < 48) ? 1 : 2) * columns_per_warp + 1;
  }
  __host__ __device__ constexpr int loads_at_once() const { return alone ? rows() : 16; }
};

/// What a launch writes.
enum class WideResult { sums, scores, peaks };

constexpr int most_shared_bytes = 224 * 1024;
constexpr int most_parts = 4;
constexpr int steps_per_part = 96;  ///< of sums that round
constexpr int tail_rows = 16;       ///< of the reference that multiply_tail takes at once

/// How a block cuts its work: warps_x x warps_y warps over one stretch of shared memory; with parts, so many
/// times: then each has its share of the steps along q.
struct WideCut {
  std::size_t shape = 0;  ///< of Method::shapes
  WideShape warp;
  int warps_x = 0, warps_y = 0, parts = 1;  ///< warps_x is 1 or 2, with a tail 1
  ProductLayout k;
  Divisor window_chunks, reference_chunks;  ///< in a row, as it is copied
  Divisor operand_chunks;                   ///< in a row of the reference, as it is summed and converted
  // In words of shared memory: where operands of the reference, the first row of a staged one, scores and the
  // window begin; operands of the reference's second copy come `copy_at` after those of the first.
  int operands_at = 0, copy_at = 0, staged_at = 0, tile_at = 0, window_at = 0;
  int window_words = 0, tile_words = 0, words = 0;  ///< words: all of them
  int exchange_at = 0;                              ///< where in the tile warps that share sums exchange them

  __host__ __device__ int columns() const { return warps_x * columns_per_warp + (warp.tail ? 1 : 0); }
  /// With a corner, those that the tail has too.
  __host__ __device__ int rows() const { return warp.has_corner() ? warp_size + 1 : warps_y * warp.rows(); }
  int warps() const { return warps_x * warps_y * parts; }
  int threads() const { return warps() * warp_size; }
  int shared_bytes() const { return static_cast<int>(sizeof(Word)) * words; }
  /// Of a multiprocessor with 228 KB, for which its registers allow `most`.
  int resident_warps(int most) const {
    constexpr int kilobytes = 228, static_bytes = 2048;
    return std::min(most / warps(), kilobytes * 1024 / (shared_bytes() + static_bytes)) * warps();
  }
  /// Steps along p and q of all products.
  int steps(int elements_per_step) const { return k.rows / 4 * (2 * k.words / elements_per_step); }
};

/// The first compiled shape with the tiles of `warp` that the cut's rows fit; false: there is none.
template <typename Method>
bool choose_shape(WideCut& cut, int window_pairs, int reference_pairs) {
  for (std::size_t i = 0; i < std::size(Method::shapes); ++i) {
    const WideShape& shape = Method::shapes[i];
    if (shape.tiles != cut.warp.tiles || shape.tail != cut.warp.tail) continue;
    const bool fits =
        shape.stride == 0 || (window_pairs <= shape.stride && reference_pairs <= shape.reference_stride);
    const bool rounds = Method::Products::rounds && !shape.in_parts &&
                        cut.steps(Method::Products::elements_per_step) > steps_per_part;
    if (!fits || rounds || cut.columns() > shape.tile_stride() || (shape.alone && cut.warps() > 1)) continue;
    cut.shape = i, cut.warp = shape;
    cut.k.window_stride = shape.stride > 0 ? shape.stride : Method::Products::spread(window_pairs);
    cut.k.reference_stride = shape.stride > 0 ? shape.reference_stride : round_up(reference_pairs, 4);
    return true;
  }
  return false;
}

/// Sets the sizes of shared memory.
template <typename Method>
void lay_out(const NccJob& job, bool scored, WideCut& cut) {
  const int rows = cut.warps_y * cut.warp.rows();
  constexpr int words_per_product = sizeof(typename Method::Products::Product) / sizeof(Word);
  constexpr int words_per_pair = sizeof(typename Method::Products::Pair) / sizeof(Word);
  // What warps that share sums exchange, see LaneShifts.
  const int exchanged =
      (cut.parts - 1) * cut.warps_x * cut.warps_y * (cut.warp.rows() + 2) * warp_size * words_per_product;
  cut.exchange_at = Method::keeps_tile ? round_up(rows * cut.warp.tile_stride(), 4) : 0;
  cut.tile_words =
      scored ? round_up(std::max(rows * cut.warp.tile_stride(), cut.exchange_at + exchanged), 4) : 0;
  // A step ahead loads 4 rows more; the last row of a warp's last step goes on beyond its end. A tail reads
  // up to 32 rows from its last 16 rows of the reference on, or from its last step on.
  const int tail_sums = cut.warp.tail ? std::max(warp_size - cut.warp.rows(), 0) : 0;
  const int columns = cut.warps_x * columns_per_warp / 2 + 8 + cut.k.words;
  cut.window_words = round_up(words_per_pair * ((cut.k.rows + rows + tail_sums + 2) * cut.k.window_stride +
                                                std::max(columns - cut.k.window_stride, 0)),
                              4);
  Method::lay_out(job, cut);
}

/// Without a compiled shape that fits, shape.tiles is 0.
template <typename Method>
WideCut make_wide_cut(const NccJob& job, bool scored, WideShape warp, int warps_x, int warps_y) {
  using Products = typename Method::Products;
  const int w = job.reference.width;
  WideCut cut;
  cut.warp = warp, cut.warps_x = warps_x, cut.warps_y = warps_y;
  cut.k.rows = round_up(job.reference.height + 1, 4);
  cut.k.words = round_up(w + 3 + Products::alignment - 1, Products::elements_per_step) / 2;
  constexpr int element_bytes = sizeof(typename Products::Element);
  cut.window_chunks = Divisor(most_chunks(element_bytes * (cut.columns() + w - 1)));
  cut.reference_chunks = Divisor(most_chunks(element_bytes * w));
  constexpr int chunk_pairs = chunk_bytes / sizeof(typename Products::Pair);
  const auto choose = [&] {
    return choose_shape<Method>(
        cut, cut.window_chunks.divisor * chunk_pairs,
        Method::reference_pairs(cut.reference_chunks.divisor * chunk_pairs, cut.k.words, w));
  };
  if (!choose()) {
    cut.warp.tiles = 0;
    return cut;
  }
  lay_out<Method>(job, scored, cut);
  // Where large windows leave room for few blocks, more warps share one.
  constexpr int enough_warps = 9;
  while (scored && cut.resident_warps(16) < enough_warps && cut.parts < most_parts &&
         (cut.parts + 1) * warps_x * warps_y <= Method::most_warps) {
    ++cut.parts;
    if (cut.warp.alone) choose();
    lay_out<Method>(job, scored, cut);
  }
  return cut;
}

/// The least compiled tiles of which `warps` cover `tiles`, or else the most.
template <typename Method>
int tiles_for(int tiles, bool tail, int warps) {
  int best = 0;
  for (const WideShape& shape : Method::shapes) {
    if (shape.tail != tail) continue;
    const bool covers = shape.tiles * warps >= tiles, best_covers = best * warps >= tiles;
    if (covers ? !best_covers || shape.tiles < best : !best_covers && shape.tiles > best) best = shape.tiles;
  }
  return best;
}

/// With as many warps along y as it takes, the lowest shape that covers all shifts; else as much as there is.
template <typename Method>
WideCut cut_for(const NccJob& job, bool scored, bool tail, int warps_x) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  WideShape warp{0, tail};
  int warps_y = 0;
  do {
    ++warps_y;
    warp.tiles = tiles_for<Method>(tiles, tail, warps_y);
  } while (warp.tiles * warps_y < tiles && !warp.has_corner() &&
           (warps_y + 1) * warps_x <= Method::most_warps);
  return make_wide_cut<Method>(job, scored, warp, warps_x, warps_y);
}

/// True where a block holds what it needs, and has a thread for every chunk of a row.
inline bool fits(const WideCut& cut) {
  const int chunks = std::max(cut.window_chunks.divisor, cut.operand_chunks.divisor);
  return cut.warp.tiles > 0 && cut.shared_bytes() <= most_shared_bytes && chunks <= cut.threads();
}

/// The cut for a job, if one fits.
template <typename Method>
WideCut choose_wide_cut(const NccJob& job, bool scored) {
  const auto stretches = [&](int width) { return (job.shifts.nx() + width - 1) / width; };
  const int plain = stretches(columns_per_warp);
  if (10 * stretches(columns_per_warp + 1) < 8 * (plain == 1 ? 1 : round_up(plain, 2)))
    if (const WideCut cut = cut_for<Method>(job, scored, true, 1); fits(cut)) return cut;
  const WideCut cut = cut_for<Method>(job, scored, false, plain == 1 ? 1 : 2);
  if (fits(cut)) return cut;
  return make_wide_cut<Method>(job, scored, {Method::most_tiles, false}, 1, 1);
}

/// A block's shared memory.
struct WideMemory {
  Word *operands, *staged, *window;
  float* tile;

  __device__ WideMemory(const WideCut& cut, uint4* shared)
      : operands(reinterpret_cast<Word*>(shared) + cut.operands_at),
        staged(reinterpret_cast<Word*>(shared) + cut.staged_at),
        window(reinterpret_cast<Word*>(shared) + cut.window_at),
        tile(reinterpret_cast<float*>(shared) + cut.tile_at) {}
};

/// The reference of a task in shared memory: element (0, 0) is element `first` of its first row.
struct StagedReference {
  int first, height, width;

  /// Of a word of a row, the bits of existing elements.
  __device__ Word mask(int word) const {
    const auto low_elements = [](int n) { return ~__funnelshift_lc(0, 0xffffffffu, 16 * max(n, 0)); };
    return low_elements(first + width - 2 * word) & ~low_elements(first - 2 * word);
  }
};

/// What a thread has of a staged reference: a column of chunks, of which the masks say what exists.
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
  /// body(word of the first row's chunk), for every row.
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
  /// From those of its threads.
  __device__ static WideReferenceSums over_warp(Word sum, std::uint64_t squares) {
    constexpr unsigned all = 0xffffffffu;
    return {__reduce_add_sync(all, sum),
            __reduce_add_sync(all, static_cast<Word>(squares) & ((1u << low_bits) - 1)),
            __reduce_add_sync(all, static_cast<Word>(squares >> low_bits))};
  }

 private:
  static constexpr int low_bits = 20;  // threads have up to 2^42
};
template <bool one_warp, typename Sums>
__device__ Sums sum_of_warps(const Sums* sums_by_warp) {
  Sums sums = sums_by_warp[0];
  const int warps = one_warp ? 1 : blockDim.x / warp_size;
  for (int i = 1; i < warps; ++i) sums.add(sums_by_warp[i]);
  return sums;
}

/// The sum of a word's two elements and that of their squares, with 256 * high.
__device__ inline void add_elements(Word word, Word& sum, Word& low, Word& high) {
  const Word bytes = __byte_perm(word, 0, 0x3120);
  sum = __dp2a_lo(word, 0x0101u, sum);
  low = __dp2a_lo(word, bytes, low);
  high = __dp2a_hi(word, bytes, high);
}

template <typename Method>
using BlockShiftsOf = BlockShifts<typename Method::Products::Element>;

/// Where a warp's shifts begin in the block's, and which part of the steps is its.
struct WarpPlace {
  int place = 0, part = 0, first_row = 0, first_column = 0;

  __device__ WarpPlace(const WideCut& cut, const WideShape& shape) {
    if (shape.alone) return;
    const int warp = thread_of_block() / warp_size;
    place = cut.parts == 1 ? warp : warp / cut.parts;
    part = warp - place * cut.parts;
    const int warps_x = shape.tail ? 1 : cut.warps_x, y = warps_x == 1 ? place : place / 2;
    first_row = y * shape.rows();
    first_column = (place - y * warps_x) * columns_per_warp;
  }
};

/// The sums of products at a warp's shifts of the tail, and at the corner. Every row of the window that they
/// reach meets every row of the reference; the sum of a shift lies on a diagonal of that product, tiles of
/// 16 x 8 of which add up where they lie on the same diagonals.
template <typename Method, WideShape shape>
__device__ void multiply_tail(const WideCut& cut, const StagedReference& reference, const WideMemory& memory,
                              const WarpPlace& place, int window_at,
                              LaneValues<shape, typename Method::Products::Product>& sums) {
  using Products = typename Method::Products;
  constexpr int diagonals = shape.has_corner() ? warp_size + 1 : shape.rows();
  constexpr int heights = (diagonals + tail_rows - 1 + 15) / 16, tiles = 2 * heights;
  using Operands = typename Method::template TailOperands<shape>;
  const Operands operands(cut, reference, memory, place, window_at);
  typename Products::Sums tile_sums[tiles];
  for (int row = tail_rows * (cut.parts - 1 - place.part); row < reference.height;
       row += tail_rows * cut.parts) {
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

/// The sums of products of a lane's shifts, those of its part of the steps.
template <typename Method, WideShape shape>
__device__ void multiply_shifts(const WideCut& cut, const BlockShiftsOf<Method>& block_shifts,
                                const StagedReference& reference, const WideMemory& memory,
                                const WarpPlace& place,
                                LaneValues<shape, typename Method::Products::Product>& sums) {
  using Products = typename Method::Products;
  using Sums = typename Products::Sums;
  const FragmentLane at(thread_of_block() % warp_size);
  const int window_stride = shape.stride > 0 ? shape.stride : cut.k.window_stride;
  using Pair = typename Products::Pair;
  const int window_at = block_shifts.window.byte() / static_cast<int>(sizeof(typename Products::Element)),
            aligned = window_at / Products::alignment * Products::alignment;
  const int member_pair = at.word * Products::elements_per_member / 2;
  const Pair* const first = reinterpret_cast<const Pair*>(memory.window) +
                            (place.first_row + at.parity) * window_stride + member_pair +
                            (place.first_column + aligned) / 2;
  WideLaneStart<Pair> lane = Method::reference_of_lane(cut, reference, memory, at.parity - at.group % 2,
                                                       at.group / 2 + window_at - aligned);
  lane.window = first + 2 * at.group;
  lane.tail = first + 2 * at.group * window_stride + columns_per_warp / 2;
  lane.reference += member_pair;

  constexpr bool tail_in_steps = shape.tail && Method::tail_in_steps;
  constexpr int products = shape.tiles + tail_in_steps;
  Sums tile_sums[products];
  constexpr int step = Products::elements_per_step / 2;
  const auto multiply = [&](const Stretch& stretch, Sums(&to)[products]) {
    multiply_columns<Products, shape.tiles, tail_in_steps, shape.stride, shape.reference_stride>(cut.k, lane,
                                                                                                 stretch, to);
  };
  const Stretch whole{place.part * step, cut.k.words, cut.parts * step};
  if constexpr (Products::rounds && shape.in_parts) {
    const int at_once = max(steps_per_part / (cut.k.rows / 4), 1) * whole.step;
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
    multiply_tail<Method, shape>(cut, reference, memory, place, window_at, sums);
}

/// The first warp of a place gets what all its parts have of the sums. `shared`: see lay_out.
template <WideShape shape, typename Product>
__device__ void add_parts(const WideCut& cut, const WarpPlace& place, Product* shared,
                          LaneValues<shape, Product>& sums) {
  constexpr int count = LaneShifts<shape>::count;
  const int lane = threadIdx.x % warp_size;
  Product* const place_sums = shared + place.place * (cut.parts - 1) * count * warp_size + lane;
  __syncthreads();
#pragma unroll
  for (int i = 0; i < count; ++i)
    if (place.part > 0) place_sums[((place.part - 1) * count + i) * warp_size] = sums[i];
  __syncthreads();
  if (place.part > 0) return;
  for (int part = 1; part < cut.parts; ++part)
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] += place_sums[((part - 1) * count + i) * warp_size];
}

/// What a block knows of a task.
template <typename Method>
struct WideTask {
  const JobView& view;
  const WideCut& cut;
  const BlockShiftsOf<Method>& block_shifts;
  const WideMemory& memory;
  int window_stride, reference_stride;  ///< in pairs
  int origin;
  bool has_new_window;
  typename Method::ReferenceSums* sums_by_warp;

  __device__ StagedReference reference() const {
    return {block_shifts.reference.byte() / static_cast<int>(sizeof(typename Method::Products::Element)),
            view.reference.height, view.reference.width};
  }
};

/// How elements become products (see wide_products.cuh) and what a score is.
template <typename M>
concept WideMethod = requires(const NccJob& job, WideCut& cut, const WideCut& chosen,
                              const StagedReference& reference, const WideMemory& memory, int n) {
  { M::name } -> std::convertible_to<std::string_view>;
  typename M::Products::Element;
  typename M::Products::Product;
  typename M::ReferenceSums;  // what a warp finds out about its rows of the reference
  // The shapes that are compiled, and the launch: warps of a block, tiles of a warp, tasks of a block before
  // another one follows (Tasks::distribute), blocks that a multiprocessor must have registers for.
  { M::shapes[0] } -> std::convertible_to<WideShape>;
  { M::most_warps } -> std::convertible_to<int>;
  { M::most_tiles } -> std::convertible_to<int>;
  { M::tasks_per_block } -> std::convertible_to<int>;
  { M::least_blocks(M::shapes[0]) } -> std::same_as<int>;
  // Products leave the window as it is; scores need the tile, which then has memory of its own; tails are
  // products in every step, or else multiply_tail does them with TailOperands<shape>.
  { M::keeps_window } -> std::convertible_to<bool>;
  { M::keeps_tile } -> std::convertible_to<bool>;
  { M::tail_in_steps } -> std::convertible_to<bool>;
  // Pairs of elements in a row of the reference, from: copied elements, words of a step, width.
  { M::reference_pairs(n, n, n) } -> std::same_as<int>;
  // Where references, scores and window lie in shared memory.
  { M::lay_out(job, cut) } -> std::same_as<void>;
  // Elements of the window are multiplied relative to this value.
  { M::origin(job) } -> std::same_as<int>;
  // Zeroes what must be zero there before the first task; n: words of a row.
  { M::clear(chosen, n, memory) } -> std::same_as<void>;
  // Where a lane reads the reference's operands: from row n on, moved by n elements.
  {
    M::reference_of_lane(chosen, reference, memory, n, n)
    } -> std::same_as<WideLaneStart<typename M::Products::Pair>>;
};

/// A method whose windows are summed before, by window_statistics.cuh: WithStatistics does the rest of it.
template <typename M>
concept StatisticsMethod = WideMethod<M> &&
    requires(const ReferenceChunks& chunks, const StagedReference& reference, const WideMemory& memory,
             int stride) {
  // What lies in shared memory is not yet operands: then there are convert_window and convert_reference.
  { M::converts } -> std::convertible_to<bool>;
  {
    M::template sum_reference<true>(chunks, reference, stride, memory)
    } -> std::same_as<typename M::ReferenceSums>;
  typename M::template Reference<Criterion::zncc>;  // makes a score of a sum of products
};

/// What methods with a StatisticsTable have in common.
template <typename Method>
struct WithStatistics {
  static constexpr bool keeps_window = true, keeps_tile = false, tail_in_steps = false;

  /// Sums the reference, and makes operands of what lies in shared memory.
  template <WideShape shape, bool scored>
  __device__ static void prepare(const WideTask<Method>& task) {
    static_assert(StatisticsMethod<Method>);
    const StagedReference reference = task.reference();
    const ReferenceChunks chunks(task.cut.operand_chunks, reference);
    const auto warp_sums =
        Method::template sum_reference<scored>(chunks, reference, task.reference_stride, task.memory);
    if (const int thread = thread_of_block(); thread % warp_size == 0)
      task.sums_by_warp[thread / warp_size] = warp_sums;
    if constexpr (Method::converts) {
      if (task.has_new_window) Method::convert_window(task.cut, task.memory, task.origin);
      wait_for_block<shape.alone>();
      Method::convert_reference(task.cut, chunks, reference, task.reference_stride, task.memory,
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

/// Makes scores of a lane's sums of products, and of these what the launch writes.
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
    wide_tensor(const __grid_constant__ JobView view, const __grid_constant__ WideCut cut,
                const __grid_constant__ Tasks tasks, int origin,
                const __grid_constant__ StatisticsTable statistics,
                const __grid_constant__ TensorOutput<typename Method::Products::Product> out) {
  using Product = typename Method::Products::Product;
  constexpr WideShape shape = Method::shapes[choice];
  constexpr bool scored = result != WideResult::sums;
  constexpr int words_per_pair = sizeof(typename Method::Products::Pair) / sizeof(Word);
  // Tasks that a block's first lanes look up at once; with less memory for them, more warps alone fit.
  constexpr int look_ahead = shape.alone ? 4 : 8;
  extern __shared__ uint4 shared[];
  __shared__ BlockShiftsOf<Method> upcoming[look_ahead], current[2];
  __shared__ typename Method::ReferenceSums sums_by_warp[shape.alone ? 1 : Method::most_warps];
  const WideMemory memory(cut, shared);
  const int window_stride = shape.stride > 0 ? shape.stride : cut.k.window_stride;
  const int reference_stride = shape.stride > 0 ? shape.reference_stride : cut.k.reference_stride;
  const int count = tasks.count_for_block();
  const auto look_up = [&](int task) {
    if (const int i = threadIdx.x; i < min(look_ahead, count - task))
      upcoming[i] =
          BlockShiftsOf<Method>(view, cut, tasks, statistics, Place(tasks, tasks.task_of_block(task + i)));
  };
  const auto needs_window = [](int task, const BlockShiftsOf<Method>& block_shifts) {
    return !Method::keeps_window || task == 0 || !block_shifts.continues_window;
  };
  const auto stage = [&](int task) {
    const BlockShiftsOf<Method>& block_shifts = upcoming[task % look_ahead];
    if (needs_window(task, block_shifts))
      block_shifts.stage_window(view, cut.window_chunks, words_per_pair * window_stride, memory.window);
    block_shifts.stage_reference(view, cut.reference_chunks, words_per_pair * reference_stride,
                                 memory.staged);
    if (threadIdx.x == 0) current[task % 2] = block_shifts;
  };

  Method::clear(cut, reference_stride, memory);
  look_up(0);
  wait_for_block<shape.alone>();
  stage(0);
  for (int task = 0; task < count; ++task) {
    wait_for_copies();
    wait_for_block<shape.alone>();  // what the last task used is free now, too
    const BlockShiftsOf<Method>& block_shifts = current[task % 2];
    const WideTask<Method> wide_task{view,          cut,
                                     block_shifts,  memory,
                                     window_stride, reference_stride,
                                     origin,        needs_window(task, block_shifts),
                                     sums_by_warp};
    if (task % look_ahead == look_ahead - 1) look_up(task + 1);
    Method::template prepare<shape, scored>(wide_task);
    wait_for_block<shape.alone>();
    const WarpPlace place(cut, shape);
    LaneValues<shape, Product> sums;
    multiply_shifts<Method, shape>(cut, block_shifts, wide_task.reference(), memory, place, sums);
    if (!shape.alone && cut.parts > 1)
      add_parts<shape>(cut, place, reinterpret_cast<Product*>(memory.tile + cut.exchange_at), sums);
    wait_for_block<shape.alone>();
    if (task + 1 < count) stage(task + 1);  // its copies run while this one is scored
    const LaneShifts<shape> shifts(place.first_row, place.first_column, place.part == 0);
    if constexpr (scored)
      finish_scores<Method, shape, result>(wide_task, shifts, sums, out);
    else
      store_surface(view, block_shifts, shifts, out.sums, [&](int i) { return sums[i]; });
  }
}

template <WideMethod Method, std::size_t choice, WideResult result>
void launch_wide_shape(const NccJob& job, const WideCut& cut, const StatisticsTable& statistics,
                       const TensorOutput<typename Method::Products::Product>& out, StreamHandle stream) {
  Tasks tasks(job, cut.columns(), cut.rows());
  const auto kernel = wide_tensor<Method, choice, result>;
  const std::int64_t blocks =
      tasks.distribute(resident_blocks(kernel, cut.threads(), cut.shared_bytes()), Method::tasks_per_block);
  kernel<<<static_cast<unsigned>(blocks), cut.threads(), cut.shared_bytes(), stream>>>(
      make_job_view(job), cut, tasks, Method::origin(job), statistics, out);
}

/// Launches the cut's shape: what is instantiated is Method::shapes itself.
template <WideMethod Method, WideResult result>
void launch_wide(const NccJob& job, const StatisticsTable& statistics,
                 const TensorOutput<typename Method::Products::Product>& out, StreamHandle stream) {
  const WideCut cut = choose_wide_cut<Method>(job, result != WideResult::sums);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    ((cut.shape == i ? launch_wide_shape<Method, i, result>(job, cut, statistics, out, stream) : void()),
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
      [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics, std::byte*) {
        float* const part_scores = scores + first_pair * job.shifts.count();
        launch_wide<Method, WideResult::scores>(
            part, statistics, {.criterion = criterion, .kind = kind, .scores = part_scores}, stream);
      });
}
template <WideMethod Method>
void launch_wide_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                       StreamHandle stream) {
  with_statistics(
      job, criterion, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics, std::byte*) {
        launch_wide<Method, WideResult::peaks>(part, statistics,
                                               {.criterion = criterion, .peaks = peaks + first_pair}, stream);
      });
}

/// For peaks, one block has all shifts of a pair.
inline bool cut_fits(const NccJob& job, const WideCut& cut, FusedOutput output) {
  return fits(cut) && (output == FusedOutput::scores ||
                       (cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny()));
}
template <WideMethod Method>
bool wide_scores_fit(const NccJob& job, FusedOutput output) {
  return statistics_fit(job) && cut_fits(job, choose_wide_cut<Method>(job, true), output);
}

}  // namespace dic::kernels
