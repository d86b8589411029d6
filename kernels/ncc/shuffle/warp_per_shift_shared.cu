#include "ncc/pair_groups.cuh"
#include "ncc/shuffle/variants.hpp"

// A block goes down a group of columns, and copies rows of the reference and of its windows to shared memory.
// Its warps sum the overlaps of vertically neighbouring shifts, which need nearly the same rows: rows of the
// reference stay in a ring buffer until the last warp has used them.
namespace dic::kernels {
namespace {

constexpr int warps = 8;
constexpr int group_columns = 64;
constexpr int staged_rows = 24;  ///< rows of every window
constexpr int ring_rows = 32;    ///< rows of the reference: a power of two
static_assert(ring_rows >= staged_rows + warps - 1);

/// Division of the rows to be copied among the warps.
enum class Loading {
  strided,    ///< warp w takes the rows w, w + 8, ..
  continuous  ///< every warp takes a range of rows
};

struct Shared {
  static constexpr Loading loading = Loading::strided;
  static constexpr int windows = 1;              ///< windows that a block correlates with a reference
  static constexpr bool splits_columns = false;  ///< true: a block has one group of columns; false: all
                                                 ///< groups
};
struct SharedContinuous : Shared {
  static constexpr Loading loading = Loading::continuous;
};
struct SharedMultimatRight : Shared {
  static constexpr int windows = 4;
};
struct SharedColumns : Shared {
  static constexpr bool splits_columns = true;
};

template <typename T, int windows>
struct Staged {
  T reference[ring_rows][group_columns];
  T window[windows][staged_rows][group_columns];
  PatchView<T> whole_reference, whole_window[windows];
};

/// Copies rows [first, last) of a matrix, `columns` columns beginning with x0, to row(y) of shared memory;
/// elements outside the matrix are zeros.
template <Loading loading, typename T, typename RowOf>
__device__ void stage(const PatchView<T>& matrix, int first, int last, int x0, int columns,
                      const RowOf& row) {
  constexpr bool strided = loading == Loading::strided;
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int rows_of_warp = (last - first + warps - 1) / warps;
  const int begin = first + (strided ? warp : warp * rows_of_warp);
  const int end = strided ? last : min(begin + rows_of_warp, last);
  for (int y = begin; y < end; y += strided ? warps : 1) {
    const bool exists = y >= matrix.y0 && y < matrix.y1;
    for (int x = lane; x < columns; x += warp_size)
      row(y)[x] = exists ? matrix.at_or_zero(matrix.row(y), x0 + x) : T{0};
  }
}

/// The work of a block: columns [x_begin, x_end) of windows, with the reference displaced by dx and, for warp
/// w, by dy + w.
struct Strip {
  int dx, dy, x_begin, x_end;
};

/// Adds the products of the strip to the warp's sums; each lane has a part of them.
template <typename Variant, typename T, typename Sum>
__device__ void sum_strip(const JobView& view, const Strip& strip, Staged<T, Variant::windows>& staged,
                          Sum (&sums)[Variant::windows]) {
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int dy = strip.dy + warp, last_dy = strip.dy + warps - 1, height = view.reference.height;
  const int y_begin = max(0, strip.dy), y_end = min(view.search.height, height + last_dy);
  for (int x0 = strip.x_begin; x0 < strip.x_end; x0 += group_columns) {
    const int columns = min(group_columns, strip.x_end - x0);
    int needed = max(0, y_begin - last_dy);  // first row of the reference that is not in the ring
    for (int y0 = y_begin; y0 < y_end; y0 += staged_rows) {
      const int y1 = min(y0 + staged_rows, y_end), known = min(y1 - strip.dy, height);
      stage<Variant::loading>(staged.whole_reference, needed, known, x0 - strip.dx, columns,
                              [&](int y) { return staged.reference[y % ring_rows]; });
      needed = known;
#pragma unroll
      for (int k = 0; k < Variant::windows; ++k)
        stage<Variant::loading>(staged.whole_window[k], y0, y1, x0, columns,
                                [&](int y) { return staged.window[k][y - y0]; });
      __syncthreads();
      for (int y = max(y0, dy); y < min(y1, height + dy); ++y) {
        const T* reference_row = staged.reference[(y - dy) % ring_rows];
        for (int x = lane; x < columns; x += warp_size) {
          const T element = reference_row[x];
#pragma unroll
          for (int k = 0; k < Variant::windows; ++k)
            multiply_add(sums[k], element, staged.window[k][y - y0][x]);
        }
      }
      __syncthreads();  // the next rows overwrite these
    }
  }
}

template <typename Variant, typename T, typename Sum>
__global__ void __launch_bounds__(warps* warp_size, 4)
    warp_per_shift_shared(const __grid_constant__ JobView view, const __grid_constant__ PairGroups groups,
                          std::int64_t tasks, int column_groups, Sum* out) {
  __shared__ Staged<T, Variant::windows> staged;
  const int warp = threadIdx.x / warp_size, lane = threadIdx.x % warp_size;
  const int shift_groups = (view.ny + warps - 1) / warps;
  for_each_task(tasks, 1, 0, [&](std::int64_t task) {
    // Neighbouring blocks have neighbouring shifts, and therefore nearly the same elements.
    const auto column_group = static_cast<int>(task % column_groups);
    const auto column = static_cast<int>(task / column_groups % view.nx);
    const auto first_row = static_cast<int>(task / column_groups / view.nx % shift_groups) * warps;
    const PairGroup group = groups.group(task / column_groups / view.nx / shift_groups);
    Strip strip{view.dx_min + column, view.dy_min + first_row, 0, 0};
    strip.x_begin = max(0, strip.dx) + column_group * group_columns;
    strip.x_end = min(view.search.width, view.reference.width + strip.dx);
    if constexpr (Variant::splits_columns) strip.x_end = min(strip.x_end, strip.x_begin + group_columns);

    __syncthreads();  // the matrices of the previous task are no longer read
    if (threadIdx.x == 0) staged.whole_reference = groups.reference<T>(view, group, 0);
    if (threadIdx.x < Variant::windows)
      staged.whole_window[threadIdx.x] = groups.window<T>(view, group, threadIdx.x);
    __syncthreads();
    Sum sums[Variant::windows] = {};
    sum_strip<Variant>(view, strip, staged, sums);
#pragma unroll
    for (int k = 0; k < Variant::windows; ++k) {
      const Sum sum = warp_sum(sums[k]);
      if (lane > 0 || first_row + warp >= view.ny || !groups.holds(view, group, 0, k)) continue;
      Sum* target = out + (groups.pair(view, group, 0, k) * view.ny + first_row + warp) * view.nx + column;
      if constexpr (Variant::splits_columns)
        atomic_add(target, sum);
      else
        *target = sum;
    }
  });
}

template <typename Variant>
void launch(const NccJob& job, void* out, StreamHandle stream) {
  const JobView view = make_job_view(job);
  const PairGroups groups(view, 1, Variant::windows);
  const int widest = std::min(view.reference.width, view.search.width);
  const int column_groups = Variant::splits_columns ? (widest + group_columns - 1) / group_columns : 1;
  const int shift_groups = (view.ny + warps - 1) / warps;
  const std::int64_t tasks = groups.count() * shift_groups * view.nx * column_groups;
  if (Variant::splits_columns) fill(out, 0, job.outputs() * size_of(job.sums), stream);
  ImageTypes::visit(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    warp_per_shift_shared<Variant, T><<<grid_size(tasks, 1), warps * warp_size, 0, stream>>>(
        view, groups, tasks, column_groups, static_cast<Sum*>(out));
  });
}

}  // namespace

void launch_warp_per_shift_shared(const NccJob& job, void* out, StreamHandle stream) {
  launch<Shared>(job, out, stream);
}
void launch_warp_per_shift_shared_continuous(const NccJob& job, void* out, StreamHandle stream) {
  launch<SharedContinuous>(job, out, stream);
}
void launch_warp_per_shift_shared_multimat_right(const NccJob& job, void* out, StreamHandle stream) {
  launch<SharedMultimatRight>(job, out, stream);
}
void launch_warp_per_shift_shared_columns(const NccJob& job, void* out, StreamHandle stream) {
  launch<SharedColumns>(job, out, stream);
}

}  // namespace dic::kernels
