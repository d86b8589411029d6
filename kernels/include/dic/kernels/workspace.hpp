#pragma once

#include <cstddef>
#include <dic/kernels/device.hpp>

namespace dic::kernels {

class FftPlans;

/// What variants keep from launch to launch: device memory, and plans of transforms. After the first launches
/// of a steady workload nothing is allocated. Belongs to one device, and to launches that follow each other
/// on one stream.
class Workspace {
 public:
  /// Variants that could use more than `most_bytes` do a job in parts.
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

/// Why cuFFT cannot be used here: one sentence, empty where it can. It is looked for when first asked for:
/// the program starts, and does without, where there is none.
std::string cufft_problem();

}  // namespace dic::kernels
