#include "track/cpu/reference_side.hpp"

#include <utility>

namespace dic::track {

ReferenceSide::ReferenceSide(std::shared_ptr<const Frame> reference, Subsets at, const TrackOptions& options)
    : subsets(std::move(at)),
      refiner(options.refine, options.threads),
      frame_(std::move(reference)),
      shapes_(picture().width, picture().height, subsets.x, subsets.y, options.refine.subset / 2, roi()) {
  refiner.set_reference(picture(), subsets.x, subsets.y, roi());
}

CpuCoarseSearch& ReferenceSide::coarse() {
  if (!coarse_) coarse_.emplace(picture(), roi());
  return *coarse_;
}

}  // namespace dic::track
