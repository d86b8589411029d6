#include "points/start_windows.cuh"

namespace dic::kernels {
namespace {

/// See track::is_excused. last.tracked: null if there was no last frame.
__device__ bool is_excused(const FramePoints& last, std::int32_t i) {
  return last.tracked && track::is_excused(last.status(i));
}

__global__ void __launch_bounds__(point_threads)
    start_from_last(const __grid_constant__ FramePoints last, PointStart* starts,
                    const __grid_constant__ PointList without, std::int32_t* counts) {
  for_each_warp_of_points(last.grid.own, [&](std::int32_t i, bool exists) {
    const bool trackable = exists && last.trackable(i);
    const std::int32_t from = trackable && last.tracked ? track::start_source(last, i) : -1;
    PointStart start;
    if (from >= 0) {
      const SplitShape shape = split(track::predicted_shape(last, from, i));
      start = {shape.u, shape.v, shape.rest, -1};
    }
    const bool is_left = trackable && last.tracked && from < 0 && !last.is_missed(i);
    if (is_left) {
      start.score = PointStart::kLeftToNeighbours;
      count_up(counts + 2);
    } else if (trackable) {
      if (from < 0) append(without, i);
      if (is_excused(last, i)) {
        count_up(counts);
        if (from < 0) count_up(counts + 1);
      }
    }
    store_together(starts, exists ? i : -1, start);
  });
}

__global__ void __launch_bounds__(point_threads)
    mark_lost(const track::MaterialPoint* material, std::int64_t count, PreparedSubset* subsets) {
  for_each_point(count, [&](std::int32_t i) {
    if (material[i].status != Status::ok) subsets[i].status = material[i].status;
  });
}

__global__ void __launch_bounds__(point_threads)
    give_up_effortless(const track::Effort* efforts, std::int64_t count, PreparedSubset* subsets) {
  for_each_point(count, [&](std::int32_t i) {
    if (efforts[i] == track::Effort::none && subsets[i].status == Status::ok)
      subsets[i].status = Status::low_correlation;
  });
}

__global__ void __launch_bounds__(point_threads)
    start_from_field(const __grid_constant__ GridPoints points, const __grid_constant__ IndexList list,
                     const __grid_constant__ track::FieldLattice lattice, const float* u, const float* v,
                     PointStart* starts) {
  for_each_point(list.count, [&](std::int32_t k) {
    const std::int32_t i = list.numbers[k];
    const SplitShape shape = split(track::start_of(track::sample(lattice, u, v, points.x[i], points.y[i])));
    starts[i] = {shape.u, shape.v, shape.rest, -1};
  });
}

__device__ bool is_cut(const PreparedSubset& s, int radius) {
  return s.weighted || s.left > -radius || s.right < radius || s.top > -radius || s.bottom < radius;
}

__global__ void __launch_bounds__(point_threads)
    split_points(const __grid_constant__ GridPoints points, const std::int32_t* list,
                 const __grid_constant__ PointRange which, int radius,
                 const __grid_constant__ PointList whole, const __grid_constant__ PointList clipped) {
  for_each_point(which, [&](std::int32_t k) {
    const std::int32_t i = list ? list[k] : k;
    const PreparedSubset& subset = points.subsets[i];
    if (subset.status != Status::ok) return;
    if (is_cut(subset, radius))
      append(clipped, i);
    else
      append(whole, i);
  });
}

__global__ void __launch_bounds__(point_threads)
    place_windows(const __grid_constant__ GridPoints points, const std::int32_t* list,
                  const PointStart* starts, const __grid_constant__ SearchWindows out) {
  for_each_point(out.count, [&](std::int32_t k) {
    const std::int32_t i = list[k];
    const PointStart& start = starts[i];
    const PatchPosition reference = out.references[k] = reference_of(points, i, out.size / 2);
    out.windows[k] =
        window_around(reference, start.u, start.shape.u[0], start.v, start.shape.v[0], out.range);
  });
}

__global__ void __launch_bounds__(point_threads)
    take_peaks(const std::int32_t* list, const __grid_constant__ SearchWindows searched, const Peak* peaks,
               bool follow, PointStart* starts, const __grid_constant__ PointList again) {
  for_each_point(searched.count, [&](std::int32_t k) {
    const std::int32_t i = list[k];
    const bool taken = take_peak(searched.references[k], searched.windows[k], peaks[k], starts[i]);
    if (taken && follow && peaks[k].at_border) append(again, i);
  });
}

__global__ void __launch_bounds__(point_threads)
    list_lost(const __grid_constant__ FramePoints last, const TrackedPoint* now, const PointStart* starts,
              float least, const __grid_constant__ PointList lost, std::int32_t* excused) {
  for_each_point(last.grid.own, [&](std::int32_t i) {
    if (!last.trackable(i) || starts[i].score >= least || !last.is_missed(i)) return;
    if (now && now[i].result.status == Status::ok) return;
    append(lost, i);
    if (is_excused(last, i)) count_up(excused);
  });
}

__global__ void __launch_bounds__(point_threads)
    keep_better(std::int64_t n, const PointStart* others, PointStart* starts) {
  for_each_point(n, [&](std::int32_t i) {
    if (others[i].score > starts[i].score && starts[i].score != PointStart::kLeftToNeighbours)
      starts[i] = others[i];
  });
}

}  // namespace

void launch_starts_from_last(const GridPoints& points, const TrackedPoint* last, PointStart* starts,
                             const PointList& without, std::int32_t* counts, StreamHandle stream) {
  clear(without.count, stream);
  fill(counts, 0, 3 * sizeof(*counts), stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  start_from_last<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, last}, starts, without,
                                                                             counts);
  check_launch(describe_points("starts from the frame before", n));
}

void launch_mark_lost(const track::MaterialPoint* material, std::int64_t count, PreparedSubset* subsets,
                      StreamHandle stream) {
  if (count == 0) return;
  mark_lost<<<grid_size(count, point_threads), point_threads, 0, stream>>>(material, count, subsets);
  check_launch(describe_points("marking lost points", count));
}

void launch_give_up_effortless(const GridPoints& points, PreparedSubset* subsets, StreamHandle stream) {
  const std::int64_t n = points.count;
  if (n == 0) return;
  give_up_effortless<<<grid_size(n, point_threads), point_threads, 0, stream>>>(points.efforts, n, subsets);
  check_launch(describe_points("giving up points without effort", n));
}

void launch_starts_from_field(const GridPoints& points, const IndexList& list,
                              const track::FieldLattice& lattice, const float* u, const float* v,
                              PointStart* starts, StreamHandle stream) {
  if (list.count == 0) return;
  start_from_field<<<grid_size(list.count, point_threads), point_threads, 0, stream>>>(points, list, lattice,
                                                                                       u, v, starts);
  check_launch(describe_points("starts from the coarse field", list.count));
}

void launch_split_subsets(const GridPoints& points, const std::int32_t* list, std::int64_t n, int radius,
                          const PointList& whole, const PointList& clipped, StreamHandle stream) {
  clear(whole.count, stream);
  clear(clipped.count, stream);
  const PointRange which = list ? PointRange{0, n} : points.own;
  if (which.count() == 0) return;
  split_points<<<grid_size(which.count(), point_threads), point_threads, 0, stream>>>(points, list, which,
                                                                                      radius, whole, clipped);
  check_launch(describe_points("whole and clipped subsets", which.count()));
}

void launch_place_windows(const GridPoints& points, const std::int32_t* list, const PointStart* starts,
                          const SearchWindows& windows, StreamHandle stream) {
  const std::int64_t n = windows.count;
  if (n == 0) return;
  place_windows<<<grid_size(n, point_threads), point_threads, 0, stream>>>(points, list, starts, windows);
  check_launch(describe_points("placing windows", n));
}

void launch_take_peaks(const std::int32_t* list, const SearchWindows& windows, const Peak* peaks, bool follow,
                       PointStart* starts, const PointList& again, StreamHandle stream) {
  clear(again.count, stream);
  const std::int64_t n = windows.count;
  if (n == 0) return;
  take_peaks<<<grid_size(n, point_threads), point_threads, 0, stream>>>(list, windows, peaks, follow, starts,
                                                                        again);
  check_launch(describe_points("taking peaks", n));
}

void launch_list_lost_starts(const GridPoints& points, const TrackedPoint* last, const TrackedPoint* now,
                             const PointStart* starts, float least, const PointList& lost,
                             std::int32_t* excused, StreamHandle stream) {
  clear(lost.count, stream);
  clear(excused, stream);
  const std::int64_t n = points.own.count();
  if (n == 0) return;
  list_lost<<<grid_size(n, point_threads), point_threads, 0, stream>>>({points, last}, now, starts, least,
                                                                       lost, excused);
  check_launch(describe_points("listing lost starts", n));
}

void launch_keep_better_starts(std::int64_t n, const PointStart* others, PointStart* starts,
                               StreamHandle stream) {
  if (n == 0) return;
  keep_better<<<grid_size(n, point_threads), point_threads, 0, stream>>>(n, others, starts);
  check_launch(describe_points("comparing starts", n));
}

}  // namespace dic::kernels
