#include "common/shared_memory.hpp"
#include "ncc/simt/register_tiles.cuh"
#include "ncc/variants.hpp"

namespace dic::kernels {
namespace {

/// Correlates with register tiles. adds: adds to `out` instead of overwriting it.
template <typename T, typename Sum, typename Tile>
__global__ void __launch_bounds__(most_threads, 1)
    registers(const __grid_constant__ JobView view, const __grid_constant__ Tiling tiling, std::int64_t tasks,
              bool adds, Sum* out) {
  using K = Operands<T, Sum>;
  extern __shared__ uint4 shared[];
  for_each_task(tasks, 1, 0, [&](std::int64_t task) {
    const TileBlock block(view, tiling, task);
    for (int band = 0; band < tiling.x.bands * tiling.y.bands; ++band) {
      const int band_x = band % tiling.x.bands, band_y = band / tiling.x.bands;
      __syncthreads();  // the last band's readers are done
      stage_band<T>(view, tiling, block, band_x, band_y, reinterpret_cast<typename K::Word*>(shared));
      const PartialSums<K, Tile> products(tiling, block, band_x, band_y, shared);
      products.for_each_row([&](int pair_of_block, int x, int y, const auto& sums) {
        if (y >= block.shifts_y) return;
        const std::int64_t row = (block.first + pair_of_block) * view.ny + block.tile_y * Tile::rows + y;
        Sum* const target = out + (row * view.nx + block.tile_x * Tile::columns + x);
#pragma unroll
        for (int i = 0; i < Tile::columns; ++i)
          if (x + i < block.shifts_x) target[i] = adds ? target[i] + sums[i] : Sum{sums[i]};
      });
    }
  });
}

/// True if every shift has some overlap.
bool overlaps_everywhere(const NccJob& job) {
  const Shifts full =
      Shifts::full({job.reference.width, job.reference.height}, {job.search.width, job.search.height});
  return job.shifts.dx_min >= full.dx_min && job.shifts.dx_max <= full.dx_max &&
         job.shifts.dy_min >= full.dy_min && job.shifts.dy_max <= full.dy_max;
}

template <typename T, typename Sum, typename Tile>
void launch(const NccJob& job, void* out, StreamHandle stream) {
  const Tiling tiling = make_tiling<Operands<T, Sum>, Tile>(job);
  const std::int64_t tasks = (job.pairs + tiling.pairs - 1) / tiling.pairs * tiling.blocks_of_pair();
  const bool adds = tiling.x.bands * tiling.y.bands > 1 || !overlaps_everywhere(job);
  if (adds) fill(out, 0, job.outputs() * sizeof(Sum), stream);
  const auto kernel = registers<T, Sum, Tile>;
  allow_shared_memory(kernel, tiling.shared_bytes(), describe("tiles in registers", job));
  kernel<<<grid_size(tasks, 1), tiling.threads(), tiling.shared_bytes(), stream>>>(
      make_job_view(job), tiling, tasks, adds, static_cast<Sum*>(out));
}

}  // namespace

void launch_registers(const NccJob& job, void* out, StreamHandle stream) {
  visit_types(job, [&]<typename T, typename Sum>(TypePair<T, Sum>) {
    visit_best_tile<Operands<T, Sum>>(job,
                                      [&]<typename Tile>(Tile) { launch<T, Sum, Tile>(job, out, stream); });
  });
}

}  // namespace dic::kernels
