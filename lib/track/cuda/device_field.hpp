#pragma once

#include <dic/kernels/device.hpp>
#include <dic/kernels/fields.hpp>
#include <memory>

#include "track/backend.hpp"
#include "track/cuda/device_frame.hpp"
#include "track/cuda/pool.hpp"

namespace dic::track::cuda {

/// Memory of one measured field, and how long its stages took.
struct FieldMemory {
  kernels::DeviceBuffer on_device;
  kernels::DeviceBuffer tracked;  ///< TrackedPoint, of all points
  kernels::PinnedBuffer on_host;
  kernels::Event counted;  ///< the host has the number of measured points
  kernels::Event done;     ///< the host has it all
  Moment begun;            ///< the search
  Moment judging;          ///< the verdicts and the strain
  kernels::Stopwatch search, refine, strain, download;
};

/// Where the parts of a field lie in a block of memory.
struct FieldBlock {
  kernels::FieldArrays arrays;
  double* noise = nullptr;           ///< one value: of the pictures, grey levels
  std::int32_t* measured = nullptr;  ///< one value: nodes that have values
};

/// A field that kernels write and that then goes to the host.
class DeviceField {
 public:
  DeviceField(std::int64_t nodes, Pool<FieldMemory>::Loan memory);

  const kernels::FieldArrays& arrays() const { return on_device_.arrays; }
  double* noise() const { return on_device_.noise; }
  FieldMemory& memory() const { return *memory_; }
  /// Queues counting the nodes that have values.
  void count_measured(const kernels::Stream& stream) const;
  /// Waits for the count, which is there before the rest of the field.
  std::int64_t measured_points() const;
  /// Queues the copy to the host.
  void download(const kernels::Stream& stream) const;
  /// Waits for the copy, and puts it into `memory`. Stages of the frame are included.
  Measured read(const DeviceFrame& frame, Field memory) const;

 private:
  std::int64_t nodes_;
  Pool<FieldMemory>::Loan memory_;
  FieldBlock on_device_, on_host_;
};

}  // namespace dic::track::cuda
