#pragma once

#include <cstddef>
#include <dic/kernels/device.hpp>

namespace dic::kernels {

class FftPlans;

/// Device memory and plans of transforms that variants reuse from launch to launch: in a steady workload,
/// only the first launches allocate. One workspace serves launches on one stream of one device.
class Workspace {
 public:
  /// Variants that could use more than `most_bytes` split a job into parts.
  explicit Workspace(std::size_t most_bytes = std::size_t{512} << 20);
  ~Workspace();
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  std::size_t most_bytes() const { return most_bytes_; }
  DeviceBuffer& memory() { return memory_; }
  FftPlans& fft_plans() { return *fft_plans_; }

 private:
  std::size_t most_bytes_;
  DeviceBuffer memory_;
  FftPlans* fft_plans_;  ///< owned; <memory> would cost every CUDA file a second of compiler time
};

/// Why cuFFT cannot be used: one sentence; empty if it can. The first call loads the library, since the
/// program also runs without it.
std::string cufft_problem();

}  // namespace dic::kernels
