#include "track/sequence.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <utility>

#include "core/device_name.hpp"
#include "track/known_result.hpp"
#include "track/stopwatch.hpp"

namespace dic::track {
namespace {

constexpr double kReanchor = 0.9;  // share of the anchor's points that must survive (strategy automatic)

bool everywhere(const Image& mask) {
  for (int y = 0; y < mask.height(); ++y) {
    const std::uint8_t* row = mask.row<std::uint8_t>(y);
    if (std::find(row, row + mask.width(), 0) != row + mask.width()) return false;
  }
  return true;
}

/// The ROI as it lies in the current picture: every cell of the grid is moved by its node's displacement.
Image moved_roi(const Image& roi, const Grid& grid, const Field& field) {
  if (roi.empty()) return {};
  Image out(roi.width(), roi.height(), ScalarType::u8);
  for (int y = 0; y < roi.height(); ++y)
    for (int x = 0; x < roi.width(); ++x) {
      if (!roi.row<std::uint8_t>(y)[x]) continue;
      const int i = std::clamp((x - grid.x0 + grid.step / 2) / grid.step, 0, grid.nx - 1);
      const int j = std::clamp((y - grid.y0 + grid.step / 2) / grid.step, 0, grid.ny - 1);
      const std::size_t node = static_cast<std::size_t>(j) * grid.nx + i;
      if (!has_values(field.status[node])) continue;
      // Two px each way: stretched cells must not leave gaps.
      const int to_x = static_cast<int>(std::floor(x + field.u[node])),
                to_y = static_cast<int>(std::floor(y + field.v[node]));
      for (int b = std::max(0, to_y); b <= std::min(roi.height() - 1, to_y + 1); ++b)
        for (int a = std::max(0, to_x); a <= std::min(roi.width() - 1, to_x + 1); ++a)
          out.row<std::uint8_t>(b)[a] = 255;
    }
  return out;
}

std::vector<MaterialPoint> material_of(const Points& points, const Field& field) {
  std::vector<MaterialPoint> material(points.size());
  for (std::size_t i = 0; i < material.size(); ++i) {
    const std::int64_t node = points.node_of[i];
    MaterialPoint& m = material[i];
    m.status = field.status[node] == Status::outlier ? Status::ok : field.status[node];
    if (m.status != Status::ok) continue;
    m.u = field.u[node];
    m.v = field.v[node];
    m.variance_u = field.sigma_u[node] * field.sigma_u[node];
    m.variance_v = field.sigma_v[node] * field.sigma_v[node];
  }
  return material;
}

std::int64_t measured_points(const Field& field) {
  return std::count_if(field.status.begin(), field.status.end(), has_values);
}

std::unique_ptr<Backend> open(const std::string& device, const TrackOptions& options, const Points& points) {
  const DeviceName name = parse_device(device);
  if (name.backend == "cpu") return open_cpu(options, points);
  return open_cuda(options, points, name.ordinals);
}

const TrackOptions& checked(const TrackOptions& options, ImageView reference) {
  const auto problems = options.problems();
  if (!problems.empty()) throw UsageError(problems.front());
  if (reference.empty()) throw UsageError("The reference picture is empty.");
  if (options.refine.subset > std::min(reference.width, reference.height))
    throw UsageError("The subset of " + std::to_string(options.refine.subset) +
                     " px is larger than the picture (" + std::to_string(reference.width) + "x" +
                     std::to_string(reference.height) + " px); choose a smaller --subset.");
  return options;
}

}  // namespace

Sequence::Sequence(const TrackOptions& options, ImageView reference, const Roi& roi)
    : options_(checked(options, reference)),
      reference_(reference),
      roi_(rasterize(roi, reference.width, reference.height)),
      points_(make_grid(roi_, options.step)),
      device_(choose_device(options_.device, points_.size())),
      backend_(open(device_.device, options_, points_)) {
  const Stopwatch watch;
  if (everywhere(roi_)) roi_ = {};
  anchor_ =
      backend_->anchor(backend_->take(reference), Subsets(points_, roi_.empty() ? Image() : copy_of(roi_)));
  reference_.data = nullptr;
  prepare_seconds_ = watch.seconds();
}

std::shared_ptr<const Frame> Sequence::take(ImageView current) const {
  if (current.width != reference_.width || current.height != reference_.height ||
      current.type != reference_.type)
    throw UsageError("The current picture must have the size and depth of the reference.");
  return backend_->take(current);
}

std::unique_ptr<Result> Sequence::measure(std::shared_ptr<const Frame> current, const std::stop_token& stop) {
  if (options_.reference_strategy == ReferenceStrategy::first)
    return anchor_->measure(std::move(current), stop);
  const bool automatic = options_.reference_strategy == ReferenceStrategy::automatic;
  Measured measured =
      automatic ? measure_or_reanchor(current, stop) : anchor_->measure(current, stop)->fetch();
  if (automatic) {
    last_frame_ = std::move(current);
    last_field_ = measured.field;
  } else {
    const Stopwatch watch;
    anchor_ = anchor_at(std::move(current), measured.field);
    measured.seconds.prepare += watch.seconds();
  }
  return std::make_unique<KnownResult>(std::move(measured));
}

/// A new anchor at `picture`, in which the points lie as `field` says.
std::unique_ptr<Anchor> Sequence::anchor_at(std::shared_ptr<const Frame> picture, const Field& field) const {
  return backend_->anchor(std::move(picture),
                          Subsets(points_, material_of(points_, field), moved_roi(roi_, points_.grid, field),
                                  reference_.width, reference_.height));
}

/// Where too many points are lost, the last frame becomes the reference, if that helps.
Measured Sequence::measure_or_reanchor(const std::shared_ptr<const Frame>& current,
                                       const std::stop_token& stop) {
  Measured measured = anchor_->measure(current, stop)->fetch();
  const auto found = measured_points(measured.field);
  if (!last_frame_ || static_cast<double>(found) >= kReanchor * static_cast<double>(anchor_->trackable()))
    return measured;
  const Stopwatch watch;
  auto before = std::exchange(anchor_, anchor_at(last_frame_, last_field_));
  measured.seconds.prepare += watch.seconds();
  Measured retried = anchor_->measure(current, stop)->fetch();
  const bool helps = measured_points(retried.field) > found;
  Measured& better = helps ? retried : measured;
  if (!helps) anchor_ = std::move(before);
  Measured& other = helps ? measured : retried;
  better.seconds += other.seconds;
  return std::move(better);
}

}  // namespace dic::track
