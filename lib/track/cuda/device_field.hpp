#pragma once

#include <atomic>
#include <cstddef>
#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <memory>

#include "track/backend.hpp"
#include "track/cuda/device_frame.hpp"
#include "track/cuda/pool.hpp"

namespace dic::track::cuda {

/// Memory of the host that a GPU writes fields into. Whoever is given a field has it as it is, and when the
/// field is gone it takes another one. Copies share it.
class FieldBlocks {
 public:
  using Loan = Pool<kernels::PinnedBuffer>::Loan;

  Loan lend() { return pool_.lend(); }
  /// The block for whoever is given its field; null where many are out: page-locked memory must not pile up
  /// where fields are kept.
  std::shared_ptr<std::byte> hand_out(Loan block);

 private:
  Pool<kernels::PinnedBuffer> pool_;
  std::shared_ptr<std::atomic<int>> out_ = std::make_shared<std::atomic<int>>(0);
};

/// Memory of one measured field on the first GPU, and how long its stages took.
struct FieldMemory {
  kernels::DeviceBuffer on_device;
  kernels::DeviceBuffer tracked;  ///< TrackedPoint, of all points
  kernels::Event counted;         ///< the host has the number of measured points
  kernels::Event done;            ///< the host has it all
  Moment begun;                   ///< the search
  Moment judging;                 ///< the verdicts and the strain
  kernels::Stopwatch search, refine, strain, download;
};

/// Where the parts of a field lie in a block of memory.
struct FieldLayout {
  kernels::FieldArrays arrays;
  double* noise = nullptr;           ///< one value: of the images, grey levels
  std::int32_t* measured = nullptr;  ///< one value: nodes that have values
};

/// A field that kernels write and that then goes to the host.
class DeviceField {
 public:
  DeviceField(std::shared_ptr<const Grid> grid, Pool<FieldMemory>::Loan memory, FieldBlocks blocks);

  const kernels::FieldArrays& arrays() const { return on_device_.arrays; }
  double* noise() const { return on_device_.noise; }
  FieldMemory& memory() const { return *memory_; }
  /// Queues counting the nodes that have values.
  void count_measured(const kernels::Stream& stream) const;
  /// Waits for the count, which is there before the rest of the field.
  std::int64_t measured_points() const;
  /// Queues the copy to the host.
  void download(const kernels::Stream& stream) const;
  /// Waits for the copy, and hands it out; once. Stages of the frame are included.
  FrameResult read(const DeviceFrame& frame);

 private:
  Field hand_out();

  std::shared_ptr<const Grid> grid_;
  Pool<FieldMemory>::Loan memory_;
  FieldBlocks blocks_;
  FieldBlocks::Loan block_;
  FieldLayout on_device_, on_host_;
};

}  // namespace dic::track::cuda
