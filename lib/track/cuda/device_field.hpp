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
  kernels::Event done;  ///< the host has it all
  Moment begun;    ///< the search
  Moment judging;  ///< the verdicts and the strain
  kernels::Stopwatch search, refine, strain, download;
};

/// A field that kernels write and that then goes to the host.
class DeviceField {
 public:
  DeviceField(std::int64_t nodes, Pool<FieldMemory>::Loan memory);

  const kernels::FieldArrays& arrays() const { return arrays_; }
  /// One value: of the pictures, grey levels.
  double* noise() const { return noise_; }
  FieldMemory& memory() const { return *memory_; }
  /// Queues the copy to the host.
  void download(const kernels::Stream& stream) const;
  /// Waits for the copy, and puts it into `memory`. Stages of the frame are included.
  Measured read(const DeviceFrame& frame, Field memory) const;

 private:
  std::int64_t nodes_;
  Pool<FieldMemory>::Loan memory_;
  kernels::FieldArrays arrays_;
  double* noise_ = nullptr;
};

}  // namespace dic::track::cuda
