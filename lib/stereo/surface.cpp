#include "stereo/surface.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "stereo/epipolar_check.hpp"
#include "track/stopwatch.hpp"

namespace dic::stereo {
namespace {

constexpr float kMissingFloat = std::numeric_limits<float>::quiet_NaN();
/// Angle from the normal of the surface, degrees, beyond which a point is not `ok`: no shape function follows
/// a surface that turns away so fast, and the error is far larger than sigma.
constexpr double kSteepest = 60;

MeasuredSubsets subsets_of(const TrackOptions& options) {
  return {options.refine.subset, options.refine.order, options.refine.weights};
}

std::vector<std::uint8_t> usable_of(const Field& field) {
  std::vector<std::uint8_t> usable(field.status.size());
  std::ranges::transform(field.status, usable.begin(), [](Status status) { return status == Status::ok; });
  return usable;
}

void check(StereoFrame& frame, const SurfaceJob& job, FrameScratch& scratch, core::ThreadPool& pool) {
  const EpipolarSummary summary = mark_contradictions(
      {job.grid, job.out.epipolar, job.out.epipolar_sigma, scratch.offset.data(), job.out.status}, pool);
  frame.epipolar_median = summary.median, frame.epipolar_sd = summary.sd;
}

/// Stores the displacements after the check, and computes the strain.
void finish(StereoFrame& frame, const SurfaceJob& job, const MotionTerms& motion, const StrainOptions& strain,
            const StereoSubsets& subsets, core::ThreadPool& pool) {
  const track::Stopwatch watch;
  core::for_each_index(pool, job.grid.nodes(), [&](std::int64_t k) { StoreDisplacement{job, motion}(k); });
  find_strain(job, strain, subsets, pool);
  frame.seconds.strain += watch.seconds();
}

}  // namespace

Surface::Surface(const StereoOptions& options, const CameraRig& rig, std::shared_ptr<const Grid> grid,
                 ImageView left, core::ThreadPool& pool)
    : options_(options),
      cameras_(camera_pair_of(rig)),
      calibration_(rig),
      grid_(std::move(grid)),
      pool_(pool),
      subsets_{subsets_of(options.track), subsets_of(options.track)},
      filter_(subsets_.left, grid_->step),
      responses_(bend_responses(left, *grid_, subsets_.left, pool)) {}
Surface::~Surface() = default;

Match Surface::matched(FrameResult result, int order) const {
  Match match{std::move(result), {}};
  MeasuredSubsets subsets = subsets_.left;
  subsets.order = order;
  match.neighbours = subtract_bends(match.field(), subsets, filter_, responses_, pool_);
  return match;
}

StereoFrame Surface::reference(Match right, int right_order) {
  right_reference_ = std::move(right);
  subsets_.right.order = right_order;
  if (options_.axes != StereoAxes::camera) {
    const StereoFrame in_camera = reference_in_axes();
    axes_ = axes_of(options_, *grid_, reference_.position, usable_of(in_camera.field));
  }
  return reference_in_axes();
}

StereoFrame Surface::reference_with(const CameraRig& rig) {
  cameras_ = camera_pair_of(rig);
  calibration_ = CalibrationErrors(rig);
  axes_ = {};
  return reference(std::move(*right_reference_), subsets_.right.order);
}

std::optional<RigCorrection> Surface::correction_of(const CameraRig& rig) const {
  constexpr std::size_t kFewPoints = 20, kMostPoints = 5000;
  const Field& field = right_reference_->field();
  std::vector<std::int64_t> nodes;
  for (std::int64_t k = 0; k < grid_->nodes(); ++k)
    if (field.status[k] == Status::ok) nodes.push_back(k);
  if (nodes.size() < kFewPoints) return {};
  const NodeGrid grid = node_grid_of(*grid_);
  std::vector<Camera::Point> left, right;
  const std::size_t each = nodes.size() / kMostPoints + 1;
  for (std::size_t n = 0; n < nodes.size(); n += each) {
    const Seen to = seen(*right_reference_, nodes[n]);
    left.push_back({grid.x(nodes[n]), grid.y(nodes[n])}), right.push_back({to.x, to.y});
  }
  if (left.size() < kFewPoints) return {};
  return refine_rig(rig, left, right);
}

SurfaceJob Surface::job() const {
  return {.grid = node_grid_of(*grid_),
          .cameras = cameras_,
          .axes = {from_eigen(axes_.rotation), from_eigen(axes_.origin)},
          .calibration = calibration_.terms(),
          .reference = reference_.view(),
          .left = {},
          .right = {},
          .out = {}};
}

Seen Surface::seen(const Match& match, std::int64_t k) const {
  return match_points(match.field(), match.neighbours.maps).seen(node_grid_of(*grid_), k);
}

/// Computes the reference along the axes that are known now, and what later frames need of it.
StereoFrame Surface::reference_in_axes() {
  const Match& match = *right_reference_;
  StereoFrame frame = new_stereo_frame(match.result, match.result);
  frame.field = new_stereo_field(grid_);
  FrameScratch scratch(grid_->nodes(), subsets_.left.order != subsets_.right.order);
  reference_.reset(static_cast<std::size_t>(grid_->nodes()));
  SurfaceJob job = this->job();
  job.out = arrays_of(frame.field, scratch);
  for_each_node([&](std::int64_t k) { measure_reference(k, job, match.field()); });
  for_each_node([&](std::int64_t k) {
    if (job.has_values(k) && std::isnan(reference_.incidence[k]) && is_beside_steep(k))
      frame.field.status[k] = Status::low_correlation;
  });
  check(frame, job, scratch, pool_);
  std::ranges::copy(frame.field.status, reference_.status.begin());
  // The displacements from the references to themselves are exact.
  const std::vector<float> none(reference_.covariance.size());
  job.reference.covariance = none.data();
  finish(frame, job, motion_terms({}, false), options_.track.strain, subsets_, pool_);
  return frame;
}

void Surface::measure_reference(std::int64_t k, const SurfaceJob& job, const Field& match) {
  const SurfaceArrays& out = job.out;
  clear_point(out, k);
  out.zncc[k] = match.zncc[k], out.iterations[k] = match.iterations[k];
  out.status[k] = match.status[k];
  out.epipolar_sigma[k] = kMissingFloat;
  out.displacement[k] = vector3(0, 0, 0);
  out.errors[k] = {};
  if (out.right_errors) out.right_errors[k] = {};
  if (!job.has_values(k)) return;
  const Seen left{job.grid.x(k), job.grid.y(k), 0, 0, Matrix2::identity()},
      right = seen(*right_reference_, k);
  const SurfacePoint point = meet(job.cameras, job.axes, left, right);
  if (!point.meeting.exists) {
    out.status[k] = Status::epipolar;
    return;
  }
  const Meeting& at = point.meeting;
  reference_.position[k] = at.position, reference_.from_px[k] = at.from_px;
  pack(at.from_px * (point.pixels * at.from_px.transposed()), reference_.covariance.data() + 6 * k);
  reference_.sigma[2 * k] = static_cast<float>(right.sigma_x);
  reference_.sigma[2 * k + 1] = static_cast<float>(right.sigma_y);
  std::copy_n(right_reference_->neighbours.maps.data() + 4 * k, 4, reference_.map.data() + 4 * k);
  if (calibration_.are_known()) {
    const Vector3 sigma = job.calibration.sigmas(job.from_rig(at.position, at.from_px));
    for (int i = 0; i < 3; ++i) reference_.calibration_sigma[3 * k + i] = static_cast<float>(sigma[i]);
    out.calibration_du[k] = out.calibration_dv[k] = out.calibration_dw[k] = 0;
  }
  if (right_reference_->neighbours.is_known[k]) reference_.incidence[k] = incidence_of(right, point);
  if (reference_.incidence[k] > kSteepest) out.status[k] = Status::low_correlation;
  out.epipolar[k] = static_cast<float>(point.epipolar_px);
  out.epipolar_sigma[k] = static_cast<float>(point.epipolar_sigma);
  out.reprojection[k] = static_cast<float>(norm(at.residual) / std::numbers::sqrt2);
  out.u[k] = out.v[k] = 0, out.sigma_u[k] = out.sigma_v[k] = 0;
  store_reference(job, k);
}

/// True if the surface is too steep near a node whose own incidence is not known, at the edge of a body.
bool Surface::is_beside_steep(std::int64_t k) const {
  constexpr int kNear = 3;  // nodes
  const int i = static_cast<int>(k % grid_->nx), j = static_cast<int>(k / grid_->nx);
  for (int y = std::max(j - kNear, 0); y <= std::min(j + kNear, grid_->ny - 1); ++y)
    for (int x = std::max(i - kNear, 0); x <= std::min(i + kNear, grid_->nx - 1); ++x)
      if (reference_.incidence[static_cast<std::size_t>(y) * grid_->nx + x] > kSteepest) return true;
  return false;
}

/// Angle between the normal of the surface and the more oblique line of sight, degrees.
float Surface::incidence_of(const Seen& right, const SurfacePoint& point) const {
  const FromPixels& from_px = point.meeting.from_px;
  const SmallMatrix<3, 2> tangents = from_px.columns<2>(0) + from_px.columns<2>(2) * right.map;
  const Eigen::Vector3d normal = as_eigen(cross(tangents.columns<1>(0), tangents.columns<1>(1))).normalized();
  const Eigen::Vector3d position = as_eigen(point.meeting.position);
  const auto cosine = [&](const Eigen::Vector3d& centre) {
    const Eigen::Vector3d seen_from = axes_.rotation * (centre - axes_.origin);
    return std::abs(normal.dot((position - seen_from).normalized()));
  };
  const double least = std::min(cosine(Eigen::Vector3d::Zero()), cosine(as_eigen(right_centre(cameras_))));
  return static_cast<float>(std::acos(std::min(least, 1.0)) * 180 / std::numbers::pi);
}

FrameGeometry Surface::geometry() const {
  return {.grid = grid_,
          .cameras = cameras_,
          .axes = {from_eigen(axes_.rotation), from_eigen(axes_.origin)},
          .calibration_factor = &calibration_.factor(),
          .reference = &reference_,
          .subsets = subsets_,
          .filter = filter_,
          .responses = &responses_,
          .strain = options_.track.strain,
          .removes_motion = options_.remove_rigid_motion};
}

void Surface::use_gpu(int ordinal) { gpu_ = open_cuda_frames(geometry(), ordinal, pool_); }

StereoFrame Surface::frame(FrameResult left_result, FrameResult right_result) {
  if (gpu_) return gpu_->frame(std::move(left_result), std::move(right_result));
  const track::Stopwatch watch;
  const Match left = matched(std::move(left_result), subsets_.left.order),
              right = matched(std::move(right_result), subsets_.right.order);
  StereoFrame frame = new_stereo_frame(left.result, right.result);
  frame.field = new_stereo_field(grid_);
  const bool orders_differ = subsets_.left.order != subsets_.right.order;
  FrameScratch scratch(grid_->nodes(), orders_differ);
  SurfaceJob job = this->job();
  job.left = match_points(left.field(), left.neighbours.maps);
  job.right = match_points(right.field(), right.neighbours.maps);
  job.out = arrays_of(frame.field, scratch);
  for_each_node([&](std::int64_t k) { MeasurePoint{job, orders_differ}(k); });
  check(frame, job, scratch, pool_);
  frame.motion = rigid_motion_of(job, subsets_.left, pool_);
  frame.geometry_seconds = watch.seconds();
  finish(frame, job, motion_terms(frame.motion, options_.remove_rigid_motion), options_.track.strain,
         subsets_, pool_);
  return frame;
}

}  // namespace dic::stereo
