#include <dic/error.hpp>
#include <memory>
#include <utility>

#include "core/device_name.hpp"
#include "core/parallel.hpp"
#include "correlate/backend.hpp"

namespace dic {

using correlate::Backend;
using correlate::BackendEntry;
using correlate::Job;

std::int64_t Surfaces::checked_offset(Type requested, std::int64_t pair) const {
  if (requested != type)
    throw UsageError("These surfaces hold " + std::string(to_string(type)) + " values, not " +
                     std::string(to_string(requested)) + ".");
  if (pair < 0 || pair >= pairs)
    throw UsageError("There is no surface of pair " + std::to_string(pair) + ": there are " +
                     std::to_string(pairs) + " pairs.");
  return pair * ny * nx;
}

struct Correlator::Impl {
  std::unique_ptr<core::ThreadPool> own_pool;  ///< null if the pool belongs to somebody else
  const BackendEntry& entry;
  std::unique_ptr<Backend> backend;
  CorrelatePlan plan = {};

  Impl(const core::DeviceName& device, std::unique_ptr<core::ThreadPool> own, core::ThreadPool& pool)
      : own_pool(std::move(own)),
        entry(correlate::backend_named(device.backend)),
        backend(entry.open(device.ordinals, pool)) {}

  /// Checks the request and sets `plan` to the variant that the caller names, or to the planner's choice.
  Job prepare(const CorrelateRequest& request) {
    const Job job = correlate::check_request(request);
    if (request.variant.empty()) {
      plan = entry.plan(job.shape(), backend->properties());
    } else {
      const std::string reason = correlate::unsupported_reason(entry, request.variant, job.shape());
      if (!reason.empty()) throw UsageError(reason);
      plan = {request.variant, "asked for by name"};
    }
    return job;
  }
};

Correlator::Correlator(const std::string& device, int threads) {
  const core::DeviceName name = core::parse_device(device);
  auto pool = std::make_unique<core::ThreadPool>(threads);
  core::ThreadPool& shared = *pool;
  impl_ = std::make_unique<Impl>(name, std::move(pool), shared);
}
Correlator::Correlator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Correlator correlate::open_correlator(const std::string& device, core::ThreadPool& pool) {
  return Correlator(std::make_unique<Correlator::Impl>(core::parse_device(device), nullptr, pool));
}
Correlator::~Correlator() = default;
Correlator::Correlator(Correlator&&) noexcept = default;
Correlator& Correlator::operator=(Correlator&&) noexcept = default;

void Correlator::surfaces(const CorrelateRequest& request, Surfaces& out) {
  const Job job = impl_->prepare(request);
  out.type =
      job.criterion == Criterion::cross_correlation ? correlate::sum_type(job.type) : Surfaces::Type::f32;
  out.pairs = job.pairs;
  out.ny = job.shifts.count() > 0 ? job.shifts.ny() : 0;
  out.nx = job.shifts.count() > 0 ? job.shifts.nx() : 0;
  out.bytes.resize(static_cast<std::size_t>(job.pairs * job.shifts.count()) * size_of(out.type));
  if (!out.bytes.empty()) impl_->backend->surfaces(job, impl_->plan.variant, out);
}

void Correlator::peaks(const CorrelateRequest& request, std::vector<Peak>& out) {
  if (request.criterion == Criterion::cross_correlation)
    throw UsageError("Peaks of raw sums mean nothing: ask for zncc, ncc or ssd.");
  const Job job = impl_->prepare(request);
  out.assign(static_cast<std::size_t>(job.pairs), Peak{});
  if (job.pairs > 0 && job.shifts.count() > 0) impl_->backend->peaks(job, impl_->plan.variant, out);
}

const DeviceProperties& Correlator::device() const { return impl_->backend->properties(); }
const CorrelatePlan& Correlator::last_plan() const { return impl_->plan; }
DeviceSeconds Correlator::device_seconds() const { return impl_->backend->device_seconds(); }
void Correlator::repeat_kernels(std::int64_t times) {
  if (times < 1) throw UsageError("Kernels run at least once in a call.");
  impl_->backend->repeat_kernels(times);
}

}  // namespace dic
