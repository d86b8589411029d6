#pragma once

#include <dic/kernels/workspace.hpp>

#include "ncc/job_view.cuh"

/// Statistics of the window under the reference that scores need, computed before the products: exact sums
/// over the reference's size, at every position of an image, or at every shift of every window. A score then
/// takes one load, a covariance and a multiplication.
namespace dic::kernels {

/// Statistics at one position, by criterion: zncc has `sum` and the inverse root of n * squares - sum * sum,
/// ncc the inverse root of the squares, ssd the squares. Without contrast (energy) a root is NaN.
struct alignas(8) WindowStatistics {
  std::uint32_t low, high;

  __device__ std::uint32_t sum() const { return low; }
  __device__ float inverse_root() const { return __uint_as_float(high); }
  __device__ std::uint64_t squares() const { return std::uint64_t{high} << 32 | low; }
};

__device__ inline WindowStatistics load_statistics(const WindowStatistics* at) {
  const uint2 words = __ldg(reinterpret_cast<const uint2*>(at));
  return {words.x, words.y};
}

/// Columns of a strip of statistics. A strip is stored row by row, so that the distance of the rows of a
/// column is a constant.
constexpr int statistics_strip = warp_size;

/// The statistics of the shifts of one window.
struct alignas(16) ShiftStatistics {
  const WindowStatistics* row;  ///< row of the first shift, in its strip
  int first_column;             ///< column of the first shift, in its strip
  int strip_step;               ///< distance from a strip to the next one

  /// Statistics of a column of shifts, beginning with the first row; rows are `statistics_strip` apart.
  __device__ const WindowStatistics* column(int x) const {
    const unsigned column = first_column + x;
    return row + (column / statistics_strip * strip_step + column % statistics_strip);
  }
};

/// Statistics in device memory, strip by strip: of whole images, for all windows together, or of the shifts
/// of every window.
struct StatisticsTable {
  WindowStatistics* first = nullptr;
  bool covers_images = false;
  std::int64_t first_matrix = 0;  ///< windows before it have no statistics
  std::int64_t matrices = 0;
  int rows = 0, columns = 0;  ///< size of one matrix
  int strip_step = 0;
  int matrix_step = 0;  ///< distance from a matrix to the next one, in rows of strips
  /// Pairs sorted by the rows of their windows, so that neighbours use the same part of the cache; null: not
  /// sorted.
  int* order = nullptr;
  /// Counter from which blocks take tasks; zero once the statistics are complete.
  unsigned* taken = nullptr;

  StatisticsTable() = default;
  StatisticsTable(bool images, std::int64_t from_matrix, std::int64_t count, int matrix_rows,
                  int matrix_columns)
      : covers_images(images),
        first_matrix(from_matrix),
        matrices(count),
        rows(matrix_rows),
        columns(matrix_columns),
        strip_step(matrix_rows * statistics_strip),
        matrix_step((matrix_columns + statistics_strip - 1) / statistics_strip * matrix_rows) {}

  std::int64_t count() const { return matrices * rows * columns; }
  std::size_t bytes() const {
    return sizeof(WindowStatistics) * static_cast<std::size_t>(matrices * matrix_step * statistics_strip);
  }
  __device__ std::int64_t ordered(std::int64_t pair) const { return order ? order[pair] : pair; }
  /// Statistics of the shifts in window `index`, beginning at (y, x) of the job's rectangle of shifts.
  __device__ ShiftStatistics shift_statistics(const JobView& view, std::int64_t index, int y, int x) const {
    int matrix = static_cast<int>(index - first_matrix);
    if (covers_images) {
      const PatchPosition window = view.search.positions[index];
      matrix = window.image;
      y += window.y + view.dy_min, x += window.x + view.dx_min;
    }
    const int strip = x >> 5;  // an arithmetic shift: windows may begin left of their image
    static_assert(statistics_strip == 1 << 5);
    return {first + (std::int64_t{matrix} * matrix_step + y) * statistics_strip +
                std::int64_t{strip} * strip_step,
            x - strip * statistics_strip, strip_step};
  }
};

/// False if the reference is too wide for statistics.
bool statistics_fit(const NccJob& job);
/// The cheaper table for a job; `first` is null. A table of windows may be computed in parts.
StatisticsTable plan_statistics(const NccJob& job, std::size_t most_bytes);
/// Bytes of the table's order of the job's pairs; 0 if sorting does not pay. Sorting pays if the table is
/// larger than the cache and windows may lie anywhere.
std::size_t order_bytes(const NccJob& job, const StatisticsTable& table);
/// Queues the statistics of u8 or u16, and the order if the table has memory for it.
void launch_window_statistics(const NccJob& job, Criterion criterion, const StatisticsTable& table,
                              StreamHandle stream);

/// Scratch memory of a launch in addition to the statistics, in bytes.
struct Scratch {
  std::size_t per_launch = 0, per_pair = 0;

  std::size_t bytes(std::int64_t pairs) const {
    return per_launch + per_pair * static_cast<std::size_t>(pairs);
  }
};

/// Divides the job into parts whose statistics and scratch memory fit into the workspace, queues the
/// statistics of each, and calls launch(part, pairs_before, table, scratch). pairs_before: number of the
/// job's pairs before the part.
template <typename Launch>
void with_statistics(const NccJob& job, Criterion criterion, const Scratch& scratch, Workspace& workspace,
                     StreamHandle stream, Launch&& launch) {
  NccJob part = job;
  std::size_t per_pair = scratch.per_pair;
  if (!plan_statistics(job, workspace.most_bytes()).covers_images && job.pairing != Pairing::n_to_m)
    per_pair += StatisticsTable(false, 0, 1, job.shifts.ny(), job.shifts.nx()).bytes();
  if (per_pair > 0) part.pairs = std::clamp<std::int64_t>(workspace.most_bytes() / per_pair, 1, job.pairs);
  for (std::int64_t pairs_before = 0; pairs_before < job.pairs; pairs_before += part.pairs) {
    part.first_pair = job.first_pair + pairs_before;
    part.pairs = std::min(part.pairs, job.pairs - pairs_before);
    StatisticsTable table = plan_statistics(part, workspace.most_bytes());
    constexpr std::size_t counter_bytes = 16;
    const std::size_t before_order = table.bytes() + counter_bytes + scratch.bytes(part.pairs);
    const std::size_t ordering_bytes = order_bytes(part, table);
    auto* const memory = static_cast<std::byte*>(workspace.memory().reserve(before_order + ordering_bytes));
    table.first = reinterpret_cast<WindowStatistics*>(memory);
    table.taken = reinterpret_cast<unsigned*>(memory + table.bytes());
    if (ordering_bytes > 0) table.order = reinterpret_cast<int*>(memory + before_order);
    launch_window_statistics(part, criterion, table, stream);
    launch(part, pairs_before, table, memory + table.bytes() + counter_bytes);
  }
}

}  // namespace dic::kernels
