#include "track/cpu/host_reference.hpp"

#include <utility>

namespace dic::track {

HostReference::HostReference(std::shared_ptr<const Frame> reference, Subsets placed,
                             const TrackOptions& options)
    : subsets(std::move(placed)),
      refiner(options.refine, "cpu", options.threads),
      frame_(std::move(reference)),
      shapes_(image().width, image().height, subsets.x, subsets.y, options.refine.subset / 2, roi()) {
  refiner.set_reference(image(), subsets.x, subsets.y, roi());
}

HostCoarseSearch& HostReference::coarse() {
  if (!coarse_) coarse_.emplace(image(), roi());
  return *coarse_;
}

}  // namespace dic::track
