#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "track/backend.hpp"
#include "track/cpu/coarse.hpp"
#include "track/cpu/subsets.hpp"
#include "track/integer_search.hpp"

namespace dic::track {

/// An image in the memory of the host.
class HostFrame final : public Frame {
 public:
  explicit HostFrame(ImageView pixels) : image(copy_of(pixels)) {}
  const Image image;
};

/// What is known of an anchor before any frame is seen.
class ReferenceSide {
 public:
  ReferenceSide(std::shared_ptr<const Frame> reference, Subsets subsets, const TrackOptions& options);

  std::int64_t size() const { return static_cast<std::int64_t>(subsets.x.size()); }
  ImageView image() const { return static_cast<const HostFrame&>(*frame_).image.view(); }
  CpuCoarseSearch& coarse();
  IntegerSearch search() const { return {image(), roi(), shapes_}; }
  bool trackable(std::int64_t i) const { return status(i) == Status::ok; }
  Status status(std::int64_t i) const {
    const Status followed = subsets.material_of(i).status;
    return followed != Status::ok ? followed : refiner.reference_status(i);
  }

  const Subsets subsets;
  Refiner refiner;
  std::vector<RefinedPoint> last;  ///< results of the frame before against this anchor; empty at first

 private:
  ImageView roi() const { return subsets.roi.empty() ? ImageView{} : subsets.roi.view(); }

  std::shared_ptr<const Frame> frame_;
  SubsetShapes shapes_;
  std::optional<CpuCoarseSearch> coarse_;
};

}  // namespace dic::track
