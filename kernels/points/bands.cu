#include <dic/kernels/bands.hpp>
#include <dic/shared/icgn.hpp>

#include "points/points.cuh"

namespace dic::kernels {
namespace {

/// Rows first .. last - 1, limited to the image; at least one row.
__device__ RowRange existing(int first, int last, int height) {
  const int begin = min(max(first, 0), height - 1);
  return {begin, min(max(last, begin + 1), height)};
}

__global__ void __launch_bounds__(point_threads)
    rows_of_windows(const __grid_constant__ SearchWindows windows, const __grid_constant__ RowBands bands,
                    RowNeed* needs) {
  for_each_point(windows.count, [&](std::int32_t k) {
    const int y = windows.windows[k].y;
    needs[k] = {bands.band_of(existing(windows.references[k].y, 0, bands.height).first),
                existing(y, y + windows.size + 2 * windows.range, bands.height)};
  });
}

/// Largest difference, within `radius`, of a displacement from that of the centre, px.
__device__ float spread(const float (&shape)[6], float radius) {
  const float bend = fabsf(shape[3]) + fabsf(shape[4]) + fabsf(shape[5]);
  return radius * (fabsf(shape[1]) + fabsf(shape[2]) + radius * bend);
}

__global__ void __launch_bounds__(point_threads)
    rows_of_tasks(const __grid_constant__ BandedTasks refinements, std::int64_t n, int radius) {
  const auto& [subsets, tasks, bands, current_rows, needs] = refinements;
  for_each_point(n, [&](std::int32_t k) {
    const RefineTask& task = tasks[k];
    if (task.point == no_point) {
      needs[k].band = -1;
      return;
    }
    const PreparedSubset& s = subsets[task.point];
    // A refinement that moves farther than a radius from its start is given up; the rest covers its shape.
    const float expected = 4 * static_cast<float>(radius) + spread(task.start.v, static_cast<float>(radius));
    const int reach = static_cast<int>(fminf(expected, 0.5f * static_cast<float>(current_rows) - 2)) + 1;
    const int centre = s.y + task.v + static_cast<int>(floorf(task.start.v[0]));
    needs[k] = {bands.band_of(s.y + s.top), existing(centre - reach, centre + reach + 1, bands.height)};
  });
}

__global__ void __launch_bounds__(point_threads)
    next_rows(const RowNeed* needs, std::int64_t n, unsigned long long* next) {
  unsigned long long least = ~0ull;
  for_each_point(n, [&](std::int32_t k) {
    const RowNeed& need = needs[k];
    if (need.band < 0) return;
    const auto own =
        static_cast<unsigned long long>(need.band) << 32 | static_cast<unsigned>(need.current.first);
    least = min(least, own);
  });
#pragma unroll
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    least = min(least, __shfl_xor_sync(all_lanes, least, offset));
  if (threadIdx.x % warp_size == 0) atomicMin(next, least);
}

__global__ void __launch_bounds__(point_threads)
    take_entries(RowNeed* needs, std::int64_t n, int band, const __grid_constant__ RowRange current,
                 const __grid_constant__ PointList entries) {
  for_each_point(n, [&](std::int32_t k) {
    RowNeed& need = needs[k];
    if (need.band != band || need.current.first < current.first || need.current.last > current.last) return;
    need.band = -1;
    append(entries, k);
  });
}

__global__ void __launch_bounds__(point_threads)
    gather_positions(const __grid_constant__ IndexList entries, const PatchPosition* from, int first_row,
                     PatchPosition* to) {
  for_each_point(entries.count, [&](std::int32_t k) {
    to[k] = from[entries.numbers[k]];
    to[k].y -= first_row;
  });
}

__global__ void __launch_bounds__(point_threads)
    gather_tasks(const __grid_constant__ IndexList entries, const RefineTask* from, int first_row,
                 RefineTask* to) {
  for_each_point(entries.count, [&](std::int32_t k) {
    to[k] = from[entries.numbers[k]];
    to[k].v -= first_row;
  });
}

__global__ void __launch_bounds__(point_threads)
    scatter_peaks(const __grid_constant__ IndexList entries, const Peak* from, Peak* to) {
  for_each_point(entries.count, [&](std::int32_t k) { to[entries.numbers[k]] = from[k]; });
}

struct Span {
  float low, high;
};

/// Extent of a displaced subset along an axis, from its corners and the bulge of its edges. centre: centre of
/// the subset, without the shape.
__device__ Span span_of(const PreparedSubset& s, int centre, const float (&shape)[6], bool down) {
  const Polynomial<float, 2> p{shape[0], shape[1], shape[2], shape[3], shape[4], shape[5]};
  Span span{INFINITY, -INFINITY};
  for (int corner = 0; corner < 4; ++corner) {
    const auto i = static_cast<float>(corner & 1 ? s.right : s.left),
               j = static_cast<float>(corner & 2 ? s.bottom : s.top);
    const float at = (down ? j : i) + p(i, j);
    span = {fminf(span.low, at), fmaxf(span.high, at)};
  }
  const float bulge =
      icgn::bulge(p, static_cast<float>(s.right - s.left), static_cast<float>(s.bottom - s.top));
  const auto from = static_cast<float>(centre);
  return {from + span.low - bulge, from + span.high + bulge};
}

__device__ bool within(const Span& span, int length) {
  constexpr auto border = static_cast<float>(icgn::border);
  return span.low >= -border && span.high <= static_cast<float>(length - 1) + border;
}

__global__ void __launch_bounds__(point_threads)
    scatter_results(const __grid_constant__ IndexList entries, const RefineResult* from,
                    const __grid_constant__ BandedTasks refinements,
                    const __grid_constant__ PlaneLayout layout, RefineResult* to) {
  const auto& [subsets, tasks, bands, current_rows, needs] = refinements;
  for_each_point(entries.count, [&](std::int32_t k) {
    const std::int32_t entry = entries.numbers[k];
    const RefineResult& result = to[entry] = from[k];
    if (result.status != Status::out_of_image) return;
    const RefineTask& task = tasks[entry];
    const PreparedSubset& s = subsets[task.point];
    const Span x = span_of(s, s.x + task.u, result.shape.u, false),
               y = span_of(s, s.y + task.v, result.shape.v, true);
    if (!within(x, layout.width) || !within(y, layout.height)) return;
    const RowRange needed =
        existing(static_cast<int>(floorf(y.low)), static_cast<int>(ceilf(y.high)) + 1, bands.height);
    RowRange& rows = needs[entry].current;
    const RowRange all{min(rows.first, needed.first), max(rows.last, needed.last)};
    if (all.count() > current_rows || all == rows) return;
    needs[entry] = {bands.band_of(s.y + s.top), all};
  });
}

/// Launches a kernel with a thread for each of `n` entries.
template <typename... Parameters, typename... Arguments>
void launch(const char* what, void (*kernel)(Parameters...), std::int64_t n, StreamHandle stream,
            const Arguments&... arguments) {
  if (n == 0) return;
  kernel<<<grid_size(n, point_threads), point_threads, 0, stream>>>(arguments...);
  check_launch(describe_points(what, n));
}

}  // namespace

void launch_rows_of_windows(const SearchWindows& windows, const RowBands& bands, RowNeed* needs,
                            StreamHandle stream) {
  launch("rows of windows", rows_of_windows, windows.count, stream, windows, bands, needs);
}

void launch_rows_of_tasks(const BandedTasks& refinements, std::int64_t n, int radius, StreamHandle stream) {
  launch("rows of refinements", rows_of_tasks, n, stream, refinements, n, radius);
}

void launch_next_rows(const RowNeed* needs, std::int64_t n, NextRows* next, StreamHandle stream) {
  fill(next, 0xff, sizeof(*next), stream);
  launch("the next rows", next_rows, n, stream, needs, n, reinterpret_cast<unsigned long long*>(next));
}

void launch_take_entries(RowNeed* needs, std::int64_t n, int band, const RowRange& current,
                         std::int32_t* entries, std::int32_t* count, StreamHandle stream) {
  clear(count, stream);
  launch("entries of a band", take_entries, n, stream, needs, n, band, current, PointList{entries, count});
}

void launch_gather_positions(const IndexList& entries, const PatchPosition* from, int first_row,
                             PatchPosition* to, StreamHandle stream) {
  launch("positions in a band", gather_positions, entries.count, stream, entries, from, first_row, to);
}

void launch_gather_tasks(const IndexList& entries, const RefineTask* from, int first_row, RefineTask* to,
                         StreamHandle stream) {
  launch("refinements in a band", gather_tasks, entries.count, stream, entries, from, first_row, to);
}

void launch_scatter_peaks(const IndexList& entries, const Peak* from, Peak* to, StreamHandle stream) {
  launch("peaks of a band", scatter_peaks, entries.count, stream, entries, from, to);
}

void launch_scatter_results(const IndexList& entries, const RefineResult* from,
                            const BandedTasks& refinements, const PlaneLayout& layout, RefineResult* to,
                            StreamHandle stream) {
  launch("results of a band", scatter_results, entries.count, stream, entries, from, refinements, layout, to);
}

}  // namespace dic::kernels
