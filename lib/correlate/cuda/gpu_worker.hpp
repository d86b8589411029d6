#pragma once

#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/ncc.hpp>
#include <span>
#include <string>

#include "correlate/backend.hpp"
#include "correlate/cuda/job_runner.hpp"

namespace dic::correlate::cuda {

/// The references or the windows of a job in device memory: pixels, image descriptions, positions.
class UploadedPatches {
 public:
  kernels::DevicePatches upload(const Patches& patches, const kernels::Stream& stream);
  const kernels::DeviceImage* upload_images(std::span<const ImageView> images, const kernels::Stream& stream);

 private:
  kernels::DeviceBuffer pixels_, descriptions_, positions_;
};

/// Runs some pairs of a job on one GPU. Keeps its memory from job to job. Computes surfaces that do not fit
/// into memory in parts; the result is the same.
class GpuWorker {
 public:
  /// Requires `device` to be the current one; all other calls select it themselves.
  explicit GpuWorker(const kernels::Device& device) : device_(device.index) {}

  /// Writes the surfaces or peaks of `pairs` and returns when they are complete. `out` is for the whole job.
  void surfaces(const Job& job, PairRange pairs, const std::string& variant, Surfaces& out);
  void peaks(const Job& job, PairRange pairs, const std::string& variant, std::span<Peak> out);

  /// Seconds of the last call.
  const DeviceSeconds& device_seconds() const { return seconds_; }
  /// Sets how often the kernels of a part run before the next part; see Correlator::repeat_kernels.
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
  std::int64_t runs_ = 1;  ///< how often the kernels of a part run
  kernels::Stream stream_;
  kernels::Stopwatch uploading_, computing_, downloading_;
  DeviceSeconds seconds_;
  UploadedPatches reference_, search_, masks_;
  JobRunner runner_;
  kernels::DeviceBuffer peaks_;
};

}  // namespace dic::correlate::cuda
