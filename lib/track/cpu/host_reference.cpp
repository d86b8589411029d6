#include "track/cpu/host_reference.hpp"

#include <utility>

namespace dic::track {

HostReference::HostReference(std::shared_ptr<const Frame> reference, Subsets placed,
                             const TrackOptions& options, std::optional<int> largest_motion,
                             core::ThreadPool& threads)
    : pool(threads),
      subsets(std::move(placed)),
      refiner(refine::open_refiner(options.refine, "cpu", threads)),
      frame_(std::move(reference)),
      shapes_(image().width, image().height, subsets.x, subsets.y, options.refine.subset / 2, roi(), pool),
      statuses_(subsets.x.size()),
      largest_motion_(largest_motion) {
  refiner.set_reference(image(), subsets.x, subsets.y, roi());
  core::for_each_index(pool, size(), [&](std::int64_t i) {
    const Status until_here = subsets.material(i).status;
    statuses_[i] = until_here != Status::ok ? until_here : refiner.reference_status(i);
  });
}

void HostReference::limit_effort(std::span<const Effort> efforts) {
  efforts_.assign(efforts.begin(), efforts.end());
  for (std::size_t i = 0; i < statuses_.size(); ++i)
    if (efforts_[i] == Effort::none && statuses_[i] == Status::ok) statuses_[i] = Status::low_correlation;
}

HostCoarseSearch& HostReference::coarse() {
  if (!coarse_) coarse_.emplace(image(), roi(), pool).limit_motion(largest_motion_);
  coarse_->look_near(places_);
  return *coarse_;
}

}  // namespace dic::track
