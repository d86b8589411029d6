#include "track/cuda/multi_gpu/gpu_group.hpp"

#include <algorithm>
#include <dic/kernels/memory_space.hpp>
#include <dic/kernels/peer.hpp>

#include "analysis/noise.hpp"

namespace dic::track::cuda {
namespace {

std::vector<std::unique_ptr<GpuContext>> open_gpus(const TrackOptions& options, const ImageMemory& memory,
                                                   const MeasuredScene& scene,
                                                   const std::vector<kernels::Device>& devices) {
  const int count = gpus_for(scene.points.size(), static_cast<int>(devices.size()));
  std::vector<std::unique_ptr<GpuContext>> gpus;
  for (int rank = 0; rank < count; ++rank) {
    const kernels::DeviceScope scope(devices[rank].index);
    gpus.push_back(std::make_unique<GpuContext>(rank, devices[rank], options, memory, scene));
  }
  return gpus;
}

/// Allows every GPU to read the memory of the others. Returns whether all can.
bool connect(const std::vector<std::unique_ptr<GpuContext>>& gpus) {
  bool all = true;
  for (const auto& gpu : gpus) {
    const kernels::DeviceScope scope(gpu->device().index);
    for (const auto& other : gpus)
      if (other->device().index != gpu->device().index)
        all &= kernels::allow_peer_access(other->device().index);
  }
  return all;
}

}  // namespace

GpuGroup::GpuGroup(const TrackOptions& options, const ImageMemory& memory, const MeasuredScene& scene,
                   const std::vector<kernels::Device>& devices, core::ThreadPool& pool)
    : pool_(pool),
      noise_patches_(scene.analysis.noise_patches),
      gpus_(open_gpus(options, memory, scene, devices)),
      peer_access_(connect(gpus_)),
      shares_rows_(peer_access_ && !memory.in_bands()),
      team_(size()),
      balancer_(scene.points, size()),
      stager_(pool, memory.in_bands()) {}

void GpuGroup::run(const std::function<void(int rank)>& body) {
  team_.run([&](int rank) {
    const kernels::DeviceScope scope(gpus_[rank]->device().index);
    body(rank);
  });
}

kernels::RowRange GpuGroup::rows_from_host(int rank, int height) const {
  if (!shares_rows_) return {0, height};
  return {height * rank / size(), height * (rank + 1) / size()};
}

double GpuGroup::noise_of(const ImageView& image) {
  if (noise_patches_.empty() || !kernels::is_device_memory(image.data))
    return analysis::image_noise(image, noise_patches_, pool_);
  if (!patches_) patches_ = std::make_unique<analysis::GpuPatches>(noise_patches_);
  return analysis::image_noise(patches_->copy(image).view(), patches_->in_copy(), pool_);
}

std::shared_ptr<const GroupFrame> GpuGroup::upload(const ImageView& image) {
  const std::lock_guard lock(uploading_);
  return upload(image, stager_.stage(image));
}

std::shared_ptr<const GroupFrame> GpuGroup::upload(const ImageView& image,
                                                   const analysis::Conditioning& conditioning) {
  const std::lock_guard lock(uploading_);
  const StagedRows staged = stager_.stage(image, conditioning);
  ImageView corrected = image;
  corrected.data = staged->data();
  corrected.row_bytes = static_cast<std::ptrdiff_t>(pitch_of(image));
  corrected.bit_depth = 0;  // corrected greys may be larger
  auto frame = upload(corrected, staged);
  frame->corrected = corrected;
  return frame;
}

std::shared_ptr<GroupFrame> GpuGroup::upload(const ImageView& image, const StagedRows& staged) {
  std::vector<ArrivingFrame> frames;
  for (int rank = 0; rank < size(); ++rank)
    frames.push_back(gpus_[rank]->upload().begin(image, staged, rows_from_host(rank, image.height)));
  std::span<const ArrivingFrame> exchanged;
  if (shares_rows_) exchanged = frames;
  for (int rank = 0; rank < size(); ++rank) gpus_[rank]->upload().send(frames[rank], exchanged);
  auto out = std::make_shared<GroupFrame>();
  out->noise = noise_of(image);
  for (int rank = 0; rank < size(); ++rank)
    out->on_gpu.push_back(gpus_[rank]->upload().finish(frames[rank], exchanged));
  return out;
}

}  // namespace dic::track::cuda
