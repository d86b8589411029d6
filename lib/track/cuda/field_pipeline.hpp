#pragma once

#include <array>
#include <cstdint>
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
/// the points (statuses, noise, outliers, strain) and copies the field to the host, on streams and by threads
/// of its own, while the next frame is searched. Parts of two frames are measured at the same time, because
/// each waits for its slowest points; fields are made in the order of the frames.
class FieldPipeline {
 public:
  /// memory: for images. device: the current device. points: its copy of the grid.
  FieldPipeline(const TrackOptions& options, const ImageMemory& memory, std::shared_ptr<const Grid> grid,
                int device, const DevicePoints& points, core::ThreadPool& pool);
  ~FieldPipeline();
  FieldPipeline(const FieldPipeline&) = delete;
  FieldPipeline& operator=(const FieldPipeline&) = delete;

  /// Memory of a coming field.
  std::shared_ptr<DeviceField> new_field();
  /// Queues a field of `frame`. The future is ready when all is queued.
  std::future<void> submit(std::vector<MeasuredPart> parts, std::shared_ptr<const DeviceFrame> frame,
                           const ImageNoises& noises, std::shared_ptr<DeviceField> field);
  /// Makes `stream` wait until the points of the frame submitted last may be overwritten.
  void wait_until_gathered(const kernels::Stream& stream) const { stream.wait(gathered_); }
  /// Makes `stream` wait for all fields and positions that were queued.
  void wait_until_made(const kernels::Stream& stream) const {
    for (const Lane& lane : lanes_) stream.wait(lane.made);
  }
  /// Queues finding where the points lie in an image, behind all fields that were submitted.
  const PositionsMemory& locate(const DevicePositions& positions);

 private:
  /// What the fields of every other frame are made with.
  struct Lane {
    SplitSubsets split;
    kernels::Stream stream{
        kernels::Priority::high};  // high, so that launches of the next search do not delay a field
    kernels::Event gathered;       ///< all points of the frame are gathered
    kernels::Event made;
    kernels::DeviceBuffer workspace;
    core::Worker worker;  ///< the last member, so that it ends first

    Lane(const TrackOptions& options, const ImageMemory& memory) : split(options, memory) {}
  };

  /// The lane of frame `number`. Bands of images leave no memory for two frames.
  Lane& lane_of(std::int64_t number) { return lanes_[in_bands_ ? 0 : number & 1]; }
  void upload(const LocatedPoints& points, int* centres, MaterialPoint* material,
              const kernels::Stream& stream) const;
  void gather(const std::vector<MeasuredPart>& parts, const DeviceField& field, kernels::Event& gathered);
  void measure_parts(Lane& lane, const DeviceReference& reference, const DeviceFrame& frame,
                     const DeviceField& field);
  void make(Lane& lane, const DeviceReference& reference, const ImageNoises& noises,
            const DeviceField& field);
  void fill(Lane& lane, const DeviceReference& reference, const ImageNoises& noises,
            const DeviceField& field);
  void find_outliers_and_strain(Lane& lane, const DeviceField& field);

  const TrackOptions options_;
  const std::shared_ptr<const Grid> grid_;
  const int device_;
  const DevicePoints& points_;
  core::ThreadPool& pool_;
  const bool in_bands_;
  kernels::Stream gathering_{kernels::Priority::high};
  kernels::Event gathered_;        ///< all points of the frame submitted last are gathered
  std::int64_t submitted_ = 0;     ///< number of frames
  std::shared_future<void> last_;  ///< ready when all work of the frame submitted last is queued
  PositionsMemory positions_;
  core::ObjectPool<FieldMemory> memory_;
  FieldBlocks blocks_;
  std::future<void> first_memory_;  ///< ready when the pools have memory of a field
  std::array<Lane, 2> lanes_;       ///< the last member, because their work uses the others
};

}  // namespace dic::track::cuda
