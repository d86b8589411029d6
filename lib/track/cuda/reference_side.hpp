#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/points.hpp>
#include <dic/kernels/refine.hpp>
#include <memory>
#include <optional>

#include "track/backend.hpp"
#include "track/cuda/coarse.hpp"
#include "track/cuda/device_frame.hpp"
#include "track/cuda/image_bands.hpp"
#include "track/cuda/places.hpp"
#include "track/cuda/pool.hpp"

namespace dic::track::cuda {

/// A grid's points in device memory, in the original reference.
class DevicePoints {
 public:
  DevicePoints(const Points& points, const kernels::Stream& stream);

  std::int64_t size() const { return size_; }
  kernels::DeviceGrid grid() const { return grid_; }
  const Cells& cells() const { return cells_; }
  /// Without subsets, which belong to a reference.
  kernels::GridPoints points() const;
  /// To be called once: the ROI, in host memory that outlives this object; empty = everywhere.
  void set_roi(const ImageView& roi, const kernels::Stream& stream);
  const ImageView& roi_on_host() const { return roi_on_host_; }
  /// Device memory.
  const ImageView& roi() const { return roi_; }

 private:
  std::int64_t size_;
  kernels::DeviceGrid grid_;
  Cells cells_;
  ImageView roi_on_host_, roi_;
  kernels::DeviceBuffer inside_, point_at_, node_of_, x_, y_, roi_pixels_;
};

/// Memory of what is known of an anchor before any frame is seen.
struct ReferenceMemory {
  kernels::DeviceBuffer pixels, rest, range, roi, centres, material, subsets, matrices;
  kernels::DeviceBuffer tracked[2];  ///< of a frame, and of the frame before
  CoarseMemory coarse;
};

/// What is known of an anchor before any frame is seen.
class ReferenceSide : public std::enable_shared_from_this<ReferenceSide> {
 public:
  /// places: of the points, when the stream has come so far; null in the original reference. bands: null
  /// where the frame is there as a whole.
  ReferenceSide(const DevicePoints& points, std::shared_ptr<const DeviceFrame> frame,
                const PlacesMemory* places, const RefineOptions& options, ImageBands* bands,
                Pool<ReferenceMemory>::Loan memory, const kernels::Stream& stream);

  const DeviceFrame& frame() const { return *frame_; }
  /// Takes over how the known points moved last from the reference before.
  void go_on_from(const ReferenceSide& before, const kernels::Stream& stream);
  /// Made when first asked for; waits for the stream.
  CoarseReference& coarse(const kernels::Stream& stream);
  ImageView roi() const { return roi_; }  ///< device memory; empty = everywhere
  const kernels::GridPoints& points() const { return points_; }
  /// Which of them are measured here, and known (see kernels::GridPoints); at first all.
  void share(const kernels::PointRange& own, const kernels::PointRange& known) {
    points_.own = own;
    points_.known = known;
  }
  /// Without planes where the frame is not there as a whole.
  const kernels::RefineReference& reference() const { return reference_; }
  BandedReference banded() const { return {*frame_, roi_, reference_}; }
  const float* matrices() const { return static_cast<const float*>(memory_->matrices.data()); }
  /// Null where the points lie as in the original reference.
  const MaterialPoint* material() const { return material_; }
  /// Of the frame that is measured, or was measured last.
  kernels::TrackedPoint* tracked() const {
    return static_cast<kernels::TrackedPoint*>(memory_->tracked[frame_of_tracked_].data());
  }
  /// Of the frame before.
  const kernels::TrackedPoint* tracked_before() const {
    return static_cast<const kernels::TrackedPoint*>(memory_->tracked[1 - frame_of_tracked_].data());
  }
  void begin_frame() { frame_of_tracked_ = 1 - frame_of_tracked_; }

 private:
  void move(const DevicePoints& points, const PlacesMemory& places, const kernels::Stream& stream);
  void place_planes(Interpolation interpolation, kernels::GreyRange* range, const kernels::Stream& stream);
  void prepare(const RefineOptions& options, const kernels::Stream& stream);

  std::shared_ptr<const DeviceFrame> frame_;
  ImageBands* bands_;
  Pool<ReferenceMemory>::Loan memory_;
  std::optional<CoarseReference> coarse_;
  ImageView roi_on_host_;  ///< empty where it moved, too
  ImageView roi_;
  kernels::GridPoints points_;
  kernels::RefineReference reference_;
  const MaterialPoint* material_ = nullptr;
  int frame_of_tracked_ = 0;
};

}  // namespace dic::track::cuda
