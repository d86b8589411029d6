#include "correlate/opencl/backend_opencl.hpp"

#include <algorithm>
#include <dic/error.hpp>

#include "correlate/cpu/runner.hpp"
#include "correlate/opencl/device_sums.hpp"
#include "correlate/opencl/downloaded_sums.hpp"
#include "correlate/opencl/plan_opencl.hpp"

// The OpenCL backend: a device computes the sums of products, which are most of the work. The host prepares
// references, scores the sums and finds the peaks with the functions of the CPU backend.
namespace dic::correlate {
namespace opencl {
namespace {

class OpenClBackend final : public Backend {
 public:
  OpenClBackend(int number, core::ThreadPool& pool, std::size_t part_bytes)
      : device_(number, part_bytes), pool_(pool), properties_{.backend = "opencl", .threads = pool_.size()} {}

  const DeviceProperties& properties() const override { return properties_; }
  DeviceSeconds device_seconds() const override { return device_.seconds(); }
  void repeat_kernels(std::int64_t times) override { device_.repeat_kernels(times); }

  void surfaces(const Job& job, const std::string& variant, Surfaces& out) override {
    run(job, variant, [&](auto& runner) { runner.surfaces(out); });
  }
  void peaks(const Job& job, const std::string& variant, std::span<Peak> out) override {
    run(job, variant, [&](auto& runner) { runner.peaks(out); });
  }

 private:
  /// Calls body(runner) for each part of a job when the part's sums are on the host.
  template <typename Body>
  void run(const Job& job, const std::string& variant, const Body& body) {
    device_.begin(job, variant);
    visit_scalar(job.type, [&]<typename T>(T) {
      std::vector<Worker<T>> workers(static_cast<std::size_t>(pool_.size()));
      for (Worker<T>& worker : workers) worker.kernel = std::make_unique<DownloadedSums<T>>(sums_);
      const std::int64_t at_once = device_.pairs_at_once(job);
      for (std::int64_t first = 0; first < job.pairs; first += at_once) {
        const PairRange part{first, std::min(first + at_once, job.pairs)};
        device_.compute(job, part, pool_, sums_);
        Runner<T> runner(job, part, pool_, workers);
        body(runner);
      }
    });
  }

  DeviceSums device_;
  core::ThreadPool& pool_;
  DeviceProperties properties_;
  Sums sums_;
};

std::unique_ptr<Backend> open_one(std::span<const int> ordinals, core::ThreadPool& pool) {
  if (ordinals.size() != 1) throw UsageError("OpenCL correlates on one device: use opencl or opencl:N.");
  return open(ordinals.front(), pool);
}

/// Always empty: the limits of a device are known only after it is opened.
std::string always_supported(std::string_view, const CorrelateShape&) { return {}; }

}  // namespace

std::unique_ptr<Backend> open(int number, core::ThreadPool& pool, std::size_t part_bytes) {
  return std::make_unique<OpenClBackend>(number, pool, part_bytes);
}

}  // namespace opencl

BackendEntry opencl_backend() {
  return {"opencl", opencl::variants, opencl::always_supported, opencl::plan, opencl::open_one};
}

}  // namespace dic::correlate
