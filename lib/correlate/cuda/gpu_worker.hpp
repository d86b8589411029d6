#pragma once

#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/ncc.hpp>
#include <span>
#include <string>

#include "correlate/backend.hpp"
#include "correlate/cuda/job_runner.hpp"

namespace dic::correlate::cuda {

/// The references or the windows of a job in device memory: pixels, descriptions of images, positions.
class UploadedPatches {
 public:
  kernels::DevicePatches upload(const Patches& patches, const kernels::Stream& stream);
  const kernels::DeviceImage* upload_images(std::span<const ImageView> images, const kernels::Stream& stream);

 private:
  kernels::DeviceBuffer pixels_, descriptions_, positions_;
};

/// Runs a part of a job on one GPU. Keeps its memory from job to job. Surfaces that do not fit into memory
/// are computed in parts; the result is the same.
class GpuWorker {
 public:
  /// Expects `device` to be current; the calls select it.
  explicit GpuWorker(const kernels::Device& device) : device_(device.index) {}

  /// Both write the results of their pairs and return when these are complete. `out` is the whole job's.
  void surfaces(const Job& job, PairRange pairs, const std::string& variant, Surfaces& out);
  void peaks(const Job& job, PairRange pairs, const std::string& variant, std::span<Peak> out);

  /// Of the last call.
  const DeviceSeconds& device_seconds() const { return seconds_; }
  /// See Correlator::repeat_kernels. The kernels of a part run that often before the next part.
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
  UploadedPatches reference_, search_, masks_;
  JobRunner runner_;
  kernels::DeviceBuffer peaks_;
};

}  // namespace dic::correlate::cuda
