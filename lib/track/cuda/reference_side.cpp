#include "track/cuda/reference_side.hpp"

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
    : size_(points.size()), grid_{points.grid.nx, points.grid.ny, points.grid.step, nullptr} {
  grid_.inside = uploaded(inside_, points.grid.inside, stream);
  uploaded(point_at_, narrowed(points.point_at), stream);
  uploaded(node_of_, narrowed(points.node_of), stream);
}

kernels::GridPoints DevicePoints::points() const {
  return {.nx = grid_.nx,
          .ny = grid_.ny,
          .point_at = static_cast<const std::int32_t*>(point_at_.data()),
          .node_of = static_cast<const std::int32_t*>(node_of_.data()),
          .count = size_};
}

ReferenceSide::ReferenceSide(const DevicePoints& points, std::shared_ptr<const DeviceFrame> frame,
                             std::shared_ptr<const Subsets> subsets, const RefineOptions& options,
                             Pool<ReferenceMemory>::Loan memory, const kernels::Stream& stream)
    : frame_(std::move(frame)),
      memory_(std::move(memory)),
      subsets_(std::move(subsets)),
      points_(points.points()) {
  frame_->hold(stream);
  place_roi(stream);
  const ImageView& picture = frame_->picture;
  reference_.layout = kernels::PlaneLayout(picture.width, picture.height);
  auto* pixels = memory_->pixels.reserve<kernels::ReferencePixel>(reference_.layout.elements()) +
                 reference_.layout.origin();
  auto* rest =
      memory_->rest.reserve<std::uint32_t>(reference_.layout.elements()) + reference_.layout.origin();
  auto* range = memory_->range.reserve<kernels::GreyRange>(1);
  kernels::launch_reference_pixels(picture, roi_, options.interpolation, pixels, rest, range,
                                   stream.handle());
  reference_.pixels = pixels;
  reference_.rest = rest;
  reference_.range = range;

  place_subsets(stream);
  auto* prepared = memory_->subsets.reserve<kernels::PreparedSubset>(points.size());
  auto* matrices = memory_->matrices.reserve<float>(points.size() * kernels::matrix_floats(options.order));
  kernels::launch_prepare_subsets(reference_, options, points_.x, points_.y, points.size(), prepared,
                                  matrices, stream.handle());
  if (material_) kernels::launch_mark_lost(material_, points.size(), prepared, stream.handle());
  points_.subsets = prepared;
  memory_->tracked.reserve<kernels::TrackedPoint>(points.size());
  frame_->release_after(stream);
}

CoarseReference& ReferenceSide::coarse(const kernels::Stream& stream) {
  if (!coarse_)
    coarse_.emplace(frame_->picture, subsets_->roi.empty() ? ImageView{} : subsets_->roi.view(),
                    memory_->coarse, stream);
  return *coarse_;
}

void ReferenceSide::place_roi(const kernels::Stream& stream) {
  if (subsets_->roi.empty()) return;
  roi_ = subsets_->roi.view();
  const std::size_t bytes = roi_.row_bytes * roi_.height;
  void* to = memory_->roi.reserve(bytes);
  kernels::upload(to, roi_.data, bytes, stream);
  roi_.data = to;
}

void ReferenceSide::place_subsets(const kernels::Stream& stream) {
  const Subsets& subsets = *subsets_;
  int* x = memory_->centres.reserve<int>(2 * subsets.x.size());
  int* y = x + subsets.x.size();
  kernels::upload(x, subsets.x.data(), subsets.x.size() * sizeof(int), stream);
  kernels::upload(y, subsets.y.data(), subsets.y.size() * sizeof(int), stream);
  points_.x = x;
  points_.y = y;
  if (!subsets.material.empty()) material_ = uploaded(memory_->material, subsets.material, stream);
}

}  // namespace dic::track::cuda
