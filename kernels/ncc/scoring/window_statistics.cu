#include <type_traits>

#include "common/resident_blocks.hpp"
#include "ncc/scoring/scoring.cuh"
#include "ncc/scoring/window_statistics.cuh"

namespace dic::kernels {
namespace {

constexpr int most_columns = 16;  ///< columns per lane
__host__ __device__ constexpr int warps_of_block(int columns) { return columns == most_columns ? 2 : 4; }

/// Elements of images, and the type of sums of squares.
struct Bytes {
  using Type = std::uint8_t;
  using Square = std::uint32_t;
  static constexpr bool about_middle = false;
};
struct Words16 {
  using Type = std::uint16_t;
  using Square = std::uint64_t;
  static constexpr bool about_middle = false;
};
/// Elements with so few bits and of such a number that the sum of squares about the middle of the range fits
/// into 32 bits; zncc only.
struct NarrowWords16 {
  using Type = std::uint16_t;
  using Square = std::uint32_t;
  static constexpr bool about_middle = true;
};

/// The tiling of a launch: a warp walks down `segment` rows of a strip of columns.
struct Strips {
  int columns = 0;  ///< columns of statistics; whole strips of the table if possible, so that a strip belongs
                    ///< to one warp
  int per_matrix = 0;
  int segment = 0, segments = 0;

  /// Chooses as many segments as run at once, unless the rows that every segment has to sum first cost too
  /// much.
  Strips(const StatisticsTable& table, int loaded_columns, int height, int width, std::int64_t resident_warps)
      : columns(loaded_columns - width + 1) {
    if (columns > 2 * statistics_strip) columns = columns / statistics_strip * statistics_strip;
    per_matrix = (table.columns + columns - 1) / columns;
    const std::int64_t at_once =
        std::clamp<std::int64_t>(resident_warps / (table.matrices * per_matrix), 1, table.rows);
    const int even = static_cast<int>((table.rows + at_once - 1) / at_once);
    segment = std::clamp(even, std::min(std::max(16, height / 2), table.rows), table.rows);
    segments = (table.rows + segment - 1) / segment;
  }
};

/// Sums over `height` elements of a column, for the columns of a lane.
template <typename Square, int columns>
struct ColumnSums {
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
          std::make_signed_t<Square>{difference} * static_cast<std::int32_t>(entering[i] + leaving[i]);
    }
  }
};

/// Prefix sums in shared memory: over the columns to the left of each column of a strip, and of the one after
/// the last. A lane stores `columns` neighbours and loads every 32nd column. A gap after every 32 banks, or
/// after the columns of a lane, avoids bank conflicts.
template <typename Square, int columns>
struct PrefixSums {
  struct alignas(2 * sizeof(Square)) Sum {
    std::uint32_t sum;
    Square squares;
  };
  static constexpr int gap_every = std::max<int>(columns, 128 / sizeof(Sum));
  static constexpr int step = warp_size + warp_size / gap_every;  ///< distance of every 32nd column
  /// Lanes read beyond the strip, as far as the reference is wide.
  static constexpr int widest = columns == most_columns ? warp_size * columns : 5 * warp_size;
  static constexpr int places = (warp_size * columns + widest) / gap_every * (gap_every + 1) + 1;
  Sum* sums;

  __device__ Sum* at(int column) const { return sums + column + column / gap_every; }
  /// Stores the prefix sums. The whole warp must call it.
  __device__ void store(const ColumnSums<Square, columns>& column_sums) const {
    const int lane = threadIdx.x % warp_size;
    Sum total{0, 0};
#pragma unroll
    for (int i = 0; i < columns; ++i)
      total.sum += column_sums.sums[i], total.squares += column_sums.squares[i];
    Sum before = total;
#pragma unroll
    for (int distance = 1; distance < warp_size; distance *= 2) {
      const Sum left{__shfl_up_sync(all_lanes, before.sum, distance),
                     __shfl_up_sync(all_lanes, before.squares, distance)};
      if (lane >= distance) before.sum += left.sum, before.squares += left.squares;
    }
    if (lane == warp_size - 1) *at(warp_size * columns) = before;
    before.sum -= total.sum, before.squares -= total.squares;
    Sum* const lane_prefix = at(columns * lane);
#pragma unroll
    for (int i = 0; i < columns; ++i) {
      lane_prefix[i] = before;
      before.sum += column_sums.sums[i], before.squares += column_sums.squares[i];
    }
  }
};

__device__ inline int sum_of_lanes_up_to(int value) {
#pragma unroll
  for (int distance = 1; distance < warp_size; distance *= 2) {
    const int left = __shfl_up_sync(all_lanes, value, distance);
    if (static_cast<int>(threadIdx.x) % warp_size >= distance) value += left;
  }
  return value;
}

/// 1 / sqrt(value) of an exact integer; NaN for zero.
__device__ inline float root_or_nan(std::int64_t value) {
  const float root = inverse_root(static_cast<float>(value));
  return __fmaf_rn(root, 0.0F, root);
}

/// Statistics of one position, from the sums over n elements.
template <Criterion criterion>
__device__ WindowStatistics statistics(std::uint32_t n, std::uint32_t sum, std::uint64_t squares) {
  if (criterion == Criterion::ssd)
    return {static_cast<std::uint32_t>(squares), static_cast<std::uint32_t>(squares >> 32)};
  const std::uint64_t variation =
      criterion == Criterion::zncc ? n * squares - std::uint64_t{sum} * sum : squares;
  return {sum, __float_as_uint(root_or_nan(static_cast<std::int64_t>(variation)))};
}
/// Statistics for zncc, from squares modulo 2^32. The sum of squares of the elements less `middle` is below
/// 2^32. The exception, all elements zero, gives a negative variation, and so NaN.
__device__ inline WindowStatistics statistics_about(std::uint32_t middle, std::uint32_t n, std::uint32_t sum,
                                                    std::uint32_t squares) {
  const auto rest = static_cast<std::int32_t>(sum - n * middle);
  const std::uint32_t about_middle = squares - middle * (2 * sum - n * middle);
  const std::int64_t variation = std::int64_t{n} * about_middle - std::int64_t{rest} * rest;
  return {sum, __float_as_uint(root_or_nan(variation))};
}

/// Patch whose statistics are computed, of a window or an image: element (0, 0) is the first under the
/// reference at the first position.
template <typename T>
__device__ PatchView<T> load_source(const JobView& view, const StatisticsTable& table, std::int64_t index) {
  if (!table.covers_images) {
    PatchView<T> window = load_patch<T>(view.search, table.first_matrix + index);
    window.origin = window.row(view.dy_min) + view.dx_min;
    window.x0 -= view.dx_min, window.x1 -= view.dx_min;
    window.y0 -= view.dy_min, window.y1 -= view.dy_min;
    return window;
  }
  const DeviceImage image = view.search.images[index];
  return {static_cast<const T*>(image.data), image.row_bytes, 0, image.width, 0, image.height};
}

/// A lane's columns of a row, as loaded: words, and the bit at which the first column begins.
template <typename T, int columns>
struct RawRow {
  static constexpr int words = (columns * static_cast<int>(sizeof(T)) + 3) / 4;
  std::uint32_t word[words + 1];
  unsigned offset;  ///< modulo 32

  __device__ void unpack(std::uint32_t (&elements)[columns]) const {
    constexpr int size = sizeof(T), per_word = 4 / size < columns ? 4 / size : columns;
#pragma unroll
    for (int i = 0; i < words; ++i) {
      const std::uint32_t lane_word = __funnelshift_r(word[i], word[i + 1], offset);
#pragma unroll
      for (int j = 0; j < per_word; ++j)
        elements[per_word * i + j] = __byte_perm(lane_word, 0, size == 1 ? 0x4440 + j : 0x4410 + 0x22 * j);
    }
  }
};
/// Loads a lane's columns of a patch. Columns that do not exist get any value: no defined shift covers them.
template <typename T, int columns>
class LaneColumns {
 public:
  using Raw = RawRow<T, columns>;

  __device__ LaneColumns(const PatchView<T>& matrix, int row, int first)
      : at_(reinterpret_cast<const char*>(matrix.row(row) + first)), row_bytes_(matrix.row_bytes) {
    constexpr int size = sizeof(T);
#pragma unroll
    for (int i = 0; i <= Raw::words; ++i)
      byte_[i] = min(max(4 * i, size * (matrix.x0 - first)), size * (matrix.x1 - first) - 1);
  }

  /// Loads a row, and moves on to the next one.
  __device__ void load(Raw& raw) {
    raw.offset = 8 * static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(at_));
#pragma unroll
    for (int i = 0; i <= Raw::words; ++i)
      raw.word[i] = i < Raw::words || raw.offset % 32 != 0 ? __ldg(word_of(at_ + byte_[i])) : 0;
    at_ += row_bytes_;
  }

 private:
  __device__ static const std::uint32_t* word_of(const char* byte) {
    return reinterpret_cast<const std::uint32_t*>(reinterpret_cast<std::uintptr_t>(byte) &
                                                  ~std::uintptr_t{3});
  }

  const char* at_;
  std::ptrdiff_t row_bytes_;
  int byte_[Raw::words + 1];  ///< for each word, a byte that exists, if the word has one
};

/// Stores the statistics of a row of a strip of `end` columns; a lane has every 32nd column.
template <Criterion criterion, typename Elements, int columns>
__device__ void store_statistics(const PrefixSums<typename Elements::Square, columns>& prefix, int width,
                                 std::uint32_t n, std::uint32_t middle, int end, WindowStatistics* out,
                                 int strip_step) {
  static_assert(statistics_strip == warp_size);
  const int lane = threadIdx.x % warp_size;
  const auto* const left = prefix.at(lane);
  const auto* const right = prefix.at(lane + width);
  WindowStatistics column_statistics[columns];
  const auto find = [&](int i) {
    const auto a = left[i * prefix.step], b = right[i * prefix.step];
    if constexpr (Elements::about_middle)
      column_statistics[i] = statistics_about(middle, n, b.sum - a.sum, b.squares - a.squares);
    else
      column_statistics[i] = statistics<criterion>(n, b.sum - a.sum, b.squares - a.squares);
  };
#pragma unroll
  for (int i = 0; i < columns - 1; ++i) find(i);
  if (end > warp_size * (columns - 1)) find(columns - 1);
#pragma unroll
  for (int i = 0; i < columns; ++i)
    // Stores are evict-first: no line is read before the table is complete.
    if (i * warp_size < end - lane)
      __stcs(reinterpret_cast<uint2*>(out + std::int64_t{i} * strip_step),
             uint2{column_statistics[i].low, column_statistics[i].high});
}

constexpr int bands = 256;
constexpr int sorters = 32;  ///< blocks that sort pairs, while the others compute statistics

/// The band of rows in which the window of a pair begins; images follow each other.
__device__ int band_of(const JobView& view, std::int64_t pair) {
  const ImageExtent& extent = view.search.extent;
  const PatchPosition at = view.search.positions[view.first_pair + pair];
  const int rows = static_cast<int>((std::int64_t{extent.count} * extent.height + bands - 1) / bands);
  return min(max((at.image * extent.height + at.y) / rows, 0), bands - 1);
}

/// Calls body(pair, band) for every `sorters`-th pair.
template <typename Body>
__device__ void visit_pairs(const JobView& view, int sorter, Body&& body) {
  constexpr int at_once = 8;  // loads in flight
  const std::int64_t step = std::int64_t{sorters} * blockDim.x;
  for (std::int64_t first = sorter + sorters * threadIdx.x; first < view.pairs; first += at_once * step) {
    int bands[at_once];
#pragma unroll
    for (int i = 0; i < at_once; ++i) bands[i] = band_of(view, min(first + i * step, view.pairs - 1));
#pragma unroll
    for (int i = 0; i < at_once; ++i)
      if (first + i * step < view.pairs) body(first + i * step, bands[i]);
  }
}

/// Sorts every 32nd pair by bands per block, and stores them at every 32nd place, so that no block waits for
/// another. Such a sample is distributed about as all pairs are, so that neighbours in the whole order have
/// neighbouring bands. The order within a band differs from run to run; results do not depend on it.
__device__ void order_pairs(const JobView& view, int sorter, int* order) {
  __shared__ int places[bands];
  for (int band = threadIdx.x; band < bands; band += blockDim.x) places[band] = 0;
  __syncthreads();
  visit_pairs(view, sorter, [&](std::int64_t, int band) { atomicAdd(places + band, 1); });
  __syncthreads();
  if (threadIdx.x < warp_size)
    for (int band = threadIdx.x, before = 0; band < bands; band += warp_size) {
      const int count = places[band];
      const int up_to = before + sum_of_lanes_up_to(count);
      places[band] = up_to - count;
      before = __shfl_sync(all_lanes, up_to, warp_size - 1);
    }
  __syncthreads();
  visit_pairs(view, sorter, [&](std::int64_t pair, int band) {
    order[sorter + std::int64_t{sorters} * atomicAdd(places + band, 1)] = static_cast<int>(pair);
  });
}

template <typename Elements, int columns>
__global__ void __launch_bounds__(warps_of_block(columns) * warp_size)
    window_statistics(const __grid_constant__ JobView view, const __grid_constant__ StatisticsTable table,
                      const __grid_constant__ Strips strips, Criterion criterion, std::uint32_t middle) {
  using T = typename Elements::Type;
  if (blockIdx.x == 0 && threadIdx.x == 0) *table.taken = 0;
  if (const int sorter = static_cast<int>(blockIdx.x + sorters - gridDim.x); table.order && sorter >= 0)
    return order_pairs(view, sorter, table.order);
  using Prefix = PrefixSums<typename Elements::Square, columns>;
  constexpr int warps = warps_of_block(columns);
  __shared__ typename Prefix::Sum sums[warps][Prefix::places];
  const Prefix prefix{sums[threadIdx.x / warp_size]};
  const int lane = threadIdx.x % warp_size, h = view.reference.height, w = view.reference.width;
  const std::int64_t tasks = table.matrices * strips.per_matrix * strips.segments;
  for_each_task(tasks, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    const std::int64_t place = task / strips.per_matrix, index = place / strips.segments;
    const int first_column = static_cast<int>(task - place * strips.per_matrix) * strips.columns;
    const int segment = static_cast<int>(place - index * strips.segments) * strips.segment;
    const PatchView<T> source = load_source<T>(view, table, index);
    const int first_row = max(segment, source.y0);
    const int end_row = min(min(segment + strips.segment, table.rows), source.y1 - h + 1);
    const int end_column = min(strips.columns, table.columns - first_column);

    if (first_row >= end_row) return;

    using Lane = LaneColumns<T, columns>;
    Lane entering(source, first_row, first_column + lane * columns), leaving = entering;
    typename Lane::Raw raw, raw_leaving;
    std::uint32_t elements[columns], elements_leaving[columns];
    ColumnSums<typename Elements::Square, columns> column_sums;
    constexpr int at_once = columns == most_columns || sizeof(typename Elements::Square) > 4
                                ? 1
                                : 12 / (2 * sizeof(T));  // rows in flight
    for (int row = 0; row < h; row += at_once) {
      typename Lane::Raw rows[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i)
        if (row + i < h) entering.load(rows[i]);
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        if (row + i >= h) break;
        rows[i].unpack(elements);
        column_sums.add(elements);
      }
    }
    const int column = first_column + lane;
    WindowStatistics* out = table.first + index * table.matrix_step * statistics_strip +
                            std::int64_t{column / statistics_strip} * table.strip_step +
                            first_row * statistics_strip + column % statistics_strip;
    for (int row = first_row;; ++row, out += statistics_strip) {
      const bool more = row + 1 < end_row;
      if (more) entering.load(raw), leaving.load(raw_leaving);
      prefix.store(column_sums);
      __syncwarp();
      const auto store = [&]<Criterion known> {
        store_statistics<known, Elements>(prefix, w, h * w, middle, end_column, out, table.strip_step);
      };
      if constexpr (Elements::about_middle)
        store.template operator()<Criterion::zncc>();
      else
        visit_criterion(criterion, store);
      __syncwarp();
      if (!more) return;
      raw.unpack(elements), raw_leaving.unpack(elements_leaving);
      column_sums.exchange(elements, elements_leaving);
    }
  });
}

template <typename Elements, int columns>
void launch_columns(const NccJob& job, Criterion criterion, const StatisticsTable& table,
                    std::uint32_t middle, StreamHandle stream) {
  constexpr int warps = warps_of_block(columns);
  const auto kernel = window_statistics<Elements, columns>;
  const int ordering = table.order ? sorters : 0;
  const Strips strips(table, columns * warp_size, job.reference.height, job.reference.width,
                      warps * (resident_blocks(kernel, warps * warp_size, 0) - ordering));
  const std::int64_t tasks = table.matrices * strips.per_matrix * strips.segments;
  kernel<<<grid_size(tasks, warps) + ordering, warps * warp_size, 0, stream>>>(make_job_view(job), table,
                                                                               strips, criterion, middle);
}

/// Chooses the fewest columns per lane that cover the table, or that leave room for a strip in addition to a
/// wide reference.
template <typename Elements>
void launch_statistics(const NccJob& job, Criterion criterion, const StatisticsTable& table,
                       StreamHandle stream, std::uint32_t middle = 0) {
  const int w = job.reference.width, loaded = table.columns + w - 1;
  if (loaded <= 2 * warp_size)
    launch_columns<Elements, 2>(job, criterion, table, middle, stream);
  else if (loaded <= 4 * warp_size)
    launch_columns<Elements, 4>(job, criterion, table, middle, stream);
  else if (w <= 5 * warp_size)
    launch_columns<Elements, 8>(job, criterion, table, middle, stream);
  else
    launch_columns<Elements, most_columns>(job, criterion, table, middle, stream);
}

/// True if the sum of squares of the elements less the middle of their range fits into 32 bits. It may not if
/// all elements are zero: see statistics_about.
bool squares_are_small(const NccJob& job) {
  const int bits_of_square = 2 * (job.bit_depth - 1);
  return job.bit_depth > 0 && bits_of_square < 32 &&
         std::int64_t{job.reference.height} * job.reference.width <= std::int64_t{1} << (32 - bits_of_square);
}

}  // namespace

std::size_t order_bytes(const NccJob& job, const StatisticsTable& table) {
  constexpr std::size_t cache_bytes = std::size_t{24} << 20;
  constexpr std::int64_t few_pairs = 4096;
  const bool pays = table.covers_images && job.pairing != Pairing::n_to_m && table.bytes() > cache_bytes &&
                    job.pairs > few_pairs && job.pairs <= std::numeric_limits<int>::max();
  return pays ? sizeof(int) * static_cast<std::size_t>(job.pairs) : 0;
}

bool statistics_fit(const NccJob& job) { return job.reference.width <= (most_columns - 1) * warp_size; }

StatisticsTable plan_statistics(const NccJob& job, std::size_t most_bytes) {
  const std::int64_t count = job.search.count;
  const bool all = job.pairing == Pairing::n_to_m;
  const StatisticsTable window_table(false, all ? 0 : job.first_pair, all ? count : job.pairs,
                                     job.shifts.ny(), job.shifts.nx());
  const ImageExtent& extent = job.search.extent;
  const StatisticsTable image_table(true, 0, extent.count, extent.height - job.reference.height + 1,
                                    extent.width - job.reference.width + 1);
  // Narrow strips, such as those of windows, cost twice as much.
  const bool hold_references = image_table.rows > 0 && image_table.columns > 0 && extent.count > 0;
  const bool fit = all || image_table.bytes() <= most_bytes;
  return hold_references && fit && image_table.count() < 2 * window_table.count() ? image_table
                                                                                  : window_table;
}

void launch_window_statistics(const NccJob& job, Criterion criterion, const StatisticsTable& table,
                              StreamHandle stream) {
  if (job.type == ScalarType::u8)
    launch_statistics<Bytes>(job, criterion, table, stream);
  else if (criterion == Criterion::zncc && squares_are_small(job))
    launch_statistics<NarrowWords16>(job, criterion, table, stream, 1u << (job.bit_depth - 1));
  else
    launch_statistics<Words16>(job, criterion, table, stream);
  check_launch(describe("statistics of windows", job));
}

}  // namespace dic::kernels
