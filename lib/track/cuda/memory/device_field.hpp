#pragma once

#include <atomic>
#include <cstddef>
#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/points.hpp>
#include <memory>

#include "core/object_pool.hpp"
#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/cuda/memory/device_frame.hpp"

namespace dic::track::cuda {

/// Pinned memory of the host that a GPU writes fields into. The user's field refers to the block that the GPU
/// wrote, without a copy; when the field is gone, the block is used again. Copies of this object share the
/// blocks.
class FieldBlocks {
 public:
  using Handle = core::ObjectPool<kernels::PinnedBuffer>::Handle;

  Handle acquire() { return pool_.acquire(); }
  /// Lends a block as memory of a user's field; null if users keep many blocks already, since pinned memory
  /// is scarce.
  std::shared_ptr<std::byte> lend(Handle block);

 private:
  core::ObjectPool<kernels::PinnedBuffer> pool_;
  std::shared_ptr<std::atomic<int>> lent_ = std::make_shared<std::atomic<int>>(0);
};

/// Memory of one measured field on the first GPU, and how long its stages took.
struct FieldMemory {
  kernels::DeviceBuffer on_device;
  kernels::DeviceBuffer tracked;  ///< TrackedPoint of all points
  kernels::Event counted;         ///< the host has the counts
  kernels::Event done;            ///< the host has the whole field
  GpuTimestamp search_begin;
  GpuTimestamp postprocessing_begin;  ///< start of statuses, outliers and strain
  kernels::Stopwatch search, refine, split, strain, download;
};

/// Positions of the parts of a field in a block of memory.
struct FieldLayout {
  kernels::FieldArrays arrays;
  double* noise = nullptr;                ///< noise of the images, grey levels; one value
  kernels::NodeCounts* counts = nullptr;  ///< counts of the nodes; one value
};

/// A field that kernels write, and that is then copied to the host.
class DeviceField {
 public:
  /// pool: must outlive this object.
  DeviceField(std::shared_ptr<const Grid> grid, core::ObjectPool<FieldMemory>::Handle memory,
              FieldBlocks blocks, core::ThreadPool& pool);

  const kernels::FieldArrays& arrays() const { return on_device_.arrays; }
  double* noise() const { return on_device_.noise; }
  FieldMemory& memory() const { return *memory_; }
  /// Queues counting the nodes.
  void count_nodes(const kernels::Stream& stream) const;
  /// Waits for the counts, which arrive before the rest of the field.
  PointCounts counts() const;
  /// Queues the copy to the host.
  void download(const kernels::Stream& stream) const;
  /// Waits for the copy and returns it; call it once. The result includes the stages of the frame.
  FrameResult read(const DeviceFrame& frame);

 private:
  Field take_field();

  std::shared_ptr<const Grid> grid_;
  core::ObjectPool<FieldMemory>::Handle memory_;
  FieldBlocks blocks_;
  FieldBlocks::Handle block_;
  core::ThreadPool& pool_;
  FieldLayout on_device_, on_host_;
};

}  // namespace dic::track::cuda
