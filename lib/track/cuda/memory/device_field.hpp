#pragma once

#include <atomic>
#include <cstddef>
#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <dic/kernels/points.hpp>
#include <memory>

#include "core/parallel.hpp"
#include "track/backend.hpp"
#include "track/cuda/memory/device_frame.hpp"
#include "track/cuda/memory/object_pool.hpp"

namespace dic::track::cuda {

/// Pinned memory of the host that a GPU writes fields into. The user's field refers to the block that the GPU
/// wrote, without a copy; when the field is gone, the block is used again. Copies of this object share the
/// blocks.
class FieldBlocks {
 public:
  using Handle = ObjectPool<kernels::PinnedBuffer>::Handle;

  Handle acquire() { return pool_.acquire(); }
  /// The block as memory of a user's field; null where users keep many already: pinned memory is scarce.
  std::shared_ptr<std::byte> lend(Handle block);

 private:
  ObjectPool<kernels::PinnedBuffer> pool_;
  std::shared_ptr<std::atomic<int>> lent_ = std::make_shared<std::atomic<int>>(0);
};

/// Memory of one measured field on the first GPU, and how long its stages took.
struct FieldMemory {
  kernels::DeviceBuffer on_device;
  kernels::DeviceBuffer tracked;  ///< TrackedPoint, of all points
  kernels::Event counted;         ///< the host has the counts
  kernels::Event done;            ///< the host has it all
  GpuTimestamp search_begin;
  GpuTimestamp postprocessing_begin;  ///< statuses, outliers, strain
  kernels::Stopwatch search, refine, split, strain, download;
};

/// Where the parts of a field lie in a block of memory.
struct FieldLayout {
  kernels::FieldArrays arrays;
  double* noise = nullptr;                ///< one value: of the images, grey levels
  kernels::NodeCounts* counts = nullptr;  ///< one value
};

/// A field that kernels write and that then goes to the host.
class DeviceField {
 public:
  /// pool: lives longer.
  DeviceField(std::shared_ptr<const Grid> grid, ObjectPool<FieldMemory>::Handle memory, FieldBlocks blocks,
              ThreadPool& pool);

  const kernels::FieldArrays& arrays() const { return on_device_.arrays; }
  double* noise() const { return on_device_.noise; }
  FieldMemory& memory() const { return *memory_; }
  /// Queues counting the nodes.
  void count_nodes(const kernels::Stream& stream) const;
  /// Waits for the counts, which are there before the rest of the field.
  PointCounts counts() const;
  /// Queues the copy to the host.
  void download(const kernels::Stream& stream) const;
  /// Waits for the copy and returns it; to be called once. Includes the stages of the frame.
  FrameResult read(const DeviceFrame& frame);

 private:
  Field take_field();

  std::shared_ptr<const Grid> grid_;
  ObjectPool<FieldMemory>::Handle memory_;
  FieldBlocks blocks_;
  FieldBlocks::Handle block_;
  ThreadPool& pool_;
  FieldLayout on_device_, on_host_;
};

}  // namespace dic::track::cuda
