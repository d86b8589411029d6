#pragma once

#include <cstddef>
#include <dic/kernels/ncc.hpp>

namespace dic::correlate::cuda {

/// Queues jobs whose data is in device memory, and keeps the memory that they work in. Nothing waits for the
/// device, unless that memory grows. Belongs to one device, and to calls that follow each other on one
/// stream.
class JobRunner {
 public:
  /// Queue the job's sums or scores; the result is valid until the next call.
  const void* sums(const kernels::NccVariant& variant, const kernels::NccJob& job,
                   const kernels::Stream& stream);
  const float* scores(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion,
                      kernels::ScoreKind kind, const kernels::Stream& stream);
  /// Queues the job's peaks, in device memory.
  void peaks(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion, Peak* out,
             const kernels::Stream& stream);
  /// The same in parts whose surfaces take moderate memory, if there are any.
  void peaks_in_parts(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion,
                      Peak* out, const kernels::Stream& stream);

  /// Memory kept for surfaces.
  std::size_t surface_bytes() const { return sums_.size() + scores_.size(); }

 private:
  kernels::Workspace workspace_;
  kernels::DeviceBuffer moments_, sums_, scores_;
};

/// What the planner wants to know of a device.
DeviceProperties facts_of(const kernels::Device& device);
/// What a pair of the job takes beside its peak: sums and scores, unless peaks come straight from the
/// images, and what its reference takes where it is masked.
std::size_t bytes_of_pair(const kernels::NccVariant& variant, kernels::NccJob job, bool peaks);

}  // namespace dic::correlate::cuda
