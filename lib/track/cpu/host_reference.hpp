#pragma once

#include <dic/shared/departure_rules.hpp>
#include <memory>
#include <optional>
#include <vector>

#include "core/parallel.hpp"
#include "core/raw_vector.hpp"
#include "track/backend.hpp"
#include "track/cpu/host_coarse_search.hpp"
#include "track/cpu/subsets.hpp"
#include "track/integer_search.hpp"

namespace dic::track {

/// An image in the memory of the host.
class HostFrame final : public Frame {
 public:
  explicit HostFrame(ImageView pixels) : image(copy_of(pixels)) {}
  const Image image;
};

/// An active reference in the memory of the host, with all that is prepared before a frame is measured.
class HostReference {
 public:
  /// largest_motion: see ReferenceAnalysis.
  HostReference(std::shared_ptr<const Frame> reference, Subsets subsets, const TrackOptions& options,
                std::optional<int> largest_motion, core::ThreadPool& pool);

  std::int64_t size() const { return static_cast<std::int64_t>(subsets.x.size()); }
  ImageView image() const { return static_cast<const HostFrame&>(*frame_).image.view(); }
  HostCoarseSearch& coarse();
  IntegerSearch search() const { return {image(), roi(), shapes_, pool}; }
  bool trackable(std::int64_t i) const { return status(i) == Status::ok; }
  Status status(std::int64_t i) const { return statuses_[i]; }
  /// Pixels of a subset inside image and ROI.
  SubsetBox box(std::int64_t i) const {
    const SubsetShape& shape = shapes_.shape(i);
    const PatchPosition first = shapes_.position(i);
    return {first.x, first.x + shape.width - 1, first.y, first.y + shape.height - 1};
  }
  /// True if the loss of a point is a reason to search the whole image.
  bool is_missed(std::int64_t i) const { return efforts_.empty() || efforts_[i] == Effort::search; }
  /// True if parts of the subset are worth measuring.
  bool has_parts(std::int64_t i) const { return efforts_.empty() || efforts_[i] >= Effort::neighbours; }
  /// True if the search knows where motions are likely to lead.
  bool is_guided() const { return places_ != nullptr; }
  /// See ActiveReference::limit_effort.
  void limit_effort(std::span<const Effort> efforts);
  /// See ActiveReference::look_near.
  void look_near(const PossiblePlaces& places) { places_ = places; }

  core::ThreadPool& pool;  ///< threads for loops over points
  const Subsets subsets;
  Refiner refiner;
  /// Results of whole subsets in the last frame that was compared with this reference; empty at first.
  core::RawVector<RefinedPoint> last;

 private:
  ImageView roi() const { return subsets.roi.empty() ? ImageView{} : subsets.roi.view(); }

  std::shared_ptr<const Frame> frame_;
  SubsetShapes shapes_;
  std::vector<Status> statuses_;
  std::vector<Effort> efforts_;  ///< effort by point; empty: everything
  std::optional<HostCoarseSearch> coarse_;
  std::optional<int> largest_motion_;
  PossiblePlaces places_;
};

}  // namespace dic::track
