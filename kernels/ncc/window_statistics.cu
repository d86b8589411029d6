#include "common/resident_blocks.hpp"
#include "ncc/scoring.cuh"
#include "ncc/window_statistics.cuh"

namespace dic::kernels {
namespace {

constexpr int most_columns = 16;  ///< of a lane
__host__ __device__ constexpr int warps_of_block(int columns) { return columns == most_columns ? 2 : 4; }
constexpr int line = 128 / sizeof(WindowStatistics);

using u8 = std::uint8_t;
using u16 = std::uint16_t;

/// How a launch is cut: a warp walks down `segment` rows of a strip of columns.
struct Strips {
  int columns =
      0;  ///< of statistics in a strip; where there is room whole cache lines, which strips then do not share
  int per_matrix = 0;
  int segment = 0, segments = 0;

  /// As many segments as the GPU takes at once, unless the rows above the first one cost too much.
  Strips(const StatisticsTable& table, int loaded_columns, int height, int width, std::int64_t resident_warps)
      : columns(loaded_columns - width + 1) {
    if (columns > 4 * line) columns = columns / line * line;
    per_matrix = (table.columns + columns - 1) / columns;
    const std::int64_t rows = table.matrices * per_matrix * table.rows;
    const auto share = static_cast<int>((rows + resident_warps - 1) / resident_warps);
    segment = std::clamp(share, std::min(std::max(16, height / 2), table.rows), table.rows);
    segments = (table.rows + segment - 1) / segment;
  }
};

/// Sums over `height` elements of a column, for the columns of a lane.
template <typename T, int columns>
struct ColumnSums {
  using Square = cuda::std::conditional_t<sizeof(T) == 1, std::uint32_t, std::uint64_t>;
  std::uint32_t sums[columns] = {};
  Square squares[columns] = {};

  __device__ void add(const std::uint32_t (&entering)[columns]) {
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      sums[i] += entering[i];
      squares[i] += entering[i] * entering[i];
    }
  }
  __device__ void exchange(const std::uint32_t (&entering)[columns],
                           const std::uint32_t (&leaving)[columns]) {
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      const auto difference = static_cast<std::int32_t>(entering[i] - leaving[i]);
      sums[i] += difference;
      squares[i] +=
          cuda::std::make_signed_t<Square>{difference} * static_cast<std::int32_t>(entering[i] + leaving[i]);
    }
  }
};

/// Sums over the columns left of a column, for all columns of a strip and the one after, in shared memory.
/// Lanes store `columns` neighbours each and load every 32nd: a gap after each lane's keeps them from meeting
/// in banks.
template <typename T, int columns>
struct PrefixSums {
  using Square = typename ColumnSums<T, columns>::Square;
  struct alignas(2 * sizeof(Square)) Sum {
    std::uint32_t sum;
    Square squares;
  };
  static constexpr int step = warp_size / columns * (columns + 1);  ///< from a column to the 32nd after it
  /// Lanes read as far beyond the strip as the reference is wide.
  static constexpr int widest = columns == most_columns ? warp_size * columns : 5 * warp_size;
  static constexpr int places = (warp_size * columns + widest) / columns * (columns + 1) + 1;
  Sum* sums;

  __device__ Sum* at(int column) const { return sums + column + column / columns; }
  /// For one warp.
  __device__ void store(const ColumnSums<T, columns>& of_columns) const {
    constexpr unsigned all = 0xffffffffu;
    const int lane = threadIdx.x % warp_size;
    Sum total{0, 0};
#pragma unroll
    for (int i = 0; i < columns; ++i) total.sum += of_columns.sums[i], total.squares += of_columns.squares[i];
    Sum before = total;
#pragma unroll
    for (int distance = 1; distance < warp_size; distance *= 2) {
      const Sum left{__shfl_up_sync(all, before.sum, distance),
                     __shfl_up_sync(all, before.squares, distance)};
      if (lane >= distance) before.sum += left.sum, before.squares += left.squares;
    }
    if (lane == warp_size - 1) *at(warp_size * columns) = before;
    before.sum -= total.sum, before.squares -= total.squares;
    Sum* const of_lane = at(columns * lane);
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      of_lane[i] = before;
      before.sum += of_columns.sums[i], before.squares += of_columns.squares[i];
    }
  }
};

__device__ inline int sum_of_lanes_up_to(int value) {
#pragma unroll
  for (int distance = 1; distance < warp_size; distance *= 2) {
    const int left = __shfl_up_sync(0xffffffffu, value, distance);
    if (static_cast<int>(threadIdx.x) % warp_size >= distance) value += left;
  }
  return value;
}

/// What scores divide by, of an exact integer.
__device__ inline float root_or_nan(std::int64_t value) {
  return value > 0 ? inverse_root(static_cast<float>(value)) : cuda::std::numeric_limits<float>::quiet_NaN();
}

/// Of n elements.
__device__ inline WindowStatistics statistics(Measure measure, std::uint32_t n, std::uint32_t sum,
                                              std::uint64_t squares) {
  if (measure == Measure::ssd)
    return {static_cast<std::uint32_t>(squares), static_cast<std::uint32_t>(squares >> 32)};
  const std::uint64_t variation = measure == Measure::zncc ? n * squares - std::uint64_t{sum} * sum : squares;
  return {sum, __float_as_uint(root_or_nan(static_cast<std::int64_t>(variation)))};
}

/// Where the statistics of a matrix begin: its element under that of the first one.
template <typename T>
__device__ Matrix<T> load_source(const Frame& frame, const StatisticsTable& table, std::int64_t index) {
  if (!table.of_pictures) {
    Matrix<T> window = load_matrix<T>(frame.search, table.first_matrix + index);
    window.origin = window.row(frame.dy_min) + frame.dx_min;
    window.x0 -= frame.dx_min, window.x1 -= frame.dx_min;
    window.y0 -= frame.dy_min, window.y1 -= frame.dy_min;
    return window;
  }
  const DevicePicture picture = frame.search.pictures[index];
  return {static_cast<const T*>(picture.data), picture.row_bytes, 0, picture.width, 0, picture.height};
}

/// A lane's columns of a row, as they were loaded.
template <typename T, int columns>
struct RawRow {
  static constexpr int words = (columns * static_cast<int>(sizeof(T)) + 3) / 4;
  std::uint32_t word[words + 1];
};
/// Loads a lane's columns of a matrix. Those that do not exist are something: no defined shift has any under
/// it.
template <typename T, int columns>
class LaneColumns {
 public:
  using Raw = RawRow<T, columns>;

  __device__ LaneColumns(const Matrix<T>& matrix, int row, int first)
      : at_(reinterpret_cast<const char*>(matrix.row(row) + first)),
        row_bytes_(matrix.row_bytes),
        first_(static_cast<int>(sizeof(T)) * (matrix.x0 - first)),
        last_(static_cast<int>(sizeof(T)) * (matrix.x1 - 1 - first)),
        has_words_(row_bytes_ % 4 == 0),
        offset_(has_words_ ? static_cast<int>(reinterpret_cast<std::uintptr_t>(at_) % 4) : 0),
        whole_(__all_sync(0xffffffffu, first_ <= -3 && last_ >= 4 * Raw::words + 3)) {}

  /// And goes on to the next row.
  __device__ void load(Raw& raw) {
    if (!has_words_) {
      load_elements(raw);
    } else {
      const auto* const words = reinterpret_cast<const std::uint32_t*>(at_ - offset_);
      // Aligned words that hold at least one element.
      const int first = (first_ + offset_) >> 2, last = (last_ + offset_) >> 2;
#pragma unroll
      for (int i = 0; i <= Raw::words; ++i)
        raw.word[i] = __ldg(words + (whole_ ? i : min(max(i, first), last)));
    }
    at_ += row_bytes_;
  }
  __device__ void unpack(const Raw& raw, std::uint32_t (&elements)[columns]) const {
    constexpr int bits = 8 * sizeof(T), per_word = 32 / bits < columns ? 32 / bits : columns;
#pragma unroll
    for (int i = 0; i < Raw::words; ++i) {
      const std::uint32_t word = __funnelshift_r(raw.word[i], raw.word[i + 1], 8 * offset_);
#pragma unroll
      for (int j = 0; j < per_word; ++j) elements[per_word * i + j] = word >> (bits * j) & ((1u << bits) - 1);
    }
  }

 private:
  /// Rows begin at any element.
  __device__ void load_elements(Raw& raw) const {
    const auto* const row = reinterpret_cast<const T*>(at_);
    constexpr int size = sizeof(T), per_word = 4 / size < columns ? 4 / size : columns;
#pragma unroll
    for (int i = 0; i < Raw::words; ++i) {
      raw.word[i] = 0;
#pragma unroll
      for (int j = 0; j < per_word; ++j) {
        const int element = min(max(per_word * i + j, first_ / size), last_ / size);
        raw.word[i] |= std::uint32_t{__ldg(row + element)} << (8 * size * j);
      }
    }
    raw.word[Raw::words] = 0;
  }

  const char* at_;
  std::ptrdiff_t row_bytes_;
  int first_, last_;  ///< bytes of the first and the last existing element
  bool has_words_;
  int offset_;  ///< from a word to the lane's first element
  bool whole_;  ///< all words of all lanes exist
};

/// Stores the statistics of a row of a strip: of every 32nd column of `end`.
template <typename T, int columns>
__device__ void store_statistics(Measure measure, const PrefixSums<T, columns>& prefix, int width,
                                 std::uint32_t n, int end, WindowStatistics* out) {
  const int lane = threadIdx.x % warp_size;
  const auto* const left = prefix.at(lane);
  const auto* const right = prefix.at(lane + width);
  WindowStatistics of_column[columns];
#pragma unroll
  for (int i = 0; i < columns; ++i) {
    const auto a = left[i * prefix.step], b = right[i * prefix.step];
    of_column[i] = statistics(measure, n, b.sum - a.sum, b.squares - a.squares);
  }
#pragma unroll
  for (int i = 0; i < columns; ++i)
    if (lane + i * warp_size < end) out[lane + i * warp_size] = of_column[i];
}

template <typename T, int columns>
__global__ void __launch_bounds__(warps_of_block(columns) * warp_size)
    window_statistics(const __grid_constant__ Frame frame, const __grid_constant__ StatisticsTable table,
                      const __grid_constant__ Strips strips, Measure measure) {
  using Prefix = PrefixSums<T, columns>;
  constexpr int warps = warps_of_block(columns);
  __shared__ typename Prefix::Sum sums[warps][Prefix::places];
  const Prefix prefix{sums[threadIdx.x / warp_size]};
  const int lane = threadIdx.x % warp_size, h = frame.reference.height, w = frame.reference.width;
  const std::int64_t tasks = table.matrices * strips.per_matrix * strips.segments;
  for_each_task(tasks, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const std::int64_t place = task / strips.per_matrix, index = place / strips.segments;
    const int first_column = static_cast<int>(task - place * strips.per_matrix) * strips.columns;
    const int segment = static_cast<int>(place - index * strips.segments) * strips.segment;
    const Matrix<T> source = load_source<T>(frame, table, index);
    const int first_row = max(segment, source.y0);
    const int end_row = min(min(segment + strips.segment, table.rows), source.y1 - h + 1);
    const int end_column = min(strips.columns, table.columns - first_column);

    if (first_row >= end_row) return;

    using Lane = LaneColumns<T, columns>;
    Lane entering(source, first_row, first_column + lane * columns), leaving = entering;
    typename Lane::Raw raw, raw_leaving;
    std::uint32_t elements[columns], elements_leaving[columns];
    ColumnSums<T, columns> of_columns;
    constexpr int at_once = columns == most_columns || sizeof(T) > 1 ? 1 : 4;  // rows on their way
    for (int row = 0; row < h; row += at_once) {
      typename Lane::Raw rows[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (row + i < h) entering.load(rows[i]);
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (row + i >= h) break;
        entering.unpack(rows[i], elements);
        of_columns.add(elements);
      }
    }
    WindowStatistics* out = table.first + (index * table.rows + first_row) * table.columns + first_column;
    for (int row = first_row;; ++row, out += table.columns) {
      const bool more = row + 1 < end_row;
      if (more) entering.load(raw), leaving.load(raw_leaving);
      prefix.store(of_columns);
      __syncwarp();
      store_statistics(measure, prefix, w, h * w, end_column, out);
      __syncwarp();
      if (!more) return;
      entering.unpack(raw, elements), leaving.unpack(raw_leaving, elements_leaving);
      of_columns.exchange(elements, elements_leaving);
    }
  });
}

/// The band of rows in which the window of a pair begins.
__device__ int band_of(const Frame& frame, int pair, int rows, int bands) {
  const MatrixPosition at = frame.search.positions[frame.window_of(pair)];
  return min(max((at.picture * frame.search.extent.height + at.y) / rows, 0), bands - 1);
}
constexpr int apart = PairOrder::counts_apart;

/// Counts the pairs of every band. The order within one differs from run to run: results do not depend on it.
__global__ void rank_pairs(const __grid_constant__ Frame frame, int rows, int* counts, int* ranks) {
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair < frame.pairs) ranks[pair] = atomicAdd(counts + apart * band_of(frame, pair, rows, blockDim.x), 1);
}
/// For blocks with a thread for each band.
__global__ void order_pairs(const __grid_constant__ Frame frame, int rows, const int* counts,
                            const int* ranks, int* order) {
  __shared__ int before[1024], of_warps[warp_size];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const int count = counts[apart * threadIdx.x];
  const int up_to = sum_of_lanes_up_to(count);
  if (lane == warp_size - 1) of_warps[warp] = up_to;
  __syncthreads();
  if (warp == 0) of_warps[lane] = sum_of_lanes_up_to(of_warps[lane]);
  __syncthreads();
  before[threadIdx.x] = up_to - count + (warp > 0 ? of_warps[warp - 1] : 0);
  __syncthreads();
  const int pair = blockIdx.x * blockDim.x + threadIdx.x;
  if (pair < frame.pairs) order[before[band_of(frame, pair, rows, blockDim.x)] + ranks[pair]] = pair;
}

template <typename T, int columns>
void launch_columns(const NccJob& job, Measure measure, const StatisticsTable& table, StreamHandle stream) {
  constexpr int warps = warps_of_block(columns);
  const auto kernel = window_statistics<T, columns>;
  const Strips strips(table, columns * warp_size, job.reference.height, job.reference.width,
                      warps * resident_blocks(kernel, warps * warp_size, 0));
  const std::int64_t tasks = table.matrices * strips.per_matrix * strips.segments;
  kernel<<<grid_size(tasks, warps), warps * warp_size, 0, stream>>>(make_frame(job), table, strips, measure);
}

/// With as many columns to a lane as it takes, or as leaves room for a strip beside a wide reference.
template <typename T>
void launch_statistics(const NccJob& job, Measure measure, const StatisticsTable& table,
                       StreamHandle stream) {
  const int w = job.reference.width, loaded = table.columns + w - 1;
  if (loaded <= 2 * warp_size)
    launch_columns<T, 2>(job, measure, table, stream);
  else if (loaded <= 4 * warp_size)
    launch_columns<T, 4>(job, measure, table, stream);
  else if (w <= 5 * warp_size)
    launch_columns<T, 8>(job, measure, table, stream);
  else
    launch_columns<T, most_columns>(job, measure, table, stream);
}

}  // namespace

PairOrder::PairOrder(const NccJob& job, const StatisticsTable& table) : pairs_(job.pairs) {
  constexpr std::size_t cache_bytes = std::size_t{24} << 20;
  constexpr std::int64_t few_pairs = 4096;
  const std::int64_t rows = std::int64_t{job.search.extent.count} * job.search.extent.height;
  rows_ = static_cast<int>((rows + bands - 1) / bands);
  pays_ = table.of_pictures && job.form != Form::n_to_m && table.bytes() > cache_bytes &&
          job.pairs > few_pairs && job.pairs <= std::numeric_limits<int>::max();
}

const int* PairOrder::launch(const NccJob& job, int* memory, StreamHandle stream) const {
  const Frame frame = make_frame(job);
  int* const counts = memory;
  int* const ranks = counts + bands * counts_apart;
  int* const order = ranks + pairs_;
  fill(counts, 0, sizeof(int) * bands * counts_apart, stream);
  const unsigned blocks = grid_size(job.pairs, bands);
  rank_pairs<<<blocks, bands, 0, stream>>>(frame, rows_, counts, ranks);
  order_pairs<<<blocks, bands, 0, stream>>>(frame, rows_, counts, ranks, order);
  check_launch(describe("order of pairs", job));
  return order;
}

bool statistics_fit(const NccJob& job) { return job.reference.width <= (most_columns - 1) * warp_size; }

StatisticsTable plan_statistics(const NccJob& job, std::size_t most_bytes) {
  const std::int64_t count = job.search.count;
  const bool all = job.form == Form::n_to_m;
  const StatisticsTable of_windows{
      nullptr, false, all ? 0 : job.first_pair, all ? count : job.pairs, job.shifts.ny(), job.shifts.nx()};
  const PictureExtent& extent = job.search.extent;
  // Rows of whole cache lines.
  const StatisticsTable of_pictures{nullptr,
                                    true,
                                    0,
                                    extent.count,
                                    extent.height - job.reference.height + 1,
                                    (extent.width - job.reference.width + line) / line * line};
  // Strips as narrow as windows cost twice as much.
  const bool hold_references = of_pictures.rows > 0 && of_pictures.columns > 0 && extent.count > 0;
  const bool fit = all || of_pictures.bytes() <= most_bytes;
  return hold_references && fit && of_pictures.count() < 2 * of_windows.count() ? of_pictures : of_windows;
}

void launch_window_statistics(const NccJob& job, Measure measure, const StatisticsTable& table,
                              StreamHandle stream) {
  if (job.type == ScalarType::u8)
    launch_statistics<u8>(job, measure, table, stream);
  else
    launch_statistics<u16>(job, measure, table, stream);
  check_launch(describe("statistics of windows", job));
}

}  // namespace dic::kernels
