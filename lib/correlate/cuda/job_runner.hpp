#pragma once

#include <cstddef>
#include <dic/correlate.hpp>
#include <dic/kernels/ncc.hpp>

namespace dic::correlate::cuda {

/// Queues jobs whose data is in device memory, and owns their working memory. Calls do not wait for the
/// device unless that memory grows. An object serves one device and successive calls on one stream.
class JobRunner {
 public:
  /// Queues the job's sums or scores; the result is in device memory and valid until the next call.
  const void* sums(const kernels::NccVariant& variant, const kernels::NccJob& job,
                   const kernels::Stream& stream);
  const float* scores(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion,
                      kernels::ScoreKind kind, const kernels::Stream& stream);
  /// Queues the job's peaks, in device memory.
  void peaks(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion, Peak* out,
             const kernels::Stream& stream);
  /// Queues the job's peaks in parts, so that surfaces (if the variant needs them) take at most 512 MB.
  void peaks_in_parts(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion,
                      Peak* out, const kernels::Stream& stream);

  /// Device memory kept for surfaces, bytes.
  std::size_t surface_bytes() const { return sums_.size() + scores_.size(); }

 private:
  kernels::Workspace workspace_;
  kernels::DeviceBuffer moments_, sums_, scores_;
};

/// The properties of a device that the planner needs.
DeviceProperties device_properties(const kernels::Device& device);
/// Device memory for one pair of the job without its peak, in bytes: sums and scores (unless the variant
/// computes peaks straight from the images) and the packed reference if it is masked.
std::size_t bytes_of_pair(const kernels::NccVariant& variant, kernels::NccJob job, bool peaks);

}  // namespace dic::correlate::cuda
