#include "correlate/cuda/gpu_worker.hpp"

#include <algorithm>
#include <vector>

#include "correlate/cuda/plan_cuda.hpp"

namespace dic::correlate::cuda {
namespace {

using kernels::NccJob;
using kernels::NccVariant;

/// Surfaces that are in flight at once take at most this much, and at most half of the free memory.
constexpr std::size_t most_surface_bytes = std::size_t{1} << 30;

std::size_t pitch_of(const ImageView& picture) {
  constexpr std::size_t alignment = 256;  // rows start at whole cache lines
  const std::size_t bytes = std::max(picture.width, 0) * size_of(picture.type);
  return (bytes + alignment - 1) / alignment * alignment;
}

void upload_rows(std::byte* target, std::size_t pitch, const ImageView& p, const kernels::Stream& stream) {
  const std::size_t row = p.width * size_of(p.type);
  if (p.row_bytes >= static_cast<std::ptrdiff_t>(row)) {
    kernels::upload(target, pitch, p.data, p.row_bytes, row, p.height, stream);
    return;
  }
  // Rows that overlap or run upwards: the 2-D copy takes neither.
  for (int y = 0; y < p.height; ++y) kernels::upload(target + y * pitch, p.row<std::byte>(y), row, stream);
}

/// Sums and scores of one pair.
std::size_t surface_bytes(const NccJob& job) {
  return job.shifts.count() * (kernels::size_of(job.sums) + sizeof(float));
}

}  // namespace

kernels::DeviceMatrices DeviceSide::upload(const Matrices& matrices, const kernels::Stream& stream) {
  upload_pictures(matrices.pictures, stream);
  const std::size_t bytes = matrices.positions.size_bytes();
  kernels::upload(positions_.reserve(bytes), matrices.positions.data(), bytes, stream);
  return {.pictures = static_cast<const kernels::DevicePicture*>(descriptions_.data()),
          .positions = static_cast<const MatrixPosition*>(positions_.data()),
          .count = static_cast<std::int64_t>(matrices.positions.size()),
          .height = matrices.height,
          .width = matrices.width};
}

void DeviceSide::upload_pictures(std::span<const ImageView> pictures, const kernels::Stream& stream) {
  std::size_t bytes = 0;
  for (const ImageView& p : pictures) bytes += pitch_of(p) * std::max(p.height, 0);
  auto* target = static_cast<std::byte*>(pixels_.reserve(bytes));
  // Kernels read whole words, beyond the ends of rows too.
  kernels::fill(target, 0, bytes, stream.handle());
  std::vector<kernels::DevicePicture> descriptions;
  for (const ImageView& p : pictures) {
    const std::size_t pitch = pitch_of(p);
    if (p.empty()) {
      descriptions.push_back({});
      continue;
    }
    upload_rows(target, pitch, p, stream);
    descriptions.push_back({target, static_cast<std::ptrdiff_t>(pitch), p.width, p.height});
    target += pitch * p.height;
  }
  const std::size_t table = descriptions.size() * sizeof(kernels::DevicePicture);
  kernels::upload(descriptions_.reserve(table), descriptions.data(), table, stream);
}

void GpuWorker::surfaces(const Job& job, PairRange pairs, const std::string& name, Surfaces& out) {
  const kernels::DeviceScope scope(device_);
  const NccVariant& variant = variant_named(name);
  const NccJob whole = upload(job);
  const std::size_t output_bytes = job.shifts.count() * kernels::size_of(out.type);
  for_parts(whole, pairs, name, surface_bytes(whole), [&](const NccJob& part) {
    const void* result = job.measure == Measure::sums
                             ? sums(variant, part)
                             : scores(variant, part, job.measure, kernels::ScoreKind::value);
    download(out.bytes.data() + part.first_pair * output_bytes, result, part.pairs * output_bytes);
  });
}

void GpuWorker::peaks(const Job& job, PairRange pairs, const std::string& name, std::span<Peak> out) {
  const kernels::DeviceScope scope(device_);
  const NccVariant& variant = variant_named(name);
  const NccJob whole = upload(job);
  const bool fused = variant.fused && variant.fused->fits(whole, true);
  const std::size_t bytes_per_pair = sizeof(Peak) + (fused ? 0 : surface_bytes(whole));
  for_parts(whole, pairs, name, bytes_per_pair, [&](const NccJob& part) {
    auto* found = static_cast<Peak*>(peaks_.reserve(part.pairs * sizeof(Peak)));
    kernels::fill(found, 0, part.pairs * sizeof(Peak), stream_.handle());  // what lies between the fields
    if (fused) {
      variant.fused->launch_peaks(part, job.measure, found, stream_.handle());
    } else {
      const float* of_shifts = scores(variant, part, job.measure, kernels::ScoreKind::score);
      // Only now: the variant works in the same memory, and may let it grow.
      void* memory = workspace_.memory().reserve(kernels::peaks_workspace_bytes(part));
      kernels::launch_peaks(part, job.measure, of_shifts, found, memory, stream_.handle());
    }
    download(out.data() + part.first_pair, found, part.pairs * sizeof(Peak));
  });
}

/// The job with its data on the device.
NccJob GpuWorker::upload(const Job& job) {
  NccJob whole = job_of(job.shape());
  uploading_.start(stream_);
  whole.reference = reference_.upload(job.reference, stream_);
  whole.search = search_.upload(job.search, stream_);
  uploading_.stop(stream_);
  seconds_ = {};
  return whole;
}

/// Calls body(part) for parts of the pairs that fit into the memory, and waits for each.
template <typename Body>
void GpuWorker::for_parts(const NccJob& whole, PairRange pairs, const std::string& name,
                          std::size_t bytes_per_pair, Body&& body) {
  const std::size_t available = kernels::free_memory() + sums_.size() + scores_.size();
  const std::int64_t pairs_at_once =
      std::max<std::int64_t>(1, std::min(most_surface_bytes, available / 2) / bytes_per_pair);
  for (std::int64_t first = pairs.begin; first < pairs.end; first += pairs_at_once) {
    NccJob part = whole;
    part.first_pair = first;
    part.pairs = std::min(pairs_at_once, pairs.end - first);
    computing_.start(stream_);
    body(part);
    stream_.synchronize(kernels::describe(name, part));
    seconds_.kernels += computing_.seconds();
    seconds_.download += downloading_.seconds();
  }
  seconds_.upload = uploading_.seconds();
}

/// Fetches what the kernels of a part have computed.
void GpuWorker::download(void* host, const void* device, std::size_t bytes) {
  computing_.stop(stream_);
  downloading_.start(stream_);
  kernels::download(host, device, bytes, stream_);
  downloading_.stop(stream_);
}

const void* GpuWorker::sums(const NccVariant& variant, const NccJob& part) {
  void* out = sums_.reserve(part.outputs() * kernels::size_of(part.sums));
  kernels::launch_ncc(variant, part, out, workspace_, stream_.handle());
  return out;
}

const float* GpuWorker::scores(const NccVariant& variant, const NccJob& part, Measure measure,
                               kernels::ScoreKind kind) {
  auto* out = static_cast<float*>(scores_.reserve(part.outputs() * sizeof(float)));
  if (variant.fused && variant.fused->fits(part, false)) {
    variant.fused->launch_scores(part, measure, kind, out, stream_.handle());
    return out;
  }
  void* moments = moments_.reserve(part.reference.count * kernels::moments_bytes);
  kernels::launch_reference_moments(part, moments, stream_.handle());
  kernels::launch_scores(part, measure, kind, sums(variant, part), moments, out, stream_.handle());
  return out;
}

}  // namespace dic::correlate::cuda
