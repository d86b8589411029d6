#include <algorithm>
#include <dic/error.hpp>
#include <dic/peak_finder.hpp>

#include "core/parallel.hpp"
#include "correlate/backend.hpp"
#include "correlate/ranked_peaks.hpp"

namespace dic {

using correlate::Job;
using correlate::RequestPart;

struct PeakFinder::Impl {
  core::ThreadPool pool;
  Correlator correlator;
  Surfaces surfaces;

  Impl(const std::string& device, int threads)
      : pool(threads), correlator(correlate::open_correlator(device, pool)) {}
};

PeakFinder::PeakFinder(const std::string& device, int threads)
    : impl_(std::make_unique<Impl>(device, threads)) {}
PeakFinder::~PeakFinder() = default;
PeakFinder::PeakFinder(PeakFinder&&) noexcept = default;
PeakFinder& PeakFinder::operator=(PeakFinder&&) noexcept = default;

const std::string& PeakFinder::variant() const { return impl_->correlator.last_plan().variant; }

void PeakFinder::find(const CorrelateRequest& request, const PeakOptions& options,
                      std::vector<RankedPeak>& out) {
  if (request.criterion == Criterion::cross_correlation)
    throw UsageError("Peaks of raw sums mean nothing: ask for zncc, ncc or ssd.");
  if (options.count < 1 || options.distance < 0)
    throw UsageError("The number of peaks must be at least 1, and their distance at least 0 px.");
  const Job job = correlate::check_request(request);
  out.assign(static_cast<std::size_t>(job.pairs * options.count), RankedPeak{});
  if (job.shifts.count() == 0) return;
  constexpr std::int64_t kMostBytes = std::int64_t{64} << 20;  // surfaces that are in memory at a time
  const std::int64_t bytes = job.shifts.count() * static_cast<std::int64_t>(sizeof(float));
  const std::vector<std::int64_t> elements = correlate::counting_elements(job);
  for (RequestPart& part : correlate::parts_of(request, job, std::max<std::int64_t>(1, kMostBytes / bytes))) {
    if (request.criterion != Criterion::ssd) part.request.least_score = options.least_score;
    impl_->correlator.surfaces(part.request, impl_->surfaces);
    const auto pick = [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k) {
        const std::int64_t pair = part.first + k;
        const auto found = std::span(out).subspan(pair * options.count, options.count);
        correlate::pick_peaks(impl_->surfaces.surface<float>(k), job, options,
                              elements[job.pair(pair).reference], found);
      }
    };
    impl_->pool.parallel_for(impl_->surfaces.pairs, 1, pick);
  }
}

}  // namespace dic
