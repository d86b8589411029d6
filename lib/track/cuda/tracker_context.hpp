#pragma once

#include <dic/kernels/device.hpp>
#include <optional>
#include <vector>

#include "track/cuda/device_coarse_search.hpp"
#include "track/cuda/feature_search.hpp"
#include "track/cuda/field_pipeline.hpp"
#include "track/cuda/image_access/image_memory.hpp"
#include "track/cuda/multi_gpu/gpu_group.hpp"

namespace dic::track::cuda {

/// The coarse-to-fine search of a frame, which the first GPU does and all GPUs read.
class SharedCoarseSearch {
 public:
  /// largest_motion: see ReferenceAnalysis.
  SharedCoarseSearch(SubsetSearch& search, std::optional<int> largest_motion, core::ThreadPool& pool)
      : search_(search), largest_motion_(largest_motion), pool_(pool) {}

  /// Searches a frame. Called only for the first GPU.
  void run(DeviceReference& reference, const PyramidSource& current, const kernels::Stream& stream);
  /// The field of the last run; zero everywhere if nothing was recognized.
  const CoarseField& field() const { return field_; }
  /// Names of the variants that ran.
  const std::set<std::string>& kernels() const { return search_.kernels(); }

 private:
  DeviceCoarseSearch search_;
  const std::optional<int> largest_motion_;
  core::ThreadPool& pool_;
  CoarseField field_;
};

/// Devices, options and memory that all references of one backend share. Every GPU searches and refines its
/// own points; the first one makes the field of all points.
class TrackerContext {
 public:
  /// image: any image of the sequence's size and type. The first device is the current one. Throws
  /// DeviceError.
  TrackerContext(const TrackOptions& options, const ImageView& image, const MeasuredScene& scene,
                 const std::vector<kernels::Device>& devices, core::ThreadPool& pool);

  const TrackOptions& options() const { return options_; }
  const PointNodes& points() const { return points_; }
  const ImageMemory& image_memory() const { return memory_; }
  GpuGroup& gpus() { return gpus_; }
  const GpuGroup& gpus() const { return gpus_; }
  FieldPipeline& fields() { return fields_; }
  SharedCoarseSearch& coarse() { return coarse_; }
  FeatureSearch& features() { return features_; }
  /// Number of frames measured, which is the number of the frame under way.
  std::int64_t frames_measured() const { return frames_measured_; }
  void count_frame() { ++frames_measured_; }

 private:
  const TrackOptions options_;
  const PointNodes& points_;
  const ImageMemory memory_;
  GpuGroup gpus_;
  SharedCoarseSearch coarse_;
  FeatureSearch features_;
  std::int64_t frames_measured_ = 0;
  FieldPipeline fields_;  ///< the last member, because its work uses the others
};

}  // namespace dic::track::cuda
