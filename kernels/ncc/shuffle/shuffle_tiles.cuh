#pragma once

#include "ncc/pair_groups.cuh"
#include "ncc/shuffle/warp_shuffle.cuh"

/// Variants of the warp-shuffle family that use an element for several patches and rows: references move,
/// windows are broadcast, and a lane computes the sums of a ShuffleTile. A variant is a tile and a way to
/// divide the overlaps.
namespace dic::kernels {

constexpr int shuffle_tile_warps = 4;
/// Number of blocks for which a multiprocessor must have registers.
template <typename Sum>
constexpr int shuffle_tile_blocks = sizeof(Sum) == 8 ? 2 : 3;

/// Correlates with a tile per lane: lane l of strip t has the shift dx = dx_max - 32 t - l, and dy falls from
/// task to task, since displacing the reference by s is the same as displacing the window by -s.
template <typename T, typename Sum, typename Tile, typename Tasks>
__global__ void __launch_bounds__(shuffle_tile_warps* warp_size, shuffle_tile_blocks<Sum>)
    shuffle_tiles(const __grid_constant__ JobView view, const __grid_constant__ Tasks rows,
                  const __grid_constant__ PairGroups groups, std::int64_t tasks, int strips, Sum* out) {
  constexpr bool whole_overlaps = std::is_same_v<Tasks, OverlapTasks>;
  static_assert(whole_overlaps || (Tile::shifts == 1 && Tile::rows == 1), "a part ends at any row");
  // The descriptions of the patches are in shared memory: they would take half of the registers.
  __shared__ PatchView<T> by_warp[shuffle_tile_warps][Tile::moving + Tile::fixed];
  const int lane = threadIdx.x % warp_size, warp = warp_index();
  PatchView<T>* references = by_warp[warp];
  PatchView<T>* windows = references + Tile::moving;
  for_each_task(tasks, shuffle_tile_warps, warp, [&](std::int64_t task) {
    const auto strip = static_cast<int>(task % strips);
    const RowTask part = rows.task(task / strips % rows.count());
    if (!whole_overlaps && part.begin >= part.end) return;
    const PairGroup group = groups.group(task / strips / rows.count());
    __syncwarp();
    if (lane < Tile::moving) references[lane] = groups.reference<T>(view, group, lane);
    if (lane < Tile::fixed) windows[lane] = groups.window<T>(view, group, lane);
    __syncwarp();

    const int dx = view.dx_min + view.nx - 1 - strip * warp_size;
    const int dy = view.dy_min + view.ny - 1 - part.shift;
    TileSums<Tile, Sum> sums = {};
    shuffle_rows<Tile, T, Sum>(references, windows,
                               {.moving_width = view.reference.width,
                                .fixed_width = view.search.width,
                                .sx = -dx,
                                .sy = -dy,
                                .begin = part.begin,
                                .end = part.end},
                               lane, sums);
    const int column = dx - lane - view.dx_min, row = dy - view.dy_min;
    if (column < 0) return;
#pragma unroll
    for (int p = 0; p < Tile::moving; ++p) {
#pragma unroll
      for (int k = 0; k < Tile::fixed; ++k) {
        if (!groups.holds(view, group, p, k)) continue;
        Sum* target = out + (groups.pair(view, group, p, k) * view.ny + row) * view.nx + column;
#pragma unroll
        for (int s = 0; s < Tile::shifts; ++s) {
          if (s > row) break;
          if constexpr (whole_overlaps)
            target[-s * view.nx] = sums[p][k][s];
          else
            atomic_add(target, sums[p][k][s]);
        }
      }
    }
  });
}

/// A job divided into groups of pairs and strips of 32 columns of shifts.
template <typename Tile>
struct TiledJob {
  JobView view;
  PairGroups groups;
  int strips;

  explicit TiledJob(const NccJob& job)
      : view(make_job_view(job)),
        groups(view, Tile::moving, Tile::fixed),
        strips((view.nx + warp_size - 1) / warp_size) {}

  template <typename Types, typename Tasks>
  void launch(const NccJob& job, const Tasks& rows, void* out, StreamHandle stream) const {
    const std::int64_t tasks = groups.count() * strips * rows.count();
    if (tasks == 0) return;  // no overlap anywhere
    Types::visit(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
      shuffle_tiles<T, Sum, Tile>
          <<<grid_size(tasks, shuffle_tile_warps), shuffle_tile_warps * warp_size, 0, stream>>>(
              view, rows, groups, tasks, strips, static_cast<Sum*>(out));
    });
  }
};

/// Launches tasks that have all rows of the overlaps of their tile.
template <typename Tile, typename Types>
void launch_whole_tiles(const NccJob& job, void* out, StreamHandle stream) {
  const OverlapTasks rows(job.reference.height, job.search.height, -job.shifts.dy_max, job.shifts.ny(),
                          Tile::shifts);
  TiledJob<Tile>(job).template launch<Types>(job, rows, out, stream);
}

/// Launches tasks that have a few rows of the overlaps of their tile, and add their sums to those of the
/// others.
template <typename Tile, typename Types>
void launch_split_tiles(RowSplit split, const NccJob& job, void* out, StreamHandle stream) {
  const TiledJob<Tile> tiled(job);
  const int moving_h = job.reference.height, fixed_h = job.search.height;
  const std::int64_t overlaps = tiled.groups.count() * tiled.strips * job.shifts.ny();
  const RowTasks rows(split, rows_to_fill_gpu(overlaps, moving_h, fixed_h), moving_h, fixed_h,
                      -job.shifts.dy_max, job.shifts.ny());
  fill(out, 0, job.outputs() * size_of(job.sums), stream);
  tiled.template launch<Types>(job, rows, out, stream);
}

}  // namespace dic::kernels
