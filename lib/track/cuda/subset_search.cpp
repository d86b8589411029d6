#include "track/cuda/subset_search.hpp"

#include <algorithm>
#include <array>

#include "correlate/cuda/plan_cuda.hpp"

namespace dic::track::cuda {

using kernels::DeviceImage;
using kernels::NccJob;

namespace {

DeviceImage description_of(const ImageView& p) { return {p.data, p.row_bytes, p.width, p.height}; }
bool same_place(const ImageView& a, const ImageView& b) {
  return a.data == b.data && a.row_bytes == b.row_bytes && a.width == b.width && a.height == b.height;
}

CorrelateShape shape_of(std::int64_t count, int size, int range) {
  return {.pairing = Pairing::one_to_one,
          .reference = {size, size},
          .search = {size + 2 * range, size + 2 * range},
          .shifts = {0, 2 * range, 0, 2 * range},
          .references = count,
          .pairs = count};
}

/// Fills in the members that the images determine.
void complete(CorrelateShape& shape, const SearchImages& images) {
  shape.criterion = Criterion::zncc;
  shape.type = images.current.type;
  shape.bit_depth = images.current.bit_depth;
  shape.masked = images.clipped;
}

}  // namespace

SubsetSearch::SubsetSearch(const kernels::Device& device)
    : device_(correlate::cuda::device_properties(device)) {}

std::string SubsetSearch::peaks(const SearchImages& images, const kernels::SearchWindows& windows, Peak* out,
                                const kernels::Stream& stream) {
  return peaks(images, shape_of(windows.count, windows.size, windows.range), windows.references,
               windows.windows, out, stream);
}

bool SubsetSearch::follows(const ImageView& image, int size, int range) const {
  CorrelateShape shape = shape_of(1, size, range);
  complete(shape, {{}, image, {}});
  return kernels::follow_unsupported_reason(correlate::cuda::job_of(shape)).empty();
}

void SubsetSearch::follow(const SearchImages& images, const kernels::GridPoints& points, std::int64_t count,
                          int size, const kernels::FollowedSearch& search, const kernels::Stream& stream) {
  CorrelateShape shape = shape_of(count, size, search.range);
  complete(shape, images);
  kernels::launch_follow_peaks(job_of(images, shape, stream), points, search, stream.handle());
}

std::string SubsetSearch::peaks(const SearchImages& images, CorrelateShape shape,
                                const PatchPosition* references, const PatchPosition* windows, Peak* out,
                                const kernels::Stream& stream) {
  complete(shape, images);
  NccJob job = job_of(images, shape, stream);
  job.reference.positions = references;
  job.search.positions = windows;
  const std::string variant = correlate::cuda::plan(shape, device_).variant;
  runner_.peaks_in_parts(correlate::cuda::variant_named(variant), job, Criterion::zncc, out, stream);
  return variant;
}

/// A job without the positions of subsets and windows.
NccJob SubsetSearch::job_of(const SearchImages& images, const CorrelateShape& shape,
                            const kernels::Stream& stream) {
  const DeviceImage* descriptions = describe(images, stream);
  NccJob job = correlate::cuda::job_of(shape);
  job.reference.images = descriptions;
  job.search.images = descriptions + 1;
  if (images.clipped && !images.roi.empty()) job.masks = descriptions + 2;
  job.search.extent = {1, images.current.height, images.current.width};
  job.reference.single_image = description_of(images.reference);
  job.search.single_image = description_of(images.current);
  job.search.count = shape.pairing == Pairing::n_to_m ? shape.pairs / shape.references : shape.pairs;
  return job;
}

/// Descriptions of reference, current image and ROI, in device memory.
const DeviceImage* SubsetSearch::describe(const SearchImages& images, const kernels::Stream& stream) {
  const std::array views{images.reference, images.current, images.roi};
  auto* descriptions = descriptions_.reserve<DeviceImage>(described_.size() * views.size());
  const auto* known = std::ranges::find_if(
      described_, [&](const auto& others) { return std::ranges::equal(views, others, same_place); });
  if (known != described_.end()) return descriptions + (known - described_.begin()) * views.size();
  descriptions += next_description_ * views.size();
  described_[next_description_] = views;
  next_description_ = (next_description_ + 1) % described_.size();
  std::array<DeviceImage, 3> table;
  std::ranges::transform(views, table.begin(), description_of);
  kernels::upload(descriptions, table.data(), sizeof(table), stream);
  return descriptions;
}

}  // namespace dic::track::cuda
