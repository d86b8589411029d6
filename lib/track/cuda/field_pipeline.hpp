#pragma once

#include <dic/kernels/device.hpp>
#include <future>
#include <memory>
#include <vector>

#include "analysis/noise.hpp"
#include "core/worker.hpp"
#include "track/cuda/device_reference.hpp"
#include "track/cuda/memory/device_field.hpp"
#include "track/cuda/point_positions.hpp"
#include "track/cuda/split_subsets.hpp"

namespace dic::track::cuda {

/// The part of a frame that one GPU has measured.
struct MeasuredPart {
  std::shared_ptr<const DeviceReference> reference;  ///< owns `tracked`
  const kernels::TrackedPoint* tracked;
  kernels::PointRange own;
  const kernels::Event* finished;
};

using analysis::ImageNoises;

/// Makes fields on the first GPU: gathers the points of all GPUs, measures parts of subsets, postprocesses
/// the points (statuses, noise, outliers, strain) and copies the field to the host, on a stream and by a
/// thread of its own, while the next frame is searched.
class FieldPipeline {
 public:
  /// memory: for images. device: the current device. points: its copy of the grid.
  FieldPipeline(const TrackOptions& options, const ImageMemory& memory, std::shared_ptr<const Grid> grid,
                int device, const DevicePoints& points, core::ThreadPool& pool);

  /// Memory of a coming field.
  std::shared_ptr<DeviceField> new_field();
  /// Queues a field of `frame`. The future is ready when all is queued.
  std::future<void> submit(std::vector<MeasuredPart> parts, std::shared_ptr<const DeviceFrame> frame,
                           const ImageNoises& noises, std::shared_ptr<DeviceField> field);
  /// Makes `stream` wait until the points of the frame submitted last may be overwritten.
  void wait_until_gathered(const kernels::Stream& stream) const;
  /// Makes `stream` wait for all fields and positions that were queued.
  void wait_until_made(const kernels::Stream& stream) const { stream.wait(made_); }
  /// Queues finding where the points lie in an image, behind all fields that were submitted.
  const PositionsMemory& locate(const DevicePositions& positions);

 private:
  void upload(const LocatedPoints& points, int* centres, MaterialPoint* material) const;
  void gather(const std::vector<MeasuredPart>& parts, const DeviceField& field);
  void measure_parts(const DeviceReference& reference, const DeviceFrame& frame, const DeviceField& field);
  void make(const DeviceReference& reference, const ImageNoises& noises, const DeviceField& field);
  void fill(const DeviceReference& reference, const ImageNoises& noises, const DeviceField& field);
  void find_outliers_and_strain(const DeviceField& field);

  const TrackOptions options_;
  const std::shared_ptr<const Grid> grid_;
  const int device_;
  const DevicePoints& points_;
  core::ThreadPool& pool_;
  SplitSubsets split_;
  kernels::Stream stream_{
      kernels::Priority::high};         // high, so that launches of the next search do not delay a field
  kernels::Event gathered_;             ///< all points of a frame are gathered
  std::shared_future<void> gathering_;  ///< ready when `gathered_` is queued
  kernels::Event made_;
  kernels::DeviceBuffer workspace_;
  PositionsMemory positions_;
  core::ObjectPool<FieldMemory> memory_;
  FieldBlocks blocks_;
  std::future<void> first_memory_;  ///< ready when the pools have memory of a field
  core::Worker worker_;             ///< the last member, so that it ends first
};

}  // namespace dic::track::cuda
