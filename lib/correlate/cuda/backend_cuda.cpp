#include <algorithm>
#include <dic/kernels/device.hpp>
#include <dic/kernels/workspace.hpp>

#include "core/thread_team.hpp"
#include "correlate/cuda/gpu_worker.hpp"
#include "correlate/cuda/plan_cuda.hpp"

// The CUDA backend: GPUs take equal ranges of the pairs of a job and write into one result.
namespace dic::correlate {
namespace {

using cuda::GpuWorker;

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const std::vector<kernels::Device>& devices)
      : team_(static_cast<int>(devices.size())) {
    for (const kernels::Device& device : devices) {
      const kernels::DeviceScope scope(device.index);
      workers_.push_back(std::make_unique<GpuWorker>(device));
    }
    properties_ =
        cuda::device_properties(std::ranges::min(devices, {}, &kernels::Device::compute_capability));
  }

  const DeviceProperties& properties() const override { return properties_; }
  DeviceSeconds device_seconds() const override { return seconds_; }
  void repeat_kernels(std::int64_t times) override {
    for (const auto& worker : workers_) worker->repeat_kernels(times);
  }

  void surfaces(const Job& job, const std::string& variant, Surfaces& out) override {
    run(job, [&](GpuWorker& worker, PairRange pairs) { worker.surfaces(job, pairs, variant, out); });
  }
  void peaks(const Job& job, const std::string& variant, std::span<Peak> out) override {
    run(job, [&](GpuWorker& worker, PairRange pairs) { worker.peaks(job, pairs, variant, out); });
  }

 private:
  /// Calls work(worker, pairs) for all GPUs at once, with equal ranges of the pairs.
  template <typename Work>
  void run(const Job& job, Work&& work) {
    const std::int64_t count = std::ssize(workers_);
    std::vector<DeviceSeconds> seconds(count);
    team_.run([&](int rank) {
      const PairRange pairs{job.pairs * rank / count, job.pairs * (rank + 1) / count};
      if (pairs.begin == pairs.end) return;
      work(*workers_[rank], pairs);
      seconds[rank] = workers_[rank]->device_seconds();
    });
    seconds_ = std::ranges::max(seconds, {}, &DeviceSeconds::kernels);
  }

  std::vector<std::unique_ptr<GpuWorker>> workers_;
  core::ThreadTeam team_;  ///< one thread for each GPU
  DeviceProperties properties_;
  DeviceSeconds seconds_;
};

std::unique_ptr<Backend> open_cuda(std::span<const int> ordinals, core::ThreadPool&) {
  std::vector<kernels::Device> devices;
  for (const int ordinal : ordinals) devices.push_back(kernels::find_device(ordinal));
  if (ordinals.empty()) devices = kernels::find_devices();
  return std::make_unique<CudaBackend>(devices);
}

}  // namespace

BackendEntry cuda_backend() {
  return {"cuda", cuda::variants, cuda::unsupported_reason, cuda::plan, open_cuda};
}

}  // namespace dic::correlate
