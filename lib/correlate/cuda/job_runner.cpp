#include "correlate/cuda/job_runner.hpp"

#include <algorithm>

namespace dic::correlate::cuda {

using kernels::NccJob;
using kernels::NccVariant;
using kernels::Stream;

namespace {

/// Device memory for the surfaces of a part in peaks_in_parts(), bytes.
constexpr std::size_t moderate_part_bytes = std::size_t{512} << 20;

}  // namespace

DeviceProperties device_properties(const kernels::Device& device) {
  return {.backend = "cuda",
          .threads = 1,
          .compute_capability = device.compute_capability,
          .cufft = kernels::cufft_problem().empty()};
}

std::size_t bytes_of_pair(const NccVariant& variant, NccJob job, bool peaks) {
  job.pairs = 1;
  const bool surfaces = !peaks || !variant.can_fuse(job, kernels::FusedOutput::peaks);
  return (surfaces ? job.shifts.count() * (size_of(job.sums) + sizeof(float)) : 0) +
         (variant.supports_masks ? kernels::masked_workspace_bytes(job) : 0);
}

const void* JobRunner::sums(const NccVariant& variant, const NccJob& job, const Stream& stream) {
  void* out = sums_.reserve(job.outputs() * size_of(job.sums));
  kernels::launch_ncc(variant, job, out, workspace_, stream.handle());
  return out;
}

const float* JobRunner::scores(const NccVariant& variant, const NccJob& job, Criterion criterion,
                               kernels::ScoreKind kind, const Stream& stream) {
  auto* out = scores_.reserve<float>(job.outputs());
  if (variant.can_fuse(job, kernels::FusedOutput::scores)) {
    variant.score_fusion()->launch_scores(job, criterion, kind, out, workspace_, stream.handle());
    return out;
  }
  void* moments = moments_.reserve(job.reference.count * kernels::moments_bytes);
  kernels::launch_reference_moments(job, moments, stream.handle());
  kernels::launch_scores(job, criterion, kind, sums(variant, job, stream), moments, out, stream.handle());
  return out;
}

void JobRunner::peaks(const NccVariant& variant, const NccJob& job, Criterion criterion, Peak* out,
                      const Stream& stream) {
  if (variant.can_fuse(job, kernels::FusedOutput::peaks))
    return variant.score_fusion()->launch_peaks(job, criterion, out, workspace_, stream.handle());
  const float* surfaces = scores(variant, job, criterion, kernels::ScoreKind::score, stream);
  // Reserved only now, because the variant works in the same memory and may make it grow.
  void* memory = workspace_.memory().reserve(kernels::peaks_workspace_bytes(job));
  kernels::launch_peaks(job, criterion, surfaces, out, memory, stream.handle());
}

void JobRunner::peaks_in_parts(const NccVariant& variant, const NccJob& job, Criterion criterion, Peak* out,
                               const Stream& stream) {
  const std::size_t bytes = bytes_of_pair(variant, job, true);
  const std::int64_t at_once =
      bytes == 0 ? job.pairs : std::max<std::int64_t>(1, moderate_part_bytes / bytes);
  for (std::int64_t first = 0; first < job.pairs; first += at_once) {
    NccJob part = job;
    part.first_pair = job.first_pair + first;
    part.pairs = std::min(at_once, job.pairs - first);
    peaks(variant, part, criterion, out + first, stream);
  }
}

}  // namespace dic::correlate::cuda
