#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/opencl_library.hpp"
#include "correlate/opencl/plan_opencl.hpp"

namespace dic::correlate::opencl {

/// Device memory that is kept from job to job and grows when needed.
struct Buffer {
  core::cl::Memory memory;
  std::size_t bytes = 0;
};

/// One OpenCL device with its queue. write(), read() and run() wait until the device is done, and return the
/// seconds that it took by its own clock. All calls throw DeviceError.
class Device {
 public:
  /// number: the number in `opencl:0`. Throws DeviceError if there is no such device.
  explicit Device(int number);

  const Limits& limits() const { return limits_; }

  /// Makes the buffer hold at least `bytes`; its contents are lost if it grows.
  void reserve(Buffer& buffer, std::size_t bytes) const;
  double write(const Buffer& to, std::size_t offset, std::span<const std::byte> from) const;
  double read(std::span<std::byte> to, const Buffer& from) const;
  double run(cl_kernel kernel, const Range& range) const;

  /// Compiles the function `correlate` of these sources. Throws DeviceError with the compiler's messages.
  core::cl::Kernel compile(std::span<const std::string_view> sources, const std::string& options) const;

 private:
  double seconds_of(cl_event event, std::string_view what) const;

  cl_device_id device_;
  Limits limits_;
  core::cl::Context context_;
  core::cl::Queue queue_;
};

}  // namespace dic::correlate::opencl
