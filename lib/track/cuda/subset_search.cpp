#include "track/cuda/subset_search.hpp"

#include <algorithm>
#include <array>

#include "correlate/cuda/plan_cuda.hpp"

namespace dic::track::cuda {

using kernels::DevicePicture;
using kernels::NccJob;

namespace {

DevicePicture description_of(const ImageView& p) { return {p.data, p.row_bytes, p.width, p.height}; }
bool same_place(const ImageView& a, const ImageView& b) {
  return a.data == b.data && a.row_bytes == b.row_bytes && a.width == b.width && a.height == b.height;
}

CorrelateShape shape_of(std::int64_t count, int size, int range) {
  return {.form = Form::one_to_one,
          .ref_h = size,
          .ref_w = size,
          .search_h = size + 2 * range,
          .search_w = size + 2 * range,
          .shifts = {0, 2 * range, 0, 2 * range},
          .references = count,
          .pairs = count};
}

/// Of pictures.
void complete(CorrelateShape& shape, const SearchPictures& pictures) {
  shape.measure = Measure::zncc;
  shape.type = pictures.current.type;
  shape.bit_depth = pictures.current.bit_depth;
  shape.masked = pictures.cut;
}

}  // namespace

SubsetSearch::SubsetSearch(const kernels::Device& device) : facts_(correlate::cuda::facts_of(device)) {}

std::string SubsetSearch::peaks(const SearchPictures& pictures, const SubsetWindows& windows, Peak* out,
                                const kernels::Stream& stream) {
  return peaks(pictures, shape_of(windows.count, windows.size, windows.range), windows.references,
               windows.windows, out, stream);
}

bool SubsetSearch::follows(const ImageView& picture, int size, int range) const {
  CorrelateShape shape = shape_of(1, size, range);
  complete(shape, {{}, picture, {}});
  return kernels::refuses_following(correlate::cuda::job_of(shape)).empty();
}

void SubsetSearch::follow(const SearchPictures& pictures, const kernels::GridPoints& points,
                          std::int64_t count, int size, const kernels::FollowedSearch& search,
                          const kernels::Stream& stream) {
  CorrelateShape shape = shape_of(count, size, search.range);
  complete(shape, pictures);
  kernels::launch_follow_peaks(job_of(pictures, shape, stream), points, search, stream.handle());
}

std::string SubsetSearch::peaks(const SearchPictures& pictures, CorrelateShape shape,
                                const MatrixPosition* references, const MatrixPosition* windows, Peak* out,
                                const kernels::Stream& stream) {
  complete(shape, pictures);
  NccJob job = job_of(pictures, shape, stream);
  job.reference.positions = references;
  job.search.positions = windows;
  const std::string variant = correlate::cuda::plan(shape, facts_).variant;
  runner_.peaks_in_parts(correlate::cuda::variant_named(variant), job, Measure::zncc, out, stream);
  return variant;
}

/// Without positions.
NccJob SubsetSearch::job_of(const SearchPictures& pictures, const CorrelateShape& shape,
                            const kernels::Stream& stream) {
  const DevicePicture* descriptions = describe(pictures, stream);
  NccJob job = correlate::cuda::job_of(shape);
  job.reference.pictures = descriptions;
  job.search.pictures = descriptions + 1;
  if (pictures.cut && !pictures.roi.empty()) job.masks = descriptions + 2;
  job.search.extent = {1, pictures.current.height, pictures.current.width};
  job.reference.only = description_of(pictures.reference);
  job.search.only = description_of(pictures.current);
  job.search.count = shape.form == Form::n_to_m ? shape.pairs / shape.references : shape.pairs;
  return job;
}

/// Descriptions of reference, current picture and ROI, in device memory.
const DevicePicture* SubsetSearch::describe(const SearchPictures& pictures, const kernels::Stream& stream) {
  const std::array views{pictures.reference, pictures.current, pictures.roi};
  auto* descriptions = descriptions_.reserve<DevicePicture>(described_.size() * views.size());
  const auto* known = std::ranges::find_if(
      described_, [&](const auto& others) { return std::ranges::equal(views, others, same_place); });
  if (known != described_.end()) return descriptions + (known - described_.begin()) * views.size();
  descriptions += next_description_ * views.size();
  described_[next_description_] = views;
  next_description_ = (next_description_ + 1) % described_.size();
  std::array<DevicePicture, 3> table;
  std::ranges::transform(views, table.begin(), description_of);
  kernels::upload(descriptions, table.data(), sizeof(table), stream);
  return descriptions;
}

}  // namespace dic::track::cuda
