#include "correlate/cuda/gpu_worker.hpp"

#include <algorithm>
#include <vector>

#include "correlate/cuda/plan_cuda.hpp"

namespace dic::correlate::cuda {
namespace {

using kernels::NccJob;
using kernels::NccVariant;

/// Most device memory for the surfaces of a part, bytes; they also take at most half of the free memory.
constexpr std::size_t largest_part_bytes = std::size_t{1} << 30;

std::size_t pitch_of(const ImageView& image) {
  return kernels::device_pitch(image.width, size_of(image.type));
}

kernels::ImageExtent largest_extent(std::span<const ImageView> images) {
  kernels::ImageExtent extent{.count = static_cast<int>(images.size())};
  for (const ImageView& p : images) {
    extent.height = std::max(extent.height, p.height);
    extent.width = std::max(extent.width, p.width);
  }
  return extent;
}

}  // namespace

kernels::DevicePatches UploadedPatches::upload(const Patches& patches, const kernels::Stream& stream) {
  const kernels::DeviceImage* images = upload_images(patches.images, stream);
  kernels::DeviceImage single;
  if (patches.images.size() == 1) {
    const ImageView& p = patches.images.front();
    single = {pixels_.data(), static_cast<std::ptrdiff_t>(pitch_of(p)), p.width, p.height};
  }
  const std::size_t bytes = patches.positions.size_bytes();
  kernels::upload(positions_.reserve(bytes), patches.positions.data(), bytes, stream);
  return {.images = images,
          .positions = static_cast<const PatchPosition*>(positions_.data()),
          .count = static_cast<std::int64_t>(patches.positions.size()),
          .height = patches.size.height,
          .width = patches.size.width,
          .extent = largest_extent(patches.images),
          .single_image = single};
}

const kernels::DeviceImage* UploadedPatches::upload_images(std::span<const ImageView> images,
                                                           const kernels::Stream& stream) {
  std::size_t bytes = 0;
  for (const ImageView& p : images) bytes += pitch_of(p) * std::max(p.height, 0);
  auto* target = static_cast<std::byte*>(pixels_.reserve(bytes));
  // Kernels read whole words, also beyond the ends of rows.
  kernels::fill(target, 0, bytes, stream.handle());
  std::vector<kernels::DeviceImage> descriptions;
  for (const ImageView& p : images) {
    const std::size_t pitch = pitch_of(p);
    if (p.empty()) {
      descriptions.push_back({});
      continue;
    }
    kernels::upload(target, pitch, p.data, p.row_bytes, p.width * size_of(p.type), p.height, stream);
    descriptions.push_back({target, static_cast<std::ptrdiff_t>(pitch), p.width, p.height});
    target += pitch * p.height;
  }
  const std::size_t table = descriptions.size() * sizeof(kernels::DeviceImage);
  kernels::upload(descriptions_.reserve(table), descriptions.data(), table, stream);
  return static_cast<const kernels::DeviceImage*>(descriptions_.data());
}

/// Queues `launch` as often as repeat_kernels() says. Returns the result of the last run.
template <typename Launch>
auto GpuWorker::compute(Launch&& launch) {
  computing_.start(stream_);
  for (std::int64_t run = 1; run < runs_; ++run) launch();
  auto* result = launch();
  computing_.stop(stream_);
  return result;
}

void GpuWorker::surfaces(const Job& job, PairRange pairs, const std::string& name, Surfaces& out) {
  const kernels::DeviceScope scope(device_);
  const NccVariant& variant = variant_named(name);
  const NccJob whole = upload(job);
  const std::size_t output_bytes = job.shifts.count() * size_of(out.type);
  for_parts(whole, pairs, name, bytes_of_pair(variant, whole, false), [&](const NccJob& part) {
    const void* result = compute([&]() -> const void* {
      if (job.criterion == Criterion::cross_correlation) return runner_.sums(variant, part, stream_);
      return runner_.scores(variant, part, job.criterion, kernels::ScoreKind::value, stream_);
    });
    download(out.bytes.data() + part.first_pair * output_bytes, result, part.pairs * output_bytes);
  });
}

void GpuWorker::peaks(const Job& job, PairRange pairs, const std::string& name, std::span<Peak> out) {
  const kernels::DeviceScope scope(device_);
  const NccVariant& variant = variant_named(name);
  const NccJob whole = upload(job);
  const std::size_t bytes_per_pair = sizeof(Peak) + bytes_of_pair(variant, whole, true);
  for_parts(whole, pairs, name, bytes_per_pair, [&](const NccJob& part) {
    const Peak* result = compute([&] {
      auto* found = peaks_.reserve<Peak>(part.pairs);
      kernels::fill(found, 0, part.pairs * sizeof(Peak), stream_.handle());  // also clears the padding
      runner_.peaks(variant, part, job.criterion, found, stream_);
      return found;
    });
    download(out.data() + part.first_pair, result, part.pairs * sizeof(Peak));
  });
}

/// Uploads the job's data and returns the job for the device.
NccJob GpuWorker::upload(const Job& job) {
  NccJob whole = job_of(job.shape());
  uploading_.start(stream_);
  whole.reference = reference_.upload(job.reference, stream_);
  whole.search = search_.upload(job.search, stream_);
  if (!job.mask.empty()) whole.masks = masks_.upload_images(job.mask, stream_);
  uploading_.stop(stream_);
  seconds_ = {};
  return whole;
}

/// Calls body(part) for parts of the pairs that fit into memory, and waits for each.
template <typename Body>
void GpuWorker::for_parts(const NccJob& whole, PairRange pairs, const std::string& name,
                          std::size_t bytes_per_pair, Body&& body) {
  const std::size_t available = kernels::free_memory() + runner_.surface_bytes();
  const std::int64_t pairs_at_once =
      std::max<std::int64_t>(1, std::min(largest_part_bytes, available / 2) / bytes_per_pair);
  for (std::int64_t first = pairs.begin; first < pairs.end; first += pairs_at_once) {
    NccJob part = whole;
    part.first_pair = first;
    part.pairs = std::min(pairs_at_once, pairs.end - first);
    body(part);
    stream_.synchronize(kernels::describe(name, part));
    seconds_.kernels += computing_.seconds() / static_cast<double>(runs_);
    seconds_.download += downloading_.seconds();
  }
  seconds_.upload = uploading_.seconds();
}

/// Queues the copy of the results of a part to the host.
void GpuWorker::download(void* host, const void* device, std::size_t bytes) {
  downloading_.start(stream_);
  kernels::download(host, device, bytes, stream_);
  downloading_.stop(stream_);
}

}  // namespace dic::correlate::cuda
