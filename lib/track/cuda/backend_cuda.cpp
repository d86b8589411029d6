#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "track/backend.hpp"
#include "track/cuda/cuda_reference.hpp"
#include "track/cuda/tracker_context.hpp"

namespace dic::track {
namespace cuda {
namespace {

class CudaBackend final : public TrackingBackend {
 public:
  CudaBackend(const TrackOptions& options, const ImageView& image, const Points& points,
              const std::vector<kernels::Device>& devices, ThreadPool& pool)
      : context_(options, image, points, devices, pool) {}

  std::shared_ptr<const Frame> take(ImageView image) override { return context_.gpus().upload(image); }

  std::unique_ptr<ActiveReference> set_reference(std::shared_ptr<const Frame> reference, Image roi) override {
    roi_ = std::move(roi);
    for (int rank = 0; rank < context_.gpus().size(); ++rank) {
      GpuContext& gpu = context_.gpus()[rank];
      const kernels::DeviceScope scope(gpu.device().index);
      gpu.points().set_roi(roi_, gpu.stream());
    }
    return std::make_unique<CudaReference>(context_, static_cast<const GroupFrame&>(*reference), nullptr,
                                           nullptr);
  }
  std::unique_ptr<ActiveReference> replace_reference(std::shared_ptr<const Frame> image,
                                                     const TrackedPositions& positions,
                                                     const ActiveReference* before) override {
    const auto& located = context_.fields().locate(static_cast<const DevicePositions&>(positions));
    return std::make_unique<CudaReference>(context_, static_cast<const GroupFrame&>(*image), &located,
                                           static_cast<const CudaReference*>(before));
  }

  std::vector<std::string> kernels() const override {
    std::set<std::string> all{"cuda-icgn"};
    const GpuGroup& gpus = context_.gpus();
    for (int rank = 0; rank < gpus.size(); ++rank)
      all.insert(gpus[rank].variants().begin(), gpus[rank].variants().end());
    return {all.begin(), all.end()};
  }
  std::string device() const override {
    std::string all;
    const GpuGroup& gpus = context_.gpus();
    for (int rank = 0; rank < gpus.size(); ++rank)
      all += (all.empty() ? "cuda:" : ",") + std::to_string(gpus[rank].device().index);
    return all + ", " + gpus.first().device().model;
  }
  std::string note() const override { return context_.image_memory().note(context_.options()); }

 private:
  TrackerContext context_;
  Image roi_;  ///< of the original reference
};

}  // namespace
}  // namespace cuda

std::unique_ptr<TrackingBackend> open_cuda(const TrackOptions& options, const ImageView& image,
                                           const Points& points, std::span<const int> ordinals,
                                           ThreadPool& pool) {
  std::vector<kernels::Device> devices;
  for (const int ordinal : ordinals) devices.push_back(kernels::find_device(ordinal));
  if (ordinals.empty()) devices = kernels::find_devices();
  const kernels::DeviceScope first(devices.front().index);
  return std::make_unique<cuda::CudaBackend>(options, image, points, devices, pool);
}

}  // namespace dic::track
