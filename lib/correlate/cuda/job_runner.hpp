#pragma once

#include <cstddef>
#include <dic/correlate.hpp>
#include <dic/kernels/ncc.hpp>

namespace dic::correlate::cuda {

/// Queues jobs whose data is in device memory, and owns their working memory. Nothing waits for the device,
/// unless that memory grows. Belongs to one device, and to calls that follow each other on one stream.
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
  /// The same in parts, so that surfaces (if the variant needs them) take at most 512 MB.
  void peaks_in_parts(const kernels::NccVariant& variant, const kernels::NccJob& job, Criterion criterion,
                      Peak* out, const kernels::Stream& stream);

  /// Memory kept for surfaces.
  std::size_t surface_bytes() const { return sums_.size() + scores_.size(); }

 private:
  kernels::Workspace workspace_;
  kernels::DeviceBuffer moments_, sums_, scores_;
};

/// What the planner needs to know about a device.
DeviceProperties device_properties(const kernels::Device& device);
/// Device memory for a pair of the job, in bytes, beside its peak: sums and scores, unless peaks come
/// straight from the images, and the packed reference where it is masked.
std::size_t bytes_of_pair(const kernels::NccVariant& variant, kernels::NccJob job, bool peaks);

}  // namespace dic::correlate::cuda
