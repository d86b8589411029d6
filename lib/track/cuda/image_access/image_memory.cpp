#include "track/cuda/image_access/image_memory.hpp"

#include <algorithm>
#include <dic/kernels/points.hpp>

#include "track/cuda/memory/device_frame.hpp"
#include "track/cuda/split_subsets.hpp"

namespace dic::track::cuda {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;
/// Number of images: the reference, and the frames that a stream of usual capacity has under way.
constexpr std::size_t kFrames = 6;
constexpr std::size_t kPlanesOfReference = sizeof(kernels::ReferencePixel) + sizeof(std::uint32_t);

/// Memory of a point: its subset, its results in four frames, starts, tasks, lists, a copy while parts of
/// subsets are measured, and its node in two fields.
std::size_t bytes_of_point(int order) {
  constexpr std::size_t fields = 2 * 64, lists = 64, states = 8;
  return sizeof(kernels::PreparedSubset) + kernels::matrix_floats(order) * sizeof(float) +
         4 * sizeof(kernels::TrackedPoint) + 2 * sizeof(kernels::PointStart) + sizeof(kernels::RefineTask) +
         sizeof(kernels::RefineResult) + 2 * sizeof(PatchPosition) + sizeof(Peak) + fields + lists + states;
}

/// a - b, at least 0.
std::size_t difference(std::size_t a, std::size_t b) { return a > b ? a - b : 0; }

}  // namespace

ImageMemory::ImageMemory(const TrackOptions& options, const ImageView& image, std::int64_t points,
                         std::size_t free) {
  const std::size_t height = image.height, pitch = pitch_of(image),
                    plane = kernels::PlaneLayout(image.width, image.height).stride;
  const std::size_t pyramids = 2 * height * image.width / 3;
  const std::size_t frame = pitch + plane * sizeof(kernels::CoefficientPair), saturated = plane / 8,
                    reference = plane * kPlanesOfReference;
  const int order = options.refine.order;
  const std::size_t split = options.split ? SplitSubsets::most_bytes(options.refine) : 0;
  needed = height * (kFrames * (frame + saturated) + reference) + pyramids;
  available = options.gpu_memory > 0
                  ? options.gpu_memory * kMegabyte
                  : difference(free, points * bytes_of_point(order) + split + 256 * kMegabyte);
  if (needed <= available) return;
  const std::size_t users =
      options.split ? 2 : 1;  // parts of subsets are measured while the next frame is searched
  const std::size_t row_bytes = users * (pitch + reference + current_rows(1) * frame);
  const int window = options.refine.subset + 2 * std::max(options.search.value_or(0), options.refine.subset);
  rows =
      std::max(2 * window, static_cast<int>(std::min(height, difference(available, pyramids) / row_bytes)));
  rows += rows % 2;  // pyramids take two rows at once
}

std::string ImageMemory::note(const TrackOptions& options) const {
  if (!in_bands()) return {};
  const auto megabytes = [](std::size_t bytes) {
    return std::to_string((bytes + kMegabyte - 1) / kMegabyte);
  };
  return "Images take " + megabytes(needed) + " MB on a GPU, and " + megabytes(available) + " MB are " +
         (options.gpu_memory > 0 ? "allowed" : "free") + ": they are measured in bands of " +
         std::to_string(rows) + " rows.";
}

}  // namespace dic::track::cuda
