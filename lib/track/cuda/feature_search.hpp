#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/points.hpp>
#include <optional>
#include <span>
#include <vector>

#include "track/cuda/gpu_frame.hpp"
#include "track/feature_starts.hpp"

namespace dic::track::cuda {

/// The search for lost points by features, on the host: few frames need it. Every GPU brings its own points
/// to the host and refines its own starts; the first GPU does the work in between.
class FeatureSearch {
 public:
  explicit FeatureSearch(const PointNodes& points) : points_(points) {}

  /// Makes room for the points. Called only for the first GPU, before all GPUs bring their points.
  void reserve();

  /// Brings the own points of a GPU to the host. Waits for it.
  void fetch_points(const GpuFrame& frame);
  /// Finds the lost points after all GPUs have brought theirs. Called only for the first GPU.
  void find_lost(const RefineOptions& options, const GpuFrame& frame);
  /// Number of lost points in view, see LostPoints::in_view.
  std::int64_t in_view() const { return lost_.in_view; }
  /// Forgets the images of the frame before. Called only for the first GPU.
  void begin_frame() { finder_.reset(); }
  /// Finds starts of the lost points. Called only for the first GPU.
  void find_starts(const RefineOptions& options, const GpuFrame& frame, Stretch stretch);
  /// True if any GPU has starts. tasks() returns those of own points.
  bool any_starts() const { return !starts_.empty(); }
  std::vector<kernels::RefineTask> tasks(const kernels::PointRange& own) const;

 private:
  const PointNodes& points_;
  std::vector<kernels::TrackedPoint> tracked_;  ///< points of all GPUs, like the following members
  std::vector<kernels::PreparedSubset> subsets_;
  LostPoints lost_;
  std::vector<FeatureStart> starts_;
  std::vector<std::byte> reference_, current_;    ///< pixels of both images
  std::optional<features::MotionFinder> finder_;  ///< of these images; made when features are first needed
};

}  // namespace dic::track::cuda
