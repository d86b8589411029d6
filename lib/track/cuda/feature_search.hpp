#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/points.hpp>
#include <span>
#include <vector>

#include "track/cuda/gpu_frame.hpp"
#include "track/feature_starts.hpp"

namespace dic::track::cuda {

/// The search for lost points by features, on the host: few frames need it. Every GPU brings its own points
/// to the host and refines its own starts; the first one does what lies between.
class FeatureSearch {
 public:
  explicit FeatureSearch(const PointNodes& points) : points_(points) {}

  /// Makes room for the points; called for the first GPU alone, before all bring theirs.
  void reserve();

  /// Brings the own points of a GPU to the host. Waits for it.
  void fetch_points(const GpuFrame& frame);
  /// Finds the lost points, when all GPUs have brought theirs. Called for the first GPU alone.
  void find_lost(const RefineOptions& options, Size image);
  /// See LostPoints::in_view.
  std::int64_t in_view() const { return lost_.in_view; }
  /// Finds starts of the lost points. Called for the first GPU alone.
  void find_starts(const RefineOptions& options, const GpuFrame& frame, Stretch stretch);
  /// All of them; and the tasks of own points.
  bool any_starts() const { return !starts_.empty(); }
  std::vector<kernels::RefineTask> tasks(const kernels::PointRange& own) const;

 private:
  const PointNodes& points_;
  std::vector<kernels::TrackedPoint> tracked_;  ///< by point, as all that follow
  std::vector<kernels::PreparedSubset> subsets_;
  LostPoints lost_;
  std::vector<FeatureStart> starts_;
  std::vector<std::byte> reference_, current_;  ///< pixels
};

}  // namespace dic::track::cuda
