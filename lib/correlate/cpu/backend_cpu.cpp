#include <algorithm>
#include <map>

#include "correlate/backend.hpp"
#include "correlate/cpu/kernel.hpp"
#include "correlate/cpu/runner.hpp"

namespace dic::correlate {

const std::vector<CpuVariant>& cpu_variants() {
  static const std::vector<CpuVariant> all = {naive_variant(), direct_variant(), fft_variant()};
  return all;
}

namespace {

const std::vector<CorrelateVariant>& infos() {
  static const std::vector<CorrelateVariant> all = [] {
    std::vector<CorrelateVariant> result;
    for (const CpuVariant& variant : cpu_variants()) result.push_back(variant.info);
    return result;
  }();
  return all;
}

const CpuVariant& variant_named(std::string_view name) {
  const auto& all = cpu_variants();
  return *std::find_if(all.begin(), all.end(), [&](const auto& v) { return v.info.name == name; });
}

std::string cpu_unsupported_reason(std::string_view variant, const CorrelateShape& shape) {
  return variant_named(variant).unsupported_reason(shape);
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(core::ThreadPool& pool)
      : pool_(pool), properties_{.backend = "cpu", .threads = pool_.size(), .compute_capability = 0} {}

  const DeviceProperties& properties() const override { return properties_; }

  void surfaces(const Job& job, const std::string& variant, Surfaces& out) override {
    run(job, variant, [&](auto& runner) { runner.surfaces(out); });
  }

  void peaks(const Job& job, const std::string& variant, std::span<Peak> out) override {
    run(job, variant, [&](auto& runner) { runner.peaks(out); });
  }

 private:
  struct WorkersBase {
    virtual ~WorkersBase() = default;
  };
  template <typename T>
  struct Workers : WorkersBase {
    std::vector<Worker<T>> all;
  };

  // The workers of a variant and type, created on first use.
  template <typename T>
  std::vector<Worker<T>>& workers(const std::string& variant, ScalarType type) {
    std::unique_ptr<WorkersBase>& slot = workers_[{variant, type}];
    if (!slot) {
      auto made = std::make_unique<Workers<T>>();
      made->all.resize(static_cast<std::size_t>(pool_.size()));
      for (Worker<T>& worker : made->all) {
        worker.kernel = make<T>(variant_named(variant), type);
        worker.exact = make<T>(direct_variant(), type);
      }
      slot = std::move(made);
    }
    return static_cast<Workers<T>&>(*slot).all;
  }

  template <typename T>
  static std::unique_ptr<Kernel<T>> make(const CpuVariant& variant, ScalarType type) {
    return std::unique_ptr<Kernel<T>>(static_cast<Kernel<T>*>(variant.make(type).release()));
  }

  template <typename Body>
  void run(const Job& job, const std::string& variant, const Body& body) {
    visit_scalar(job.type, [&](auto element) {
      using T = decltype(element);
      Runner<T> runner(job, {0, job.pairs}, pool_, workers<T>(variant, job.type));
      body(runner);
    });
  }

  core::ThreadPool& pool_;
  DeviceProperties properties_;
  std::map<std::pair<std::string, ScalarType>, std::unique_ptr<WorkersBase>> workers_;
};

std::unique_ptr<Backend> open(std::span<const int>, core::ThreadPool& pool) {
  return std::make_unique<CpuBackend>(pool);
}

}  // namespace

BackendEntry cpu_backend() { return {"cpu", infos, cpu_unsupported_reason, plan_cpu, open}; }

}  // namespace dic::correlate
