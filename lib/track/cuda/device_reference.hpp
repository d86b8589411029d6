#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/points.hpp>
#include <dic/kernels/refine.hpp>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/object_pool.hpp"
#include "track/backend.hpp"
#include "track/cuda/device_coarse_search.hpp"
#include "track/cuda/image_access/image_access.hpp"
#include "track/cuda/memory/device_frame.hpp"
#include "track/cuda/point_positions.hpp"

namespace dic::track::cuda {

/// A grid's points in the memory of a GPU, in the original reference.
class DevicePoints {
 public:
  /// The analysis must outlive this object.
  DevicePoints(const PointNodes& points, const ReferenceAnalysis& analysis, const kernels::Stream& stream);

  std::int64_t size() const { return size_; }
  kernels::DeviceGrid grid() const { return grid_; }
  const Cells& cells() const { return cells_; }
  /// The points without subsets, which belong to a reference.
  kernels::GridPoints points() const;
  /// ReferenceAnalysis::alternatives in device memory; null if no texture repeats itself.
  const float* alternatives() const {
    return repeats_ ? static_cast<const float*>(alternatives_.data()) : nullptr;
  }
  const ImageView& roi_on_host() const { return roi_on_host_; }
  /// The ROI in device memory.
  const ImageView& roi() const { return roi_; }

 private:
  void upload_roi(const ImageView& roi, const kernels::Stream& stream);

  std::int64_t size_;
  kernels::DeviceGrid grid_;
  Cells cells_;
  ImageView roi_on_host_, roi_;
  kernels::DeviceBuffer inside_, point_at_, node_of_, x_, y_, alternatives_, roi_pixels_;
  bool repeats_;  ///< true if the texture repeats itself
};

/// Memory of a DeviceReference.
struct ReferenceMemory {
  PlanesMemory planes;
  kernels::DeviceBuffer roi, centres, material, subsets, matrices, efforts;
  kernels::DeviceBuffer tracked[2];  ///< TrackedPoint of this frame and of the last one, alternating
  CoarseMemory coarse;
};

/// An active reference on one GPU: its image, its prepared subsets, and the points of the last frame that was
/// compared with it.
class DeviceReference : public std::enable_shared_from_this<DeviceReference> {
 public:
  /// positions: of the points, valid for work that is queued on the stream; null if the points are their
  /// nodes.
  DeviceReference(const DevicePoints& points, std::shared_ptr<const DeviceFrame> frame,
                  const PositionsMemory* positions, const RefineOptions& options, ImageAccess& access,
                  core::ObjectPool<ReferenceMemory>::Handle memory, const kernels::Stream& stream);

  const DeviceFrame& frame() const { return image_.frame; }
  const ReferenceImage& image() const { return image_; }
  const kernels::GridPoints& points() const { return points_; }
  ReferenceSubsets subsets() const;
  /// Motion of the points; null if they are their nodes.
  const MaterialPoint* material() const { return material_; }
  /// The coarse search of this reference. The first call makes it, and waits for the stream.
  CoarseReference& coarse(core::ThreadPool& pool, const kernels::Stream& stream);

  /// Sets which points this GPU measures and knows (see kernels::GridPoints); all of them by default.
  void set_partition(const kernels::PointRange& own, const kernels::PointRange& known) {
    points_.own = own;
    points_.known = known;
  }
  /// See ActiveReference::limit_effort.
  void limit_effort(std::span<const Effort> efforts, const kernels::Stream& stream);
  /// Efforts by point; empty: everything.
  std::span<const Effort> efforts() const { return efforts_; }
  /// Takes over the last motion of the known points from the active reference before this one.
  void continue_from(const DeviceReference& before, const kernels::Stream& stream);
  /// Takes over the last motion of the own points of another reference of the same points.
  void start_from(const DeviceReference& other, const kernels::Stream& stream);
  /// Begins a new frame: tracked() then returns its memory.
  void begin_frame() { memory_of_frame_ = 1 - memory_of_frame_; }
  /// The points of the frame that is being measured, or was measured last.
  kernels::TrackedPoint* tracked() const { return tracked_in(memory_of_frame_); }
  /// The points of the frame before.
  const kernels::TrackedPoint* tracked_before() const { return tracked_in(1 - memory_of_frame_); }

 private:
  kernels::TrackedPoint* tracked_in(int index) const {
    return static_cast<kernels::TrackedPoint*>(memory_->tracked[index].data());
  }
  void take_motion(const DeviceReference& from, const kernels::PointRange& points,
                   const kernels::Stream& stream);
  void move(const DevicePoints& points, const PositionsMemory& positions, const kernels::Stream& stream);
  void prepare(const RefineOptions& options, const kernels::Stream& stream);

  std::shared_ptr<const DeviceFrame> frame_;
  ImageAccess& access_;
  core::ObjectPool<ReferenceMemory>::Handle memory_;
  std::optional<CoarseReference> coarse_;
  ImageView roi_on_host_;  ///< empty = everywhere, or the ROI has moved with the points
  ReferenceImage image_;
  kernels::GridPoints points_;
  std::vector<Effort> efforts_;
  const MaterialPoint* material_ = nullptr;
  int memory_of_frame_ = 0;
};

}  // namespace dic::track::cuda
