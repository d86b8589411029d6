#include <dic/kernels/surface.hpp>

#include "stereo/every_node.cuh"

namespace dic::kernels {
namespace {

template <int kMost>
void launch(const stereo::SurfaceJob& job, const StrainOptions& options, const MeasuredSubsets& left,
            const MeasuredSubsets& right, StreamHandle stream) {
  launch_at_every_node(stereo::SurfaceStrain<kMost>(job, options, left, right), job.grid.nodes(), stream);
}

}  // namespace

void launch_surface_strain(const stereo::SurfaceJob& job, const StrainOptions& options,
                           const MeasuredSubsets& left, const MeasuredSubsets& right, StreamHandle stream) {
  // Small windows need less of the threads' memory.
  const auto run = options.window <= 15 ? launch<15> : options.window <= 63 ? launch<63> : launch<127>;
  run(job, options, left, right, stream);
  const stereo::SurfaceFlattening flattening(job, options, left);
  launch_at_every_node(flattening, job.grid.nodes(), stream);
  launch_at_every_node(stereo::FlattenedSigmas{job, flattening.flattening}, job.grid.nodes(), stream);
  check_launch(describe("the strain of a surface", job.grid));
}

}  // namespace dic::kernels
