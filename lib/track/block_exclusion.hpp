#pragma once

#include <dic/track.hpp>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/field_steps.hpp"
#include "track/repeated_blocks.hpp"

namespace dic::track {

/// Measures points again without the pixels of repeated blocks in which the material has moved. Such pixels
/// draw their subsets towards the frame before, which no residual of a single subset tells from noise.
class BlockExclusion {
 public:
  /// options: with every choice made. reference: its frame in `backend`; original: its pixels before any
  /// correction, on the host. points: in the reference. open: makes a backend for the points among the other
  /// pixels. All references must outlive this object.
  BlockExclusion(const TrackOptions& options, std::shared_ptr<const Frame> reference, ImageView original,
                 const Points& points, const ReferenceAnalysis& analysis, const TrackingBackend& backend,
                 BackendFactory open, core::ThreadPool& pool);

  /// Implements RepeatedBlocks::find.
  std::shared_ptr<const BlockFlags> find(ImageView current) { return blocks_.find(current); }
  /// Returns the step that measures points again whose subsets contain such pixels. A point is lost where too
  /// few others are left, as at the border of a ROI. Steps are taken in the order of the frames.
  FieldStep leave_out(const std::shared_ptr<const Frame>& current, const std::stop_token& stop);
  /// See ActiveReference::limit_effort.
  void limit_effort(std::span<const Effort> efforts) { efforts_.assign(efforts.begin(), efforts.end()); }

 private:
  ReferenceAnalysis analysis_without(const Image& marks) const;
  void measure_again(MeasuredFrame& frame, const Image& marks, const Frame& current,
                     const std::stop_token& stop) const;

  TrackOptions options_;
  std::shared_ptr<const Frame> reference_;
  Size size_;
  const Points& points_;
  const ReferenceAnalysis& analysis_;
  const TrackingBackend& backend_;
  BackendFactory open_;
  core::ThreadPool& pool_;
  RepeatedBlocks blocks_;
  std::vector<Effort> efforts_;  ///< by point; empty: everything
};

}  // namespace dic::track
