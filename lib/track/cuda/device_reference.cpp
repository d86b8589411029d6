#include "track/cuda/device_reference.hpp"

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

DevicePoints::DevicePoints(const PointNodes& nodes, const ReferenceAnalysis& analysis,
                           const kernels::Stream& stream)
    : size_(nodes.size()),
      grid_{nodes.grid.nx, nodes.grid.ny, nodes.grid.step, nullptr},
      cells_(nodes.cells()),
      repeats_(!analysis.alternatives.empty()) {
  std::vector<int> x, y;
  for (std::int64_t point = 0; point < nodes.size(); ++point) {
    x.push_back(nodes.x(point));
    y.push_back(nodes.y(point));
  }
  grid_.inside = uploaded(inside_, nodes.grid.inside, stream);
  uploaded(point_at_, narrowed(nodes.point_at), stream);
  uploaded(node_of_, narrowed(nodes.node_of), stream);
  uploaded(x_, x, stream);
  uploaded(y_, y, stream);
  if (repeats_) uploaded(alternatives_, analysis.alternatives, stream);
  if (!analysis.roi.empty()) upload_roi(analysis.roi.view(), stream);
}

void DevicePoints::upload_roi(const ImageView& roi, const kernels::Stream& stream) {
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

DeviceReference::DeviceReference(const DevicePoints& points, std::shared_ptr<const DeviceFrame> frame,
                                 const PositionsMemory* positions, const RefineOptions& options,
                                 ImageAccess& access, core::ObjectPool<ReferenceMemory>::Handle memory,
                                 const kernels::Stream& stream)
    : frame_(std::move(frame)),
      access_(access),
      memory_(std::move(memory)),
      roi_on_host_(points.roi_on_host()),
      image_{*frame_, points.roi(), {}},
      points_(points.points()) {
  frame_->wait_ready(stream);
  points_.image = frame_->image.size();
  if (positions) move(points, *positions, stream);
  prepare(options, stream);
  for (auto& tracked : memory_->tracked) tracked.reserve<kernels::TrackedPoint>(points.size());
  frame_->release_after(stream);
}

ReferenceSubsets DeviceReference::subsets() const {
  return {points_.x, points_.y, points_.count, static_cast<kernels::PreparedSubset*>(memory_->subsets.data()),
          static_cast<float*>(memory_->matrices.data())};
}

void DeviceReference::prepare(const RefineOptions& options, const kernels::Stream& stream) {
  const std::int64_t n = points_.count;
  memory_->subsets.reserve<kernels::PreparedSubset>(n);
  memory_->matrices.reserve<float>(n * kernels::matrix_floats(options.order));
  image_.planes.layout = kernels::PlaneLayout(frame_->image.width, frame_->image.height);
  image_.planes.grid_columns = points_.nx;
  const ReferenceSubsets all = subsets();
  access_.prepare(image_, memory_->planes, all, stream);
  if (material_) kernels::launch_mark_lost(material_, n, all.prepared, stream.handle());
  points_.subsets = all.prepared;
}

void DeviceReference::limit_effort(std::span<const Effort> efforts, const kernels::Stream& stream) {
  efforts_.assign(efforts.begin(), efforts.end());
  points_.efforts = uploaded(memory_->efforts, efforts_, stream);
  kernels::launch_give_up_effortless(points_, subsets().prepared, stream.handle());
}

void DeviceReference::continue_from(const DeviceReference& before, const kernels::Stream& stream) {
  take_motion(before, before.points_.known, stream);
}

void DeviceReference::start_from(const DeviceReference& other, const kernels::Stream& stream) {
  take_motion(other, other.points_.own, stream);
}

void DeviceReference::take_motion(const DeviceReference& from, const kernels::PointRange& points,
                                  const kernels::Stream& stream) {
  kernels::copy_between(tracked() + points.first, from.tracked() + points.first,
                        points.count() * sizeof(kernels::TrackedPoint), stream.handle());
}

CoarseReference& DeviceReference::coarse(core::ThreadPool& pool, const kernels::Stream& stream) {
  if (coarse_) return *coarse_;
  const ImageView& roi = image_.roi;
  Image moved;
  if (!roi.empty() && roi_on_host_.empty()) {
    moved = Image(roi.size(), ScalarType::u8);
    kernels::download(moved.row<std::uint8_t>(0), roi.data, roi.row_bytes * roi.height, stream);
    stream.synchronize("the ROI of a reference");
  }
  return coarse_.emplace(access_.pyramid_source(*frame_, stream), moved.empty() ? roi_on_host_ : moved.view(),
                         pool, memory_->coarse, stream);
}

/// Moves the points, and the ROI of followed points, to where they lie in the image.
void DeviceReference::move(const DevicePoints& points, const PositionsMemory& positions,
                           const kernels::Stream& stream) {
  const std::int64_t n = points_.count;
  int* x = memory_->centres.reserve<int>(2 * n);
  auto* material = memory_->material.reserve<MaterialPoint>(n);
  kernels::copy_between(x, positions.centres.data(), 2 * n * sizeof(int), stream.handle());
  kernels::copy_between(material, positions.material.data(), n * sizeof(MaterialPoint), stream.handle());
  points_.x = x;
  points_.y = x + n;
  material_ = material;
  ImageView& roi = image_.roi;
  if (roi.empty() || !positions.are_followed) return;
  roi_on_host_ = {};
  auto* moved = memory_->roi.reserve<std::uint8_t>(roi.row_bytes * roi.height);
  kernels::launch_move_roi(points_, points.cells(), roi, material, moved, stream.handle());
  roi.data = moved;
}

}  // namespace dic::track::cuda
