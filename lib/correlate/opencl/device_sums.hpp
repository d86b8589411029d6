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
  std::size_t bytes_of_sum = 0;  ///< 4: u32; 8: 64-bit integers, or float64 for images of floats
  std::vector<std::byte> bytes;  ///< pairs x ny x nx
};

/// Computes the sums of products of a job on a device in parts. Keeps kernels and memory from job to job.
class DeviceSums {
 public:
  /// number: device number. part_bytes: device memory for the sums, and for the references, of a part.
  DeviceSums(int number, std::size_t part_bytes) : device_(number), part_bytes_(part_bytes) {}

  /// Uploads the search images of a job; the following calls refer to this job. Throws UsageError if the
  /// device cannot do it.
  void begin(const Job& job, const std::string& variant);
  std::int64_t pairs_at_once(const Job& job) const;
  void compute(const Job& job, PairRange pairs, core::ThreadPool& pool, Sums& out);

  /// Seconds of the job so far.
  const DeviceSeconds& seconds() const { return seconds_; }
  /// Sets how often the kernel of a part runs; see Correlator::repeat_kernels.
  void repeat_kernels(std::int64_t times) { runs_ = times; }

 private:
  cl_kernel kernel(const CorrelateShape& shape);
  void set_arguments(cl_kernel kernel, const Job& job) const;
  void upload(Buffer& to, std::span<const std::byte> from);

  Device device_;
  std::size_t part_bytes_;
  std::int64_t runs_ = 1;  ///< how often the kernel of a part runs
  const Variant* variant_ = nullptr;
  std::vector<std::int64_t> image_offsets_;
  Buffer images_, references_, pairs_, sums_;
  std::map<std::string, core::cl::Kernel> kernels_;  ///< keys: variant and build options
  DeviceSeconds seconds_;
};

}  // namespace dic::correlate::opencl
