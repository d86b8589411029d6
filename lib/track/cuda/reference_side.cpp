#include "track/cuda/reference_side.hpp"

#include <dic/kernels/peer.hpp>
#include <utility>
#include <vector>

namespace dic::track::cuda {
namespace {

template <typename T>
T* uploaded(kernels::DeviceBuffer& buffer, const std::vector<T>& values, const kernels::Stream& stream) {
  T* to = buffer.reserve<T>(values.size());
  kernels::upload(to, values.data(), values.size() * sizeof(T), stream);
  return to;
}

std::vector<std::int32_t> narrowed(const std::vector<std::int64_t>& indices) {
  return {indices.begin(), indices.end()};
}

}  // namespace

DevicePoints::DevicePoints(const Points& points, const kernels::Stream& stream)
    : size_(points.size()),
      grid_{points.grid.nx, points.grid.ny, points.grid.step, nullptr},
      cells_(points.cells()) {
  grid_.inside = uploaded(inside_, points.grid.inside, stream);
  uploaded(point_at_, narrowed(points.point_at), stream);
  uploaded(node_of_, narrowed(points.node_of), stream);
  uploaded(x_, points.x, stream);
  uploaded(y_, points.y, stream);
}

void DevicePoints::set_roi(const ImageView& roi, const kernels::Stream& stream) {
  if (roi.empty()) return;
  roi_ = roi_on_host_ = roi;
  const std::size_t bytes = roi.row_bytes * roi.height;
  roi_.data = roi_pixels_.reserve(bytes);
  kernels::upload(roi_pixels_.data(), roi.data, bytes, stream);
}

kernels::GridPoints DevicePoints::points() const {
  return {.nx = grid_.nx,
          .ny = grid_.ny,
          .point_at = static_cast<const std::int32_t*>(point_at_.data()),
          .node_of = static_cast<const std::int32_t*>(node_of_.data()),
          .x = static_cast<const int*>(x_.data()),
          .y = static_cast<const int*>(y_.data()),
          .count = size_};
}

ReferenceSide::ReferenceSide(const DevicePoints& points, std::shared_ptr<const DeviceFrame> frame,
                             const PlacesMemory* places, const RefineOptions& options, ImageBands* bands,
                             Pool<ReferenceMemory>::Loan memory, const kernels::Stream& stream)
    : frame_(std::move(frame)),
      bands_(bands),
      memory_(std::move(memory)),
      roi_on_host_(points.roi_on_host()),
      roi_(points.roi()),
      points_(points.points()) {
  frame_->hold(stream);
  if (places) move(points, *places, stream);
  prepare(options, stream);
  for (auto& tracked : memory_->tracked) tracked.reserve<kernels::TrackedPoint>(points.size());
  frame_->release_after(stream);
}

void ReferenceSide::place_planes(Interpolation interpolation, kernels::GreyRange* range,
                                 const kernels::Stream& stream) {
  const kernels::PlaneLayout& layout = reference_.layout;
  auto* pixels = memory_->pixels.reserve<kernels::ReferencePixel>(layout.elements()) + layout.origin();
  auto* rest = memory_->rest.reserve<std::uint32_t>(layout.elements()) + layout.origin();
  kernels::launch_reference_pixels(frame_->image, roi_, interpolation, pixels, rest, range, stream.handle());
  reference_.pixels = pixels;
  reference_.rest = rest;
}

void ReferenceSide::prepare(const RefineOptions& options, const kernels::Stream& stream) {
  const std::int64_t n = points_.count;
  auto* range = memory_->range.reserve<kernels::GreyRange>(1);
  auto* prepared = memory_->subsets.reserve<kernels::PreparedSubset>(n);
  auto* matrices = memory_->matrices.reserve<float>(n * kernels::matrix_floats(options.order));
  reference_.layout = kernels::PlaneLayout(frame_->image.width, frame_->image.height);
  reference_.range = range;
  reference_.points_in_a_row = points_.nx;
  if (bands_) {
    bands_->prepare(banded(), range, points_.x, points_.y, n, prepared, matrices, stream);
  } else {
    place_planes(options.interpolation, range, stream);
    kernels::launch_prepare_subsets(reference_, options, points_.x, points_.y, n, prepared, matrices,
                                    stream.handle());
  }
  if (material_) kernels::launch_mark_lost(material_, n, prepared, stream.handle());
  points_.subsets = prepared;
}

void ReferenceSide::go_on_from(const ReferenceSide& before, const kernels::Stream& stream) {
  const kernels::PointRange& known = before.points_.known;
  kernels::copy_between(tracked() + known.first, before.tracked() + known.first,
                        known.count() * sizeof(kernels::TrackedPoint), stream.handle());
}

CoarseReference& ReferenceSide::coarse(const kernels::Stream& stream) {
  if (coarse_) return *coarse_;
  Image moved;
  if (!roi_.empty() && roi_on_host_.empty()) {
    moved = Image(roi_.size(), ScalarType::u8);
    kernels::download(moved.row<std::uint8_t>(0), roi_.data, roi_.row_bytes * roi_.height, stream);
    stream.synchronize("the ROI of a reference");
  }
  return coarse_.emplace(pyramid_source(bands_, *frame_, stream), moved.empty() ? roi_on_host_ : moved.view(),
                         memory_->coarse, stream);
}

/// Puts points and ROI where they lie in the image.
void ReferenceSide::move(const DevicePoints& points, const PlacesMemory& places,
                         const kernels::Stream& stream) {
  const std::int64_t n = points_.count;
  int* x = memory_->centres.reserve<int>(2 * n);
  auto* material = memory_->material.reserve<MaterialPoint>(n);
  kernels::copy_between(x, places.centres.data(), 2 * n * sizeof(int), stream.handle());
  kernels::copy_between(material, places.material.data(), n * sizeof(MaterialPoint), stream.handle());
  points_.x = x;
  points_.y = x + n;
  material_ = material;
  if (roi_.empty()) return;
  roi_on_host_ = {};
  auto* moved = memory_->roi.reserve<std::uint8_t>(roi_.row_bytes * roi_.height);
  kernels::launch_move_roi(points_, points.cells(), roi_, material, moved, stream.handle());
  roi_.data = moved;
}

}  // namespace dic::track::cuda
