#include <algorithm>
#include <dic/kernels/surface.hpp>
#include <utility>

#include "stereo/every_node.cuh"

namespace dic::kernels {
namespace {

/// A step of both spreadings.
struct SpreadBoth {
  stereo::SpreadBends narrow, wide;

  __device__ void operator()(std::int64_t node) const {
    narrow(node);
    wide(node);
  }
};

/// Spreads the second derivatives of both windows, each by its own number of steps.
void spread(stereo::BendJob& job, StreamHandle stream) {
  std::int32_t *narrow_from = job.narrow_source, *narrow_to = job.other_narrow;
  std::int32_t *wide_from = job.wide_source, *wide_to = job.other_wide;
  const auto nodes = job.grid.nodes();
  for (int step = 0; step < std::max(job.narrow, job.wide); ++step) {
    const stereo::SpreadBends narrow{job.grid, job.known, narrow_from, narrow_to},
        wide{job.grid, job.usable, wide_from, wide_to};
    const bool spreads_narrow = step < job.narrow, spreads_wide = step < job.wide;
    if (spreads_narrow && spreads_wide)
      launch_at_every_node(SpreadBoth{narrow, wide}, nodes, stream);
    else
      launch_at_every_node(spreads_narrow ? narrow : wide, nodes, stream);
    if (spreads_narrow) std::swap(narrow_from, narrow_to);
    if (spreads_wide) std::swap(wide_from, wide_to);
  }
  job.narrow_source = narrow_from, job.wide_source = wide_from;
}

}  // namespace

void launch_subtract_bends(const stereo::BendJob& match, StreamHandle stream) {
  stereo::BendJob job = match;
  const auto run = [&](const auto& step) { launch_at_every_node(step, job.grid.nodes(), stream); };
  run(stereo::FindUsable{job});
  run(stereo::SumRows{job, job.narrow});
  run(stereo::FitComplete{job, true});
  run(stereo::FitPartial{job});
  if (job.match_order == 1 || job.order) {
    run(stereo::SumRows{job, job.wide});
    run(stereo::FitComplete{job, false});
    spread(job, stream);
    run(stereo::FindBias{job});
    run(stereo::SumDifferences{job});
    run(stereo::SubtractBias{job});
  }
  check_launch(describe("the correction of matches", job.grid));
}

}  // namespace dic::kernels
