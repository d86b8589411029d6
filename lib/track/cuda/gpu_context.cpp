#include "track/cuda/gpu_context.hpp"

#include <utility>

namespace dic::track::cuda {

GpuContext::GpuContext(int rank, const kernels::Device& device, const TrackOptions& options,
                       const ImageMemory& memory, const MeasuredScene& scene)
    : rank_(rank),
      device_(device),
      points_(scene.points, scene.analysis, stream_),
      images_(make_image_access(options.refine, memory)),
      search_(device),
      refinement_(scene.points.size()),
      saturated_(options.refine),
      upload_(device.index, options.refine.interpolation, memory.in_bands(), refinement_.most_refined) {
  lists_.reserve(scene.points.size(), stream_);
}

std::shared_ptr<DeviceReference> GpuContext::make_reference(std::shared_ptr<const DeviceFrame> frame,
                                                            const PositionsMemory* positions,
                                                            const RefineOptions& options) {
  return std::make_shared<DeviceReference>(points_, std::move(frame), positions, options, *images_,
                                           reference_memory_.acquire(), stream_);
}

}  // namespace dic::track::cuda
