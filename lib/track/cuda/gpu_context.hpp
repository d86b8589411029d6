#pragma once

#include <array>
#include <dic/kernels/device.hpp>
#include <memory>
#include <set>
#include <string>

#include "track/cuda/device_reference.hpp"
#include "track/cuda/image_access/image_access.hpp"
#include "track/cuda/multi_gpu/halo_events.hpp"
#include "track/cuda/point_lists.hpp"
#include "track/cuda/refinement_workspace.hpp"
#include "track/cuda/saturated_subsets.hpp"
#include "track/cuda/search_workspace.hpp"

namespace dic::track::cuda {

/// A GPU with its stream, its copy of the grid, and the working memory of its steps. Used by one thread at a
/// time.
class GpuContext {
 public:
  GpuContext(int rank, const kernels::Device& device, const TrackOptions& options, const ImageMemory& memory,
             const MeasuredScene& scene);

  int rank() const { return rank_; }  ///< number among the GPUs of a backend: 0, 1, ...
  const kernels::Device& device() const { return device_; }
  /// The stream of search and refinement.
  const kernels::Stream& stream() const { return stream_; }
  DevicePoints& points() { return points_; }
  ImageAccess& images() { return *images_; }
  FrameUpload& upload() { return upload_; }
  PointLists& lists() { return lists_; }
  SearchWorkspace& search() { return search_; }
  RefinementWorkspace& refinement() { return refinement_; }
  SaturatedSubsets& saturated() { return saturated_; }
  HaloEvents& halo() { return halo_; }
  /// Measures the time of this GPU for its part of a frame, from the start of the search until it first waits
  /// for another GPU. Two frames may be under way.
  kernels::Stopwatch& part_time(std::int64_t frame) { return part_time_[frame % 2]; }

  std::shared_ptr<DeviceReference> make_reference(std::shared_ptr<const DeviceFrame> frame,
                                                  const PositionsMemory* positions,
                                                  const RefineOptions& options);

  void add_variant(const std::string& name) { variants_.insert(name); }
  /// Correlation variants that ran.
  const std::set<std::string>& variants() const { return variants_; }

 private:
  const int rank_;
  const kernels::Device device_;
  kernels::Stream stream_;
  DevicePoints points_;
  std::unique_ptr<ImageAccess> images_;
  PointLists lists_;
  SearchWorkspace search_;
  RefinementWorkspace refinement_;
  SaturatedSubsets saturated_;
  HaloEvents halo_;
  FrameUpload upload_;
  std::array<kernels::Stopwatch, 2> part_time_;
  core::ObjectPool<ReferenceMemory> reference_memory_;
  std::set<std::string> variants_;
};

}  // namespace dic::track::cuda
