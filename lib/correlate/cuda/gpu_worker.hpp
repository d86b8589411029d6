#pragma once

#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/ncc.hpp>
#include <span>
#include <string>

#include "correlate/backend.hpp"
#include "correlate/cuda/job_runner.hpp"

namespace dic::correlate::cuda {

/// Pairs begin .. end - 1 of a job.
struct PairRange {
  std::int64_t begin = 0, end = 0;
};

/// Images, their descriptions and the positions of one side of a job, in device memory.
class DeviceSide {
 public:
  kernels::DeviceMatrices upload(const Patches& matrices, const kernels::Stream& stream);
  const kernels::DeviceImage* upload_images(std::span<const ImageView> images, const kernels::Stream& stream);

 private:
  kernels::DeviceBuffer pixels_, descriptions_, positions_;
};

/// Runs a share of a job on one GPU, with memory that is kept from job to job. Surfaces that do not fit are
/// done in parts; the result is the same.
class GpuWorker {
 public:
  /// Expects `device` to be current; the calls select it.
  explicit GpuWorker(const kernels::Device& device) : device_(device.index) {}

  /// Both write the elements of their pairs and return when these are there. `out` is that of the whole job.
  void surfaces(const Job& job, PairRange pairs, const std::string& variant, Surfaces& out);
  void peaks(const Job& job, PairRange pairs, const std::string& variant, std::span<Peak> out);

  /// Of the last call.
  const DeviceSeconds& device_seconds() const { return seconds_; }
  /// See Correlator::repeat_kernels. Those of a part run so often before the next part.
  void repeat_kernels(std::int64_t times) { runs_ = times; }

 private:
  kernels::NccJob upload(const Job& job);
  template <typename Body>
  void for_parts(const kernels::NccJob& whole, PairRange pairs, const std::string& variant,
                 std::size_t bytes_per_pair, Body&& body);
  template <typename Launch>
  auto compute(Launch&& launch);
  void download(void* host, const void* device, std::size_t bytes);

  int device_;
  std::int64_t runs_ = 1;  ///< of the kernels of a part
  kernels::Stream stream_;
  kernels::Stopwatch uploading_, computing_, downloading_;
  DeviceSeconds seconds_;
  DeviceSide reference_, search_, masks_;
  JobRunner runner_;
  kernels::DeviceBuffer peaks_;
};

}  // namespace dic::correlate::cuda
