#include "track/cuda/feature_search.hpp"

namespace dic::track::cuda {
namespace {

/// The points of a frame as the rules of tracking see them.
struct HostPoints {
  using Index = std::int64_t;
  const PointNodes& points;
  const std::vector<kernels::TrackedPoint>& tracked;
  const std::vector<kernels::PreparedSubset>& subsets;
  std::span<const Effort> efforts;

  Status status(Index i) const { return tracked[i].result.status; }
  float zncc(Index i) const { return tracked[i].result.zncc; }
  ShapeParameters shape(Index i) const {
    return kernels::joined(tracked[i].u, tracked[i].v, tracked[i].result.shape);
  }
  /// True if a point can be looked for, and is worth a search by features.
  bool trackable(Index i) const {
    return subsets[i].status == Status::ok && (efforts.empty() || efforts[i] == Effort::search);
  }
  int x(Index i) const { return subsets[i].x; }
  int y(Index i) const { return subsets[i].y; }
  template <typename Visit>
  void for_each_neighbour(Index i, Visit&& visit) const {
    const Grid& grid = points.grid;
    track::for_each_neighbour(grid.nx, grid.ny, points.point_at.data(), points.node_of[i], visit);
  }
};

}  // namespace

void FeatureSearch::reserve() {
  tracked_.resize(static_cast<std::size_t>(points_.size()));
  subsets_.resize(tracked_.size());
}

void FeatureSearch::fetch_points(const GpuFrame& frame) {
  const kernels::GridPoints& points = frame.reference.points();
  const kernels::Stream& stream = frame.gpu.stream();
  const auto first = static_cast<std::size_t>(points.own.first),
             n = static_cast<std::size_t>(points.own.count());
  kernels::download(tracked_.data() + first, frame.reference.tracked() + first, n * sizeof(tracked_[0]),
                    stream);
  kernels::download(subsets_.data() + first, points.subsets + first, n * sizeof(subsets_[0]), stream);
  stream.synchronize("the refinement");
}

void FeatureSearch::find_lost(const RefineOptions& options, const GpuFrame& frame) {
  lost_ = lost_points(HostPoints{points_, tracked_, subsets_, frame.reference.efforts()}, points_.size(),
                      options.subset / 2, frame.current.image.size());
}

void FeatureSearch::find_starts(const RefineOptions& options, const GpuFrame& frame, Stretch stretch) {
  if (!finder_) {
    ImageAccess& images = frame.gpu.images();
    const kernels::Stream& stream = frame.gpu.stream();
    finder_.emplace(images.on_host(frame.reference.frame(), reference_, stream),
                    images.on_host(frame.current, current_, stream));
  }
  starts_ = starts_from_features(lost_, options, *finder_, frame.reference.frame().image.size(),
                                 frame.current.image.size(), stretch);
}

std::vector<kernels::RefineTask> FeatureSearch::tasks(const kernels::PointRange& own) const {
  std::vector<kernels::RefineTask> out;
  for (const FeatureStart& start : starts_) {
    if (start.point < own.first || start.point >= own.last) continue;
    const kernels::SplitShape shape = kernels::split(start.shape);
    out.push_back({static_cast<std::int32_t>(start.point), shape.u, shape.v, shape.rest});
  }
  return out;
}

}  // namespace dic::track::cuda
