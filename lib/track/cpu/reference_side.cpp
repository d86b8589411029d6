#include "track/cpu/reference_side.hpp"

#include <utility>

namespace dic::track {

ReferenceSide::ReferenceSide(std::shared_ptr<const Frame> reference, Subsets at, const TrackOptions& options)
    : subsets(std::move(at)),
      refiner(options.refine, "cpu", options.threads),
      frame_(std::move(reference)),
      shapes_(image().width, image().height, subsets.x, subsets.y, options.refine.subset / 2, roi()) {
  refiner.set_reference(image(), subsets.x, subsets.y, roi());
}

CpuCoarseSearch& ReferenceSide::coarse() {
  if (!coarse_) coarse_.emplace(image(), roi());
  return *coarse_;
}

}  // namespace dic::track
