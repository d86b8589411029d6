#include <algorithm>
#include <iterator>
#include <new>

#include "common/resident_blocks.hpp"
#include "ncc/scoring/part_peaks.cuh"
#include "ncc/scoring/window_statistics.cuh"
#include "ncc/tensor/tensor_shares.cuh"
#include "ncc/tensor/u8_products.cuh"
#include "ncc/tensor/u8_scores.cuh"
#include "ncc/tensor/u8_sparse.hpp"
#include "ncc/variants.hpp"

// Exact sums of u8 products on tensor cores (u8_products.cuh says how), and their scores and peaks. A block
// does the shifts of one pair, or a share of them, out of shared memory; what scores need of the window is
// there before (window_statistics.cuh).
namespace dic::kernels {
namespace {

constexpr int most_warps = 4;
constexpr int most_shared_bytes = 160 * 1024;
constexpr int crowded_bytes = 22 * 1024;  ///< more shared memory for one warp leaves the SM too empty

enum class Result {
  sums,    ///< u32
  scores,  ///< f32: one ScoreKind per shift
  peaks,   ///< one Peak per pair; a block covers all shifts
  parts    ///< what part_peaks.cuh wants of the parts of pairs
};

constexpr int small_stride = 20, large_stride = 44;

/// What a warp computes: `tiles` products one above the other, and with a tail one more that is 4 columns by
/// 32 rows, for the one column that 2 R + 1 shifts are often too wide; the corner under it, by itself.
struct WarpShape {
  int tiles = 0;
  bool tail = false;
  int stride = 0;                       ///< of the window's rows in shared memory, in words; 0: any
  int k_parts = 1;                      ///< warps that share the k of their products
  bool alone = stride == small_stride;  ///< the only warp of its block, which waits for no other

  bool operator==(const WarpShape&) const = default;
  __host__ __device__ constexpr int tile_rows() const { return tiles * rows_per_tile; }
  /// Of these, those that are the warp's own: with a tail, those that the tail has too.
  __host__ __device__ constexpr int rows() const { return tail ? warp_size + 1 : tile_rows(); }
  __host__ __device__ constexpr bool has_corner() const { return tail; }
  /// Of the reference's rows.
  __host__ __device__ constexpr int reference_stride() const { return stride == large_stride ? 28 : stride; }
  __host__ __device__ constexpr int columns() const { return columns_per_warp + tail; }
  /// Of rows of scores in shared memory: odd, for lanes along y.
  __host__ __device__ constexpr int tile_stride() const {
    return alone ? columns_per_warp + 1 : 2 * columns() + 1;
  }
  __host__ __device__ constexpr int loads_at_once() const { return tail ? 16 : 24; }
};
/// Those that are compiled; the known strides come first.
constexpr WarpShape warp_shapes[]{WarpShape{8, false, small_stride},
                                  WarpShape{8, false, large_stride},
                                  WarpShape{9, true, small_stride},
                                  WarpShape{9, true, large_stride},
                                  WarpShape{9, true, large_stride, 2},
                                  WarpShape{1, false},
                                  WarpShape{2, false},
                                  WarpShape{3, false},
                                  WarpShape{4, false},
                                  WarpShape{5, false},
                                  WarpShape{6, false},
                                  WarpShape{8, false},
                                  WarpShape{9, false}};

/// Few rows of many shifts have surfaces.
constexpr bool is_compiled(const WarpShape& shape, Result output) {
  return output != Result::parts || shape.tiles >= 8;
}

/// Blocks of most_warps that an SM must have registers for: 12 warps without spills are faster than 16 with
/// them. The compiler needs more registers for older devices.
__host__ __device__ constexpr int least_blocks(const WarpShape& shape, Result output) {
  if (shape.tiles < 8) return 4;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return 2;
#else
  const bool large = shape.k_parts > 1 || (shape.stride == 0 && output != Result::sums);
  return large || (shape.tail && output != Result::peaks) ? 3 : 4;
#endif
}

/// How a block cuts its work: warps_x x warps_y warps over one stretch of shared memory.
struct Cut {
  WarpShape warp;
  int warps_x = 0, warps_y = 0;  ///< warps_x is 1 or 2
  ProductLayout k;
  Divisor window_chunks, reference_chunks;  ///< in a row
  int window_words = 0;                     ///< later with the scores of a pair, and with what warps exchange

  __host__ __device__ int columns() const { return warps_x * warp.columns(); }
  __host__ __device__ int rows() const { return warps_y * warp.rows(); }
  /// Rows -1 .. k.rows - 1, in whole steps of one word. A step ahead loads more, of the window, without using
  /// it.
  __host__ __device__ int reference_rows() const { return round_up(k.rows, 8) + 1; }
  __host__ __device__ int reference_words() const { return reference_rows() * k.reference_stride; }
  int shared_bytes() const { return static_cast<int>(sizeof(Word)) * (reference_words() + window_words); }
  int threads() const { return warps_x * warps_y * warp.k_parts * warp_size; }
};

/// Rows of whole chunks that begin 12 or 20 banks apart: two neighbouring rows of 8 words never meet in one
/// bank.
int spread(int words) {
  int stride = round_up(words, 4);
  while (stride % 32 != 12 && stride % 32 != 20) stride += 4;
  return stride;
}

/// The shape takes a known stride where one fits and is compiled. Where a warp would be alone with a tail and
/// a large window, two share it.
WarpShape with_stride(const Cut& cut, int reference_stride) {
  const bool one_warp = cut.warps_x * cut.warps_y == 1;
  for (const int stride : {small_stride, large_stride}) {
    const bool in_two = cut.warp.tail && stride == large_stride && one_warp;
    const WarpShape shape{cut.warp.tiles, cut.warp.tail, stride, in_two ? 2 : 1};
    if (cut.k.window_stride == stride && reference_stride <= shape.reference_stride() &&
        cut.columns() <= shape.tile_stride() && (one_warp || !shape.alone) &&
        std::ranges::find(warp_shapes, shape) != std::end(warp_shapes))
      return shape;
  }
  return cut.warp;
}

Cut make_cut(const NccJob& job, Result output, WarpShape warp, int warps_x, int warps_y) {
  const int h = job.reference.height, w = job.reference.width;
  Cut cut;
  cut.warp = warp, cut.warps_x = warps_x, cut.warps_y = warps_y;
  cut.k.rows = round_up(h + 1, 4);
  cut.k.words = (w + 3 + 3 + 3) / 4;
  // The first word of a warp's last step, and what the copy of whole chunks writes.
  cut.window_chunks = Divisor(most_chunks(cut.columns() + w - 1));
  cut.reference_chunks = Divisor(most_chunks(w));
  cut.k.window_stride =
      spread(std::max(cut.k.words + cut.columns() / 4 + 2, cut.window_chunks.divisor * chunk_bytes / 4));
  const int reference_stride = round_up(reference_pad / 4 + 4 + cut.k.words, 4);
  cut.warp = with_stride(cut, reference_stride);
  cut.k.reference_stride = cut.warp.stride > 0 ? cut.warp.reference_stride() : reference_stride;
  const int rows = warps_y * cut.warp.tile_rows();
  // A step of one word ahead loads 8 rows more.
  cut.window_words = (round_up(cut.k.rows, 8) + rows + 6) * cut.k.window_stride;
  if (output == Result::peaks) cut.window_words = std::max(cut.window_words, rows * cut.warp.tile_stride());
  if (cut.warp.k_parts > 1) cut.window_words = std::max(cut.window_words, (cut.warp.rows() + 2) * warp_size);
  return cut;
}

constexpr int most_tiles = std::end(warp_shapes)[-1].tiles;

/// The lowest shape that covers `tiles` with warps_y warps.
WarpShape shape_for(int tiles, int warps_y) {
  return *std::ranges::find_if(warp_shapes, [&](const WarpShape& shape) {
    return !shape.tail && shape.stride == 0 && shape.tiles * warps_y >= tiles;
  });
}

constexpr WarpShape with_tail{9, true};

/// Warps with tails that cover the shifts.
struct TailWarps {
  int x, y;

  explicit TailWarps(const Shifts& shifts) : x(warps(shifts.nx())), y(warps(shifts.ny())) {}
  /// True where they cost less than stretches of 32 or 64 columns: in products a step.
  bool pay(const Shifts& shifts) const {
    const int warps_x = (shifts.nx() + columns_per_warp - 1) / columns_per_warp;
    const int tiles = (shifts.ny() + rows_per_tile - 1) / rows_per_tile;
    return (with_tail.tiles + 1) * x * y < (warps_x == 1 ? 1 : round_up(warps_x, 2)) * tiles;
  }
  bool fit_a_block() const { return x * y > 1 && x <= 2 && y <= 2; }

 private:
  static int warps(int shifts) { return (shifts + columns_per_warp) / (columns_per_warp + 1); }
};

/// The cut for a job; shared_bytes() tells whether it fits.
Cut choose_cut(const NccJob& job, Result output) {
  const int tiles = (job.shifts.ny() + rows_per_tile - 1) / rows_per_tile;
  if (const TailWarps warps(job.shifts); warps.pay(job.shifts)) {
    if (warps.fit_a_block())
      if (const Cut cut = make_cut(job, output, with_tail, warps.x, warps.y); cut.warp.stride > 0) return cut;
    if (const Cut cut = make_cut(job, output, with_tail, 1, 1); cut.warp.stride > 0) return cut;
  }
  const int warps_x = job.shifts.nx() <= columns_per_warp ? 1 : 2;
  if (tiles <= most_tiles) {
    const Cut cut = make_cut(job, output, shape_for(tiles, 1), warps_x, 1);
    if (cut.shared_bytes() <= crowded_bytes * warps_x) return cut;
  }
  const WarpShape warp = tiles <= 2 * most_tiles ? shape_for(tiles, 2) : WarpShape{8, false};
  const Cut cut = make_cut(job, output, warp, warps_x, 2);
  if (cut.shared_bytes() <= most_shared_bytes) return cut;
  return make_cut(job, output, {std::min(warp.tiles, 8), false}, 1, 1);
}

/// A task, with its number among the parts of all pairs.
struct PartShare : Share<u8> {
  std::int64_t part;

  PartShare() = default;
  __device__ PartShare(const Frame& frame, const Cut& cut, const PartTasks& tasks,
                       const StatisticsTable& table, const Place& place)
      : Share(frame, cut, tasks, table, place),
        part(pair * tasks.parts() + place.part_y * tasks.parts_x + place.part_x) {}
};

/// What a launch writes, or what its parts tell of the peaks.
struct Scoring : TensorOutput<Word> {
  PartPeaks parts = {};
};

/// A block's shared memory.
struct Memory {
  Word *reference, *window;

  __device__ Memory(const Cut& cut, uint4* shared)
      : reference(reinterpret_cast<Word*>(shared)), window(reference + cut.reference_words()) {}
};

/// Leaves the best of the block's scores, which are a part of the pair's.
template <WarpShape shape>
__device__ void find_best(const Frame& frame, const PartShare& share, Best* bests,
                          const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                          float scale) {
  Best best = Best::none();
  if (shifts.owned) {
    float highest = undefined;
    shifts.visit([&](int i, int, int) { highest = fmaxf(highest, scores[i]); });
    highest = fminf(max_of_warp(highest), __fdividef(1.0f, scale));  // as in find_peak
    int index = cuda::std::numeric_limits<int>::max();
    shifts.visit([&](int i, int row, int column) {
      if (scores[i] >= highest) index = min(index, (share.y + row) * frame.nx + share.x + column);
    });
    if (highest > undefined) best = {highest, __reduce_min_sync(0xffffffffu, index)};
  }
  best = best_of_warps(best);
  if (threadIdx.x == 0) bests[share.part] = best;
}

/// Adds what a part near the pair's peak has around it, and of the second one.
template <WarpShape shape>
__device__ void look_around(const Frame& frame, const PartShare& share, PairPeak& peak,
                            const LaneShifts<shape>& shifts, const LaneValues<shape, float>& scores,
                            float scale) {
  if (!shifts.owned) return;
  const int peak_y = peak.best.index / frame.nx, peak_x = peak.best.index - peak_y * frame.nx;
  float second = peak.beyond;
  shifts.visit([&](int i, int row, int column) {
    const int dx = share.x + column - peak_x, dy = share.y + row - peak_y;
    if (abs(dx) > 2 || abs(dy) > 2) second = fmaxf(second, scores[i]);
    const bool is_beside = abs(dx) <= 1 && abs(dy) <= 1 && scores[i] > undefined;
    if (is_beside) peak.around[neighbours / 2 + 3 * dy + dx] = scores[i] * scale;
  });
  second = max_of_warp(second) * scale;
  if (shifts.lane == 0 && second > undefined) atomicMax(&peak.second, ordered(__float_as_int(second + 0.0f)));
}

/// The sum of products at the shift under the tail; warps that share it do some rows each.
template <WarpShape shape>
__device__ Word multiply_corner(const Frame& frame, const Cut& cut, const PartShare& share,
                                const Memory& memory, const LaneShifts<shape>& shifts) {
  Word sum = 0;
  const int corner_row = shifts.first_row + warp_size, column = shifts.tail_column();
  const int first = shape.k_parts == 1 ? shifts.lane : threadIdx.x;
  for (int row = first; row < frame.reference.height; row += shape.k_parts * warp_size) {
    ByteStream window(memory.window + (corner_row + row) * cut.k.window_stride, share.window.byte() + column);
    ByteStream reference(memory.reference + (1 + row) * cut.k.reference_stride,
                         reference_pad + share.reference.byte());
    for (int x = 0; x < frame.reference.width; x += 4) sum = dot(window.next(), reference.next(), sum);
  }
  return __reduce_add_sync(0xffffffffu, sum);
}

/// Where a lane's words lie where window and reference begin with a chunk. What is found in few instructions
/// is found again for every task: it would cost registers.
template <WarpShape shape>
struct LaneWords {
  /// With small windows the code for an odd word costs as much as it saves.
  static constexpr bool takes_odd_words = shape.stride != small_stride;
  unsigned window, reference;  ///< addresses
  int first_column;            ///< of the warp

  __device__ LaneWords(const Cut& cut, const Memory& memory, const LaneShifts<shape>& shifts)
      : first_column(shifts.first_column()) {
    const auto [group, word, parity] = FragmentLane(shifts.lane);
    const int first_word = word + (has_first_part() ? 0 : words_of_first_part(cut.k));
    window = kept(shared_address(memory.window + (shifts.first_row + parity) * cut.k.window_stride +
                                 first_word + group));
    const int row = 1 + parity - group % 2;
    reference = kept(shared_address(memory.reference + row * cut.k.reference_stride + first_word));
  }
  /// Of the warp's part: as many words as the reference of `width` touches, moved by up to 3 bytes and by
  /// what the window does not begin with a word.
  __device__ ProductLayout layout(ProductLayout k, const PartShare& share, int width) const {
    const int words = words_of_first_part(k);
    const int all = (width + 6 + (share.window.byte() + first_column) % 4) / 4;
    k.words = shape.k_parts == 1 ? all : has_first_part() ? words : all - words;
    if (!takes_odd_words) k.words = round_up(k.words, 2);
    return k;
  }
  __device__ LaneAddresses start(const PartShare& share, int window_stride) const {
    const int group = static_cast<int>(kept(threadIdx.x) % warp_size) / 4, byte_shift = group / 2;
    const int of_window = share.window.byte() + first_column;
    const int of_reference = reference_pad + share.reference.byte() - byte_shift - of_window % 4;
    const unsigned at = window + (of_window & ~3);
    const unsigned tail = 4 * (2 * group * window_stride + columns_per_warp / 4 - group);
    return {at, at + tail, reference + (of_reference & ~3), 8 * of_reference};
  }

 private:
  __device__ static bool has_first_part() { return shape.k_parts == 1 || kept(threadIdx.x) < warp_size; }
  __device__ static int words_of_first_part(const ProductLayout& k) {
    return shape.k_parts == 1 ? k.words : (k.words + 1) / 4 * 2;
  }
};

/// The sums of products of a lane's shifts.
template <WarpShape shape>
__device__ void multiply_shifts(const Frame& frame, const Cut& cut, const PartShare& share,
                                const Memory& memory, const LaneShifts<shape>& shifts,
                                const LaneWords<shape>& words, LaneValues<shape, Word>& sums) {
  Word of_tiles[shape.tiles + shape.tail][4] = {};
  multiply_window<shape.tiles, shape.tail, LaneWords<shape>::takes_odd_words, shape.stride,
                  shape.reference_stride()>(words.layout(cut.k, share, frame.reference.width),
                                            words.start(share, cut.k.window_stride), of_tiles);
#pragma unroll
  for (int i = 0; i < shifts.in_tiles; ++i) sums[i] = of_tiles[i / 4][i % 4];
  if constexpr (shape.tail) sums[shifts.in_tiles] = tail_of_lane(of_tiles[shape.tiles]);
  if constexpr (shape.has_corner())
    sums[shifts.in_tiles + 1] = multiply_corner<shape>(frame, cut, share, memory, shifts);
}

/// The first warp gets what both have of the sums. `shared`: at least that large.
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

/// Turns the sums of a share into what the launch writes. again: near a peak that is known.
template <WarpShape shape, Result output>
__device__ void finish(const Frame& frame, const PartShare& share, const LaneShifts<shape>& shifts,
                       const ReferenceSums* of_warps, const LaneValues<shape, Word>& sums,
                       const Scoring& scoring, bool again, Word* tile) {
  if constexpr (output == Result::sums) {
    if (shifts.owned) store_surface(frame, share, shifts, scoring.sums, [&](int i) { return sums[i]; });
    return;
  }
  LaneValues<shape, float> scores;
  float scale = no_score;
  if (shifts.owned)
    visit_measure(scoring.criterion, [&]<Criterion criterion> {
      const Reference8<criterion> reference(frame.reference.height * frame.reference.width,
                                            sum_of_warps<shape.alone>(of_warps));
      scale = reference.scale;
      score_shifts<shape>(reference, share, shifts, sums, scores);
    });
  if constexpr (output == Result::peaks)
    find_peak_of_share<shape>(frame, share, scoring, shifts, scores, reinterpret_cast<float*>(tile), scale);
  if constexpr (output == Result::parts) {
    if (again)
      look_around<shape>(frame, share, scoring.parts.pairs[share.pair], shifts, scores, scale);
    else
      find_best<shape>(frame, share, scoring.parts.bests, shifts, scores, scale);
  }
  if (output == Result::scores && shifts.owned)
    store_scores<shape>(frame, share, scoring, shifts, scores, scale);
}

template <std::size_t choice, Result output>
__global__ void __launch_bounds__(most_warps* warp_size, least_blocks(warp_shapes[choice], output))
    u8_tensor(const __grid_constant__ Frame frame, const __grid_constant__ Cut cut,
              const __grid_constant__ PartTasks tasks, const __grid_constant__ StatisticsTable statistics,
              const __grid_constant__ Scoring scoring) {
  constexpr WarpShape shape = warp_shapes[choice];
  constexpr int look_ahead = 8;  // tasks that a block's first lanes look up at once
  extern __shared__ uint4 shared[];
  constexpr bool keeps_window = output != Result::peaks && shape.k_parts == 1;
  __shared__ PartShare shares[2 * look_ahead];
  __shared__ ReferenceSums of_warps[most_warps];
  const Memory memory(cut, shared);
  const int window_stride = shape.stride > 0 ? shape.stride : cut.k.window_stride;
  const int reference_stride = shape.stride > 0 ? shape.reference_stride() : cut.k.reference_stride;
  Word* const first_of_reference =  // that is copied: zeros lie before and after a row
      memory.reference + reference_stride + reference_pad / sizeof(Word);
  const int warp = shape.alone ? 0 : threadIdx.x / warp_size;
  // The warp's place; of those that share k, the first has all shifts.
  const int warp_y = shape.k_parts > 1 ? 0 : cut.warps_x == 1 ? warp : warp / 2;
  const int warp_x = shape.k_parts > 1 ? 0 : warp - warp_y * cut.warps_x;
  const LaneShifts<shape> shifts(warp_y * shape.rows(), warp_x * shape.columns(),
                                 shape.k_parts == 1 || warp == 0);
  const LaneWords<shape> words(cut, memory, shifts);
  const int count = tasks.of_block();
  const auto look_up = [&](int task) {
    if (const int i = threadIdx.x; i < min(look_ahead, count - task))
      new (shares + (task + i) % (2 * look_ahead))
          PartShare(frame, cut, tasks, statistics, tasks.place(tasks.task_of_block(task + i)));
  };
  const auto stage = [&](int task) {
    const PartShare& share = shares[task % (2 * look_ahead)];
    if (!keeps_window || task == 0 || !share.continues_window)
      share.stage_window(frame, cut.window_chunks, window_stride, memory.window);
    share.stage_reference(frame, cut.reference_chunks, reference_stride, first_of_reference);
  };

  clear_reference(cut.reference_rows() - 1, reference_stride, memory.reference);
  look_up(0);
  wait_for_block<shape.alone>();
  if (count > 0) stage(0);
  for (int task = 0; task < count; ++task) {
    const PartShare& share = shares[task % (2 * look_ahead)];
    wait_for_copies();
    wait_for_block<shape.alone>();
    if (task % look_ahead == look_ahead - 1) look_up(task + 1);
    sum_reference<output != Result::sums>(first_of_reference, reference_stride, frame.reference.height,
                                          share.reference.byte(), cut.reference_chunks.divisor, of_warps);
    wait_for_block<shape.alone>();
    LaneValues<shape, Word> sums;
    multiply_shifts<shape>(frame, cut, share, memory, shifts, words, sums);
    if constexpr (shape.k_parts == 2) add_parts<shape>(memory.window, sums);
    wait_for_block<shape.alone>();
    // The copies for the next task run while this one is scored, unless its scores are in their way.
    if (output != Result::peaks && task + 1 < count) stage(task + 1);
    finish<shape, output>(frame, share, shifts, of_warps, sums, scoring, tasks.list.parts != nullptr,
                          memory.window);
    if (output == Result::peaks && task + 1 < count) {
      wait_for_block<shape.alone>();
      stage(task + 1);
    }
  }
}

template <std::size_t choice, Result output>
void launch_shape(const NccJob& job, const Cut& cut, PartTasks tasks, const StatisticsTable& statistics,
                  const Scoring& scoring, StreamHandle stream) {
  const auto kernel = u8_tensor<choice, output>;
  const std::int64_t resident = resident_blocks(kernel, cut.threads(), cut.shared_bytes());
  const std::int64_t blocks = tasks.deal(resident, warp_shapes[choice].alone ? 0 : 4);
  kernel<<<static_cast<unsigned>(blocks), cut.threads(), cut.shared_bytes(), stream>>>(
      make_frame(job), cut, tasks, statistics, scoring);
}

/// Launches the cut's shape: what is instantiated is warp_shapes itself.
template <Result output>
void launch(const NccJob& job, const Cut& cut, const PartTasks& tasks, const StatisticsTable& statistics,
            const Scoring& scoring, StreamHandle stream) {
  const auto try_shape = [&]<std::size_t i>() {
    if constexpr (is_compiled(warp_shapes[i], output))
      if (cut.warp == warp_shapes[i]) launch_shape<i, output>(job, cut, tasks, statistics, scoring, stream);
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) { (try_shape.template operator()<i>(), ...); }
  (std::make_index_sequence<std::size(warp_shapes)>{});
  check_launch(describe("cuda-u8-tensor", job));
}
template <Result output>
void launch(const NccJob& job, const StatisticsTable& statistics, const Scoring& scoring,
            StreamHandle stream) {
  const Cut cut = choose_cut(job, output);
  launch<output>(job, cut, PartTasks(Tasks(job, cut.columns(), cut.rows())), statistics, scoring, stream);
}

/// Peaks of pairs that several blocks have a part of each; `memory`: PartPeaks::scratch.
void launch_peaks_of_parts(const NccJob& job, StatisticsTable statistics, Criterion criterion, Peak* out,
                           std::byte* memory, StreamHandle stream) {
  const Cut cut = choose_cut(job, Result::parts);
  const Tasks tasks(job, cut.columns(), cut.rows());
  const PartPeaks peaks(memory, tasks, job.pairs);
  const Scoring scoring{{.criterion = criterion}, peaks};
  launch<Result::parts>(job, cut, PartTasks(tasks), statistics, scoring, stream);
  launch_merged_parts(job, tasks, cut.columns(), cut.rows(), peaks, stream);
  statistics.order = nullptr;
  launch<Result::parts>(job, cut, PartTasks(tasks, peaks.near), statistics, scoring, stream);
  launch_part_peaks(job, criterion, peaks, out, stream);
}

Result result_for_peaks(const NccJob& job) {
  const Cut cut = choose_cut(job, Result::peaks);
  return cut.columns() >= job.shifts.nx() && cut.rows() >= job.shifts.ny() ? Result::peaks : Result::parts;
}

bool fits(const NccJob& job, const Cut& cut) {
  const int row_bytes = cut.columns() + job.reference.width - 1;  // copied by a block at once
  return cut.shared_bytes() <= most_shared_bytes && most_chunks(row_bytes) <= cut.threads();
}

}  // namespace

std::string refuses_u8_tensor(const NccJob& job) {
  if (job.sums != Surfaces::Type::u32) return "cuda-u8-tensor sums in 32 bits.";
  if (job.shifts.count() > 0 && !fits(job, choose_cut(job, Result::sums)))
    return "cuda-u8-tensor does references up to about 255x255.";
  return {};
}

bool u8_tensor_scores_fit(const NccJob& job, bool peaks) {
  const Result output = peaks ? result_for_peaks(job) : Result::scores;
  const Cut cut = choose_cut(job, output);
  const bool small = job.reference.height * job.reference.width <= 257 * 257;  // 32 bits hold the squares
  return small && statistics_fit(job) && fits(job, cut) && is_compiled(cut.warp, output);
}

void launch_u8_tensor(const NccJob& job, void* out, StreamHandle stream) {
  launch<Result::sums>(job, {}, {{.sums = static_cast<Word*>(out)}}, stream);
}

void launch_u8_tensor_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                             Workspace& workspace, StreamHandle stream) {
  with_statistics(
      job, criterion, {}, workspace, stream,
      [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics, std::byte*) {
        float* const of_part = scores + first_pair * job.shifts.count();
        launch<Result::scores>(part, statistics, {{.criterion = criterion, .kind = kind, .scores = of_part}},
                               stream);
      });
}

void launch_u8_tensor_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                            StreamHandle stream) {
  const Cut cut = choose_cut(job, Result::parts);
  const bool in_parts = result_for_peaks(job) == Result::parts;
  const int parts = Tasks(job, cut.columns(), cut.rows()).parts();
  with_statistics(job, criterion, in_parts ? PartPeaks::scratch(parts) : Scratch{}, workspace, stream,
                  [&](const NccJob& part, std::int64_t first_pair, const StatisticsTable& statistics,
                      std::byte* scratch) {
                    Peak* const out = peaks + first_pair;
                    if (launch_u8_sparse_peaks(part, statistics, criterion, out, stream)) return;
                    if (in_parts)
                      launch_peaks_of_parts(part, statistics, criterion, out, scratch, stream);
                    else
                      launch<Result::peaks>(part, statistics, {{.criterion = criterion, .peaks = out}},
                                            stream);
                  });
}

}  // namespace dic::kernels
