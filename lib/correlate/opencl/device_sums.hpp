#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "correlate/backend.hpp"
#include "correlate/opencl/device.hpp"

namespace dic::correlate::opencl {

/// Sums of products of some pairs of a job, on the host.
struct Sums {
  PairRange pairs;
  std::size_t bytes_of_sum = 0;  ///< 4: u32, 8: 64 bits, or float64 for images of floats
  std::vector<std::byte> bytes;  ///< pairs x ny x nx
};

/// Computes the sums of products of a job on a device, part by part. Keeps kernels and memory from job to
/// job.
class DeviceSums {
 public:
  /// number: of the device. part_bytes: device memory for the sums, or for the references, of a part.
  DeviceSums(int number, std::size_t part_bytes) : device_(number), part_bytes_(part_bytes) {}

  /// Uploads the search images of a job, whose sums are then asked for. Throws UsageError where the device
  /// cannot do it.
  void begin(const Job& job, const std::string& variant);
  std::int64_t pairs_at_once(const Job& job) const;
  void compute(const Job& job, PairRange pairs, ThreadPool& pool, Sums& out);

  /// Of the job.
  const DeviceSeconds& seconds() const { return seconds_; }
  /// See Correlator::repeat_kernels.
  void repeat_kernels(std::int64_t times) { runs_ = times; }

 private:
  cl_kernel kernel(const CorrelateShape& shape);
  void set_arguments(cl_kernel kernel, const Job& job) const;
  void upload(Buffer& to, std::span<const std::byte> from);

  Device device_;
  std::size_t part_bytes_;
  std::int64_t runs_ = 1;  ///< of the kernel of a part
  const Variant* variant_ = nullptr;
  std::vector<std::int64_t> image_offsets_;
  Buffer images_, references_, pairs_, sums_;
  std::map<std::string, cl::Kernel> kernels_;  ///< by variant and build options
  DeviceSeconds seconds_;
};

}  // namespace dic::correlate::opencl
