#include "track/cuda/tracker_context.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <limits>
#include <string>

namespace dic::track::cuda {
namespace {

/// Throws DeviceError for images that are too large: kernels count the pixels of a plane with 31 bits.
const ImageView& checked(const ImageView& image) {
  if (kernels::PlaneLayout(image.width, image.height).elements() > std::numeric_limits<int>::max())
    throw DeviceError("Images of " + std::to_string(image.width) + "x" + std::to_string(image.height) +
                      " px are too large for a GPU, which takes 2^31 px; use --device cpu.");
  return image;
}

/// Free memory of the GPU that has least, bytes.
std::size_t free_memory(const std::vector<kernels::Device>& devices) {
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const kernels::Device& device : devices) {
    const kernels::DeviceScope scope(device.index);
    least = std::min(least, kernels::free_memory());
  }
  return least;
}

}  // namespace

void SharedCoarseSearch::run(DeviceReference& reference, const PyramidSource& current,
                             const kernels::Stream& stream) {
  CoarseReference& coarse = reference.coarse(pool_, stream);
  coarse.search().limit_motion(largest_motion_);
  field_ = search_.run(coarse, current, stream);
  if (field_.valid()) return;
  field_.u.assign(field_.u.size(), 0);
  field_.v.assign(field_.v.size(), 0);
}

TrackerContext::TrackerContext(const TrackOptions& options, const ImageView& image,
                               const MeasuredScene& scene, const std::vector<kernels::Device>& devices,
                               core::ThreadPool& pool)
    : options_(options),
      points_(scene.points),
      memory_(options, checked(image), scene.points.size(), free_memory(devices)),
      gpus_(options, memory_, scene, devices, pool),
      coarse_(gpus_.first().search().whole, scene.analysis.largest_motion, pool),
      features_(scene.points),
      fields_(options, memory_, scene.points.shared_grid, gpus_.first().device().index,
              gpus_.first().points(), pool) {}

}  // namespace dic::track::cuda
