#pragma once

#include <algorithm>
#include <array>
#include <utility>

#include "common/shared_memory.hpp"
#include "ncc/find_peak.cuh"
#include "ncc/u16_products.cuh"
#include "ncc/window_statistics.cuh"

/// The kernel of cuda-u16-tensor and cuda-f16-tensor. A block takes one pair, or as many of its shifts as a
/// Cut covers: it copies window and reference to shared memory as they lie in the picture, multiplies on
/// tensor cores, and turns the products into scores and the peak there, with what window_statistics.cuh has
/// found before.
///
/// A Method says how elements become products and what a score is:
///     Products                 see u16_products.cuh
///     WarpShape shapes[]       what is compiled
///     origin(job)              what elements of the window are multiplied relative to
///     sum_reference(...)       by one warp, from the staged elements
///     to_operands(...)         turns what lies in shared memory into operands
///     Reference<measure>       scores
namespace dic::kernels {

/// What a warp computes: `tiles` products one above the other, and with a tail one more that is 4 columns by
/// 32 rows, for the one column that 2 R + 1 shifts are often too wide.
struct WarpShape16 {
  int tiles = 0;
  bool tail = false;
  bool operator==(const WarpShape16&) const = default;
};

constexpr int most_warps16 = 8;
constexpr int most_shared_bytes16 = 224 * 1024;

/// How a block cuts its work: warps_x x warps_y warps over one stretch of shared memory, once or twice: then
/// each has its half of the steps along q.
template <typename Method>
struct Cut16 {
  WarpShape16 warp;
  int warps_x = 0, warps_y = 0;  ///< warps_x is 1 or 2, with a tail 1
  bool halves = false;
  ProductLayout k;
  int window_rows = 0;                        ///< that products read; those beyond the window count nothing
  int window_words = 0, reference_words = 0;  ///< of shared memory,
  int slack_words = 0;                        ///< one after the other

  __host__ __device__ int columns() const { return warps_x * columns_per_warp + (warp.tail ? 1 : 0); }
  __host__ __device__ int rows() const { return warps_y * warp.tiles * rows_per_tile; }
  /// Of a tile of products, in elements: odd, for threads along y.
  __host__ __device__ int tile_stride() const { return columns() | 1; }
  __host__ __device__ int tile_elements() const { return rows() * tile_stride(); }
  int warps() const { return warps_x * warps_y * (halves ? 2 : 1); }
  int shared_bytes() const {
    return static_cast<int>(sizeof(Word)) * (window_words + reference_words + slack_words);
  }
  /// Of a multiprocessor with 228 KB, at 128 registers per thread.
  int resident_warps() const {
    constexpr int registers_allow = 16, kilobytes = 228, static_bytes = 1500;
    return std::min(registers_allow / warps(), kilobytes * 1024 / (shared_bytes() + static_bytes)) * warps();
  }
};

/// Sets what scores need, and the sizes of shared memory: the products take the window's place (a tile for
/// each half), and where their elements are larger than floats, the scores that of the reference.
template <typename Method>
void lay_out(const NccJob& job, bool scored, Cut16<Method>& cut) {
  using Product = typename Method::Products::Product;
  constexpr int words_per_product = sizeof(Product) / sizeof(Word);
  int staged_rows = job.reference.height + std::min(cut.rows(), job.shifts.ny()) - 1, tiles = 0, scores = 0;
  if (scored) {
    tiles = (cut.halves ? 2 : 1) * cut.tile_elements() * words_per_product;
    if (words_per_product > 1) scores = cut.tile_elements();
  }
  if (Method::converts_window) staged_rows = cut.window_rows;
  const int stride = cut.k.window_stride, reference_stride = cut.k.reference_stride;
  cut.window_words = round_up(std::max(staged_rows * stride, tiles), 4);
  cut.reference_words = round_up(std::max((cut.k.rows + 1) * reference_stride, scores), 4);
  // Products read on without using it: a step ahead of the reference's rows -1 .. k.rows - 1, and window rows
  // that meet zeros.
  cut.slack_words =
      std::max({6 * reference_stride, cut.window_rows * stride - cut.window_words - cut.reference_words, 0});
}

template <typename Method>
Cut16<Method> make_cut16(const NccJob& job, bool scored, WarpShape16 warp, int warps_x, int warps_y) {
  using Products = typename Method::Products;
  const int w = job.reference.width;
  Cut16<Method> cut;
  cut.warp = warp, cut.warps_x = warps_x, cut.warps_y = warps_y;
  cut.k.rows = round_up(job.reference.height + 1, 4);
  cut.k.words = round_up(w + 3 + Products::alignment - 1, Products::elements_per_step) / 2;
  cut.window_rows = cut.k.rows + cut.rows() + 2;
  // The last elements of a warp's last step, and what the copy of whole chunks writes.
  const int elements = round_up(cut.columns(), 4) + 2 * cut.k.words + 4;
  const int copied = round_up(7 + cut.columns() + w - 1, 8);
  cut.k.window_stride = round_up(std::max(elements, copied) / 2, 4);
  while (cut.k.window_stride % 32 != Products::banks_apart(warp.tail) &&
         cut.k.window_stride % 32 != 32 - Products::banks_apart(warp.tail))
    cut.k.window_stride += 4;
  cut.k.reference_stride = round_up(reference_pad / 4 + 4 + cut.k.words, 4);
  lay_out(job, scored, cut);
  // Where large windows leave room for few blocks, more warps share one.
  constexpr int enough_warps = 12;
  if (scored && cut.resident_warps() < enough_warps && 2 * cut.warps() <= most_warps16) {
    cut.halves = true;
    lay_out(job, scored, cut);
  }
  return cut;
}

/// With as many warps along y as it takes, the lowest shape that covers `tiles`; else as much as there is.
template <typename Method>
Cut16<Method> cut_for(const NccJob& job, bool scored, bool tail, int warps_x) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  WarpShape16 warp{0, tail};
  int warps_y = 0;
  while (warps_y * warps_x < most_warps16 && warp.tiles * warps_y < tiles) {
    ++warps_y;
    for (const WarpShape16& shape : Method::shapes)
      if (shape.tail == tail && warp.tiles * warps_y < tiles) warp.tiles = shape.tiles;
  }
  return make_cut16<Method>(job, scored, warp, warps_x, warps_y);
}

/// True where a block holds what it needs, and has a thread for every chunk of a window's row.
template <typename Method>
bool fits(const NccJob& job, const Cut16<Method>& cut) {
  const int row_bytes = 2 * (job.reference.width + cut.columns() - 1);
  return cut.shared_bytes() <= most_shared_bytes16 && most_chunks(row_bytes) <= cut.warps() * warp_size;
}

/// The cut for a job, if one fits.
template <typename Method>
Cut16<Method> choose_cut16(const NccJob& job, bool scored) {
  const int nx = job.shifts.nx();
  if (nx == columns_per_warp + 1)
    if (const auto cut = cut_for<Method>(job, scored, true, 1); cut.rows() >= job.shifts.ny()) return cut;
  const auto cut = cut_for<Method>(job, scored, false, nx <= columns_per_warp ? 1 : 2);
  if (fits(job, cut)) return cut;
  return make_cut16<Method>(job, scored, Method::shapes.back(), 1, 1);
}

/// A block's share of a job: the shifts from (y, x) of the rectangle on.
struct Share16 {
  std::int64_t pair;
  int x = 0, y = 0, shifts_x, shifts_y;

  template <typename Cut>
  __device__ Share16(const Frame& frame, const Cut& cut, const StatisticsTable& statistics, std::int64_t task,
                     int tiles_x, int tiles_y)
      : pair(task) {
    if (const int parts = tiles_x * tiles_y; parts > 1) {
      pair = task / parts;
      const int part = static_cast<int>(task - pair * parts);
      x = part % tiles_x * cut.columns();
      y = part / tiles_x * cut.rows();
    }
    pair = statistics.ordered(pair);
    shifts_x = min(cut.columns(), frame.nx - x);
    shifts_y = min(cut.rows(), frame.ny - y);
  }
};

/// What a launch writes: sums, or the scores of all shifts, or the peaks of all pairs.
struct Outputs16 {
  std::uint64_t* sums = nullptr;
  Measure measure = Measure::zncc;
  ScoreKind kind = ScoreKind::score;
  float* scores = nullptr;
  Peak* peaks = nullptr;
};

/// The shifts of a share at which the reference lies inside the window: a rectangle.
struct DefinedShifts16 {
  int x0, x1, y0, y1;

  __device__ DefinedShifts16(const Frame& frame, const Share16& share) {
    const auto window = load_matrix<u16>(frame.search, frame.window_of(share.pair));
    const int x = frame.dx_min + share.x, y = frame.dy_min + share.y;
    x0 = max(window.x0 - x, 0), x1 = min(window.x1 - frame.reference.width - x, share.shifts_x - 1);
    y0 = max(window.y0 - y, 0), y1 = min(window.y1 - frame.reference.height - y, share.shifts_y - 1);
  }
  __device__ bool hold(int y, int x) const { return x >= x0 && x <= x1 && y >= y0 && y <= y1; }
};

/// Turns products into scores, lanes along x, and finds the best of a thread's columns. `other`: products of
/// the second half, or null. tile: for the scores, rows `stride` apart as those of the products.
template <typename Reference, typename Product>
__device__ void score_tile(const Reference& reference, const StatisticsTable& table, const Frame& frame,
                           const Share16& share, const Product* products, const Product* other, float* tile,
                           int stride, ColumnBest (&best)[2]) {
  const DefinedShifts16 defined(frame, share);
  const WindowStatistics* const statistics = table.at(frame, frame.window_of(share.pair), share.y, share.x);
#pragma unroll
  for (int part = 0; part < 2; ++part) {
    const int x = part * warp_size + static_cast<int>(threadIdx.x) % warp_size;
    best[part] = {x};
    if (x >= share.shifts_x) continue;
#pragma unroll 4
    for (int y = threadIdx.x / warp_size; y < share.shifts_y; y += blockDim.x / warp_size) {
      float score = no_score;
      if (defined.hold(y, x)) {
        Product product = products[y * stride + x];
        if (other) product += other[y * stride + x];
        score = reference.score(product, load_statistics(statistics + std::int64_t{y} * table.columns + x));
      }
      best[part].take(score);
      tile[y * stride + x] = score;
    }
  }
}

/// Writes a block's scores to the surfaces of the job.
__device__ inline void store_scores16(const Frame& frame, const Share16& share, const Outputs16& out,
                                      const float* tile, int stride) {
  for (int row = threadIdx.x / warp_size; row < share.shifts_y; row += blockDim.x / warp_size) {
    float* of_row = out.scores + ((share.pair * frame.ny + share.y + row) * frame.nx + share.x);
    for (int x = threadIdx.x % warp_size; x < share.shifts_x; x += warp_size) {
      const float value = fmaxf(tile[row * stride + x], undefined);
      of_row[x] = out.kind == ScoreKind::value ? value_of(value, out.measure) : value;
    }
  }
}

/// A reference in shared memory: element (0, 0) is element `first` of row 1, zeros surround it, but for what
/// the picture holds left of it.
struct StagedReference {
  Word* words;
  int stride;  ///< of rows, in words
  int first, height, width;

  /// Clears the words left of it; an element that shares a word with it remains.
  __device__ void clear_words_before() const {
    for (int row = threadIdx.x + 1; row <= height; row += blockDim.x)
      for (int i = reference_pad / sizeof(Word); i < first / 2; ++i) words[row * stride + i] = 0;
  }

  /// Calls body(word, mask) for the words that hold elements, shared out among `threads` threads; the mask
  /// has the bits of existing elements.
  template <typename Body>
  __device__ void for_each_word(int thread, int threads, Body&& body) const {
    const int begin = first / 2, per_row = (first + width + 1) / 2 - begin;
    const int shift = per_row > 1 ? min(32 - __clz(per_row - 1), 5) : 0;
    for (int i = thread & ((1 << shift) - 1); i < per_row; i += 1 << shift) {
      const int before = first - 2 * (begin + i), end = before + width;  // of the word's two elements
      const Word mask = low_bytes(2 * end) & ~low_bytes(2 * before);
      Word* at = words + begin + i + stride;
#pragma unroll 4
      for (int row = thread >> shift; row < height; row += threads >> shift) body(at[row * stride], mask);
    }
  }
};

template <typename Method, int tiles, bool tail, bool scored>
__global__ void __launch_bounds__(most_warps16* warp_size, 2)
    u16_tensor(const __grid_constant__ Frame frame, const __grid_constant__ Cut16<Method> cut,
               std::int64_t tasks, int tiles_x, int tiles_y, int origin,
               const __grid_constant__ StatisticsTable statistics, const __grid_constant__ Outputs16 out) {
  using Products = typename Method::Products;
  using Product = typename Products::Product;
  extern __shared__ uint4 shared[];
  __shared__ typename Method::ReferenceSums of_reference;
  Word* const window_words = reinterpret_cast<Word*>(shared);
  Word* const reference_words = window_words + cut.window_words;

  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const FragmentLane at(lane);
  const int place = cut.halves ? warp / 2 : warp, half = warp - (cut.halves ? 2 : 1) * place;
  const int warp_y = cut.warps_x == 1 ? place : place / 2, warp_x = place - warp_y * cut.warps_x;
  const int first_column = warp_x * columns_per_warp, first_row = warp_y * tiles * rows_per_tile;
  const int h = frame.reference.height, w = frame.reference.width;

  for_each_task(tasks, 1, 0, [&](std::int64_t task) {
    const Share16 share(frame, cut, statistics, task, tiles_x, tiles_y);
    __syncthreads();  // the last task's readers are done
    const std::int64_t window_index = frame.window_of(share.pair);
    const int window_at =
        stage_window(frame.search, bytes_of(load_matrix<u16>(frame.search, window_index)), window_index,
                     frame.dy_min + share.y, 2 * (frame.dx_min + share.x), h + share.shifts_y - 1,
                     2 * (w + share.shifts_x - 1), cut.k.window_stride, window_words) /
        2;
    const std::int64_t reference_index = frame.reference_of(share.pair);
    const int reference_first =
        (reference_pad +
         stage_reference(frame.reference, bytes_of(load_matrix<u16>(frame.reference, reference_index)),
                         reference_index, cut.k.rows, cut.k.reference_stride, reference_words)) /
        2;
    wait_for_copies();
    __syncthreads();
    const StagedReference reference{reference_words, cut.k.reference_stride, reference_first, h, w};
    reference.clear_words_before();
    if constexpr (scored) {
      if (warp == 0) Method::sum_reference(reference, of_reference);
      __syncthreads();
    }
    Method::to_operands(reference, of_reference, shared, cut.window_rows * cut.k.window_stride, origin);
    __syncthreads();

    typename Products::Sums sums[tiles + tail];
    const int reference_at = reference_first - at.group % 4 - window_at % Products::alignment;
    const int member_word = at.word * Products::elements_per_member / 2;
    const Word* const first = window_words + (first_row + at.parity) * cut.k.window_stride + member_word +
                              (first_column + window_at / Products::alignment * Products::alignment) / 2;
    multiply_window16<Products, tiles, tail>(
        cut.k,
        {first + 2 * at.group, first + 2 * at.group * cut.k.window_stride + columns_per_warp / 2,
         reference_words + (1 + at.parity - at.group / 4) * cut.k.reference_stride + member_word +
             reference_at / 2,
         16 * (reference_at % 2)},
        half, cut.halves ? 2 : 1, sums);

    const auto visit_products = [&](auto&& take) {
#pragma unroll
      for (int i = 0; i < 4 * tiles; ++i)
        take(first_row + i / 4 * rows_per_tile + 2 * (i / 2 % 2) + at.parity,
             first_column + 4 * at.group + 2 * at.word + i % 2, sums[i / 4].product(i % 4));
      if constexpr (tail)
#pragma unroll
        for (int i = 0; i < 4; i += 2)  // B = 1 lies beyond
          if (const int row = first_row + 8 * i + 2 * at.group + at.parity;
              at.word == 0 && row < first_row + tiles * rows_per_tile)
            take(row, columns_per_warp, sums[tiles].product(i));
    };
    if constexpr (!scored) {
      visit_products([&](int row, int column, std::uint64_t sum) {
        if (column < share.shifts_x && row < share.shifts_y)
          out.sums[(share.pair * frame.ny + share.y + row) * frame.nx + share.x + column] = sum;
      });
    } else {
      __syncthreads();  // the products take the place of the window
      const int stride = cut.tile_stride();
      auto* const products = reinterpret_cast<Product*>(window_words);
      auto* const of_half = products + half * cut.tile_elements();
      visit_products([&](int row, int column, Product product) { of_half[row * stride + column] = product; });
      __syncthreads();
      auto* const tile =
          reinterpret_cast<float*>(sizeof(Product) > sizeof(float) ? reference_words : window_words);
      ColumnBest best[2];
      Method::visit_measure(out.measure, [&]<Measure measure> {
        score_tile(typename Method::template Reference<measure>(h * w, of_reference, origin), statistics,
                   frame, share, products, cut.halves ? products + cut.tile_elements() : nullptr, tile,
                   stride, best);
      });
      if (out.peaks) {
        find_peak(frame, out.measure, best, tile, stride, out.peaks + share.pair);
      } else {
        __syncthreads();
        store_scores16(frame, share, out, tile, stride);
      }
    }
  });
}

template <typename Method, bool scored, int tiles, bool tail>
void launch_shape16(const NccJob& job, const Cut16<Method>& cut, const StatisticsTable& statistics,
                    const Outputs16& out, StreamHandle stream) {
  const Frame frame = make_frame(job);
  const int tiles_x = (frame.nx + cut.columns() - 1) / cut.columns();
  const int tiles_y = (frame.ny + cut.rows() - 1) / cut.rows();
  const std::int64_t tasks = frame.pairs * tiles_x * tiles_y;
  const int bytes = cut.shared_bytes();
  const auto kernel = u16_tensor<Method, tiles, tail, scored>;
  allow_shared_memory(kernel, bytes, describe(Method::name, job));
  kernel<<<grid_size(tasks, 1), cut.warps() * warp_size, bytes, stream>>>(
      frame, cut, tasks, tiles_x, tiles_y, Method::origin(job), statistics, out);
  check_launch(describe(Method::name, job));
}

/// Launches the cut's shape: what is instantiated is Method::shapes itself.
template <typename Method, bool scored>
void launch_tensor16(const NccJob& job, const StatisticsTable& statistics, const Outputs16& out,
                     StreamHandle stream) {
  const auto cut = choose_cut16<Method>(job, scored);
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    constexpr auto& shapes = Method::shapes;
    ((cut.warp == shapes[i]
          ? launch_shape16<Method, scored, shapes[i].tiles, shapes[i].tail>(job, cut, statistics, out, stream)
          : void()),
     ...);
  }
  (std::make_index_sequence<Method::shapes.size()>{});
}

template <typename Method>
void launch_scores16(const NccJob& job, Measure measure, ScoreKind kind, float* scores, Workspace& workspace,
                     StreamHandle stream) {
  with_statistics(job, measure, workspace, stream,
                  [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics) {
                    float* const of_part = scores + first_pair * job.shifts.count();
                    launch_tensor16<Method, true>(
                        part, statistics, {.measure = measure, .kind = kind, .scores = of_part}, stream);
                  });
}
template <typename Method>
void launch_peaks16(const NccJob& job, Measure measure, Peak* peaks, Workspace& workspace,
                    StreamHandle stream) {
  with_statistics(job, measure, workspace, stream,
                  [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics) {
                    launch_tensor16<Method, true>(part, statistics,
                                                  {.measure = measure, .peaks = peaks + first_pair}, stream);
                  });
}

template <typename Method>
bool scores_fit16(const NccJob& job, bool peaks) {
  const auto cut = choose_cut16<Method>(job, true);
  const bool one_block_per_pair = cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny();
  return fits(job, cut) && statistics_fit(job) && (!peaks || one_block_per_pair);
}

}  // namespace dic::kernels
