#include <dic/kernels/surface.hpp>

#include "stereo/every_node.cuh"

namespace dic::kernels {

void launch_measure_points(const stereo::SurfaceJob& job, bool orders_differ, StreamHandle stream) {
  launch_at_every_node(stereo::MeasurePoint{job, orders_differ}, job.grid.nodes(), stream);
  check_launch(describe("the triangulation of points", job.grid));
}

void launch_store_displacements(const stereo::SurfaceJob& job, const stereo::MotionTerms& motion,
                                StreamHandle stream) {
  launch_at_every_node(stereo::StoreDisplacement{job, motion}, job.grid.nodes(), stream);
  check_launch(describe("the displacements of points", job.grid));
}

}  // namespace dic::kernels
