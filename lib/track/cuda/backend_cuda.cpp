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
  CudaBackend(const TrackOptions& options, const ImageView& image, const MeasuredScene& scene,
              const std::vector<kernels::Device>& devices, core::ThreadPool& pool)
      : context_(options, image, scene, devices, pool), image_(scene.image) {}

  std::shared_ptr<const Frame> take(ImageView image) override { return context_.gpus().upload(image); }
  std::shared_ptr<const Frame> take_and_correct(const ImageView& image,
                                                const analysis::Conditioning& conditioning) override {
    return context_.gpus().upload(image, conditioning);
  }

  std::shared_ptr<const PointPositions> place(const Points& points) override {
    return std::make_shared<DevicePositions>(points, image_);
  }
  std::unique_ptr<ActiveReference> make_reference(std::shared_ptr<const Frame> image,
                                                  const PointPositions& positions,
                                                  const ActiveReference* before) override {
    const auto& where = static_cast<const DevicePositions&>(positions);
    return std::make_unique<CudaReference>(context_, static_cast<const GroupFrame&>(*image),
                                           where.are_nodes ? nullptr : &context_.fields().locate(where),
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
  const Size image_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<TrackingBackend> open_cuda(const TrackOptions& options, const ImageView& image,
                                           const MeasuredScene& scene, std::span<const int> ordinals,
                                           core::ThreadPool& pool) {
  std::vector<kernels::Device> devices;
  for (const int ordinal : ordinals) devices.push_back(kernels::find_device(ordinal));
  if (ordinals.empty()) devices = kernels::find_devices();
  const kernels::DeviceScope first(devices.front().index);
  return std::make_unique<cuda::CudaBackend>(options, image, scene, devices, pool);
}

}  // namespace dic::track
