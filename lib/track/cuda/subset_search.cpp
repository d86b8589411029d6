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

}  // namespace

SubsetSearch::SubsetSearch(const kernels::Device& device) : facts_(correlate::cuda::facts_of(device)) {}

std::string SubsetSearch::peaks(const SearchPictures& pictures, const SubsetWindows& windows, Peak* out,
                                const kernels::Stream& stream) {
  const int size = windows.size, range = windows.range;
  CorrelateShape shape{.form = Form::one_to_one,
                       .ref_h = size,
                       .ref_w = size,
                       .search_h = size + 2 * range,
                       .search_w = size + 2 * range,
                       .shifts = {0, 2 * range, 0, 2 * range},
                       .references = windows.count,
                       .pairs = windows.count};
  return peaks(pictures, shape, windows.references, windows.windows, out, stream);
}

std::string SubsetSearch::peaks(const SearchPictures& pictures, CorrelateShape shape,
                                const MatrixPosition* references, const MatrixPosition* windows, Peak* out,
                                const kernels::Stream& stream) {
  shape.measure = Measure::zncc;
  shape.type = pictures.current.type;
  shape.bit_depth = pictures.current.bit_depth;
  shape.masked = pictures.cut;
  const DevicePicture* descriptions = describe(pictures, stream);
  NccJob job = correlate::cuda::job_of(shape);
  job.reference.pictures = descriptions;
  job.reference.positions = references;
  job.search.pictures = descriptions + 1;
  if (pictures.cut && !pictures.roi.empty()) job.masks = descriptions + 2;
  job.search.positions = windows;
  job.search.extent = {1, pictures.current.height, pictures.current.width};
  job.search.count = shape.form == Form::n_to_m ? shape.pairs / shape.references : shape.pairs;
  const std::string variant = correlate::cuda::plan(shape, facts_).variant;
  runner_.peaks_in_parts(correlate::cuda::variant_named(variant), job, Measure::zncc, out, stream);
  return variant;
}

/// Descriptions of reference, current picture and ROI, in device memory.
const DevicePicture* SubsetSearch::describe(const SearchPictures& pictures, const kernels::Stream& stream) {
  const std::array views{pictures.reference, pictures.current, pictures.roi};
  auto* descriptions = descriptions_.reserve<DevicePicture>(views.size());
  if (std::ranges::equal(views, described_, same_place)) return descriptions;
  described_ = views;
  std::array<DevicePicture, 3> table;
  std::ranges::transform(views, table.begin(), description_of);
  kernels::upload(descriptions, table.data(), sizeof(table), stream);
  return descriptions;
}

}  // namespace dic::track::cuda
