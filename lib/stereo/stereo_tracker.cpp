#include <Eigen/Core>
#include <Eigen/Geometry>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dic/error.hpp>
#include <dic/stereo.hpp>
#include <limits>
#include <numbers>
#include <optional>
#include <span>
#include <utility>

#include "core/parallel.hpp"
#include "stereo/axes.hpp"
#include "stereo/calibration_errors.hpp"
#include "stereo/curved_match.hpp"
#include "stereo/epipolar_check.hpp"
#include "stereo/geometry.hpp"
#include "stereo/sigma_check.hpp"
#include "stereo/surface_strain.hpp"
#include "track/sequence.hpp"
#include "track/stopwatch.hpp"

namespace dic {
namespace stereo {
namespace {

using Eigen::Vector4d;

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr float kMissingFloat = std::numeric_limits<float>::quiet_NaN();
/// Angle from the normal of the surface, degrees, beyond which a point is not `ok`: no shape function follows
/// a surface that turns away so fast, and the error is far larger than sigma.
constexpr double kSteepest = 60;
/// Share of the variance of a match that comes from the noise of the reference; both images are equally
/// noisy.
constexpr double kReferenceShare = 0.5;

/// The match of one image with the left reference.
struct Match {
  FrameResult result;
  NeighbourSummary neighbours;
  const Field& field() const { return result.field; }
  Field& field() { return result.field; }
};

/// A subset in one image: where it is, and how sure that is.
struct Seen {
  double x = 0, y = 0;
  Eigen::Vector2d sigma = Eigen::Vector2d::Zero();    ///< px
  Eigen::Matrix2d map = Eigen::Matrix2d::Identity();  ///< derivative by the point in the reference

  Eigen::Matrix2d covariance() const { return sigma.cwiseProduct(sigma).asDiagonal(); }
};

/// A point of the surface at one time.
struct SurfacePoint {
  Seen left, right;
  Meeting meeting;
  EpipolarDistance epipolar;
  PixelCovariance pixels = PixelCovariance::Zero();  ///< covariance of both image points
};

/// What the errors of a match share with those of others of one reference subset: the noise of the reference
/// shifts all by the same motion in the reference.
struct SharedNoise {
  Eigen::Matrix2d map;
  Eigen::Matrix2d covariance;  ///< of that motion, px^2

  explicit SharedNoise(const Seen& seen) : map(seen.map) {
    const Eigen::Matrix2d back = map.inverse();
    covariance = kReferenceShare * (back * seen.covariance() * back.transpose());
  }
};

/// The smaller of two covariances, along each of the directions in which their errors are independent. It
/// exceeds neither along any direction, so that the covariance of all matches with one subset has no negative
/// variance.
Eigen::Matrix2d smaller_of(const Eigen::Matrix2d& a, const Eigen::Matrix2d& b) {
  if (!(a.determinant() > 0)) return Eigen::Matrix2d::Zero();  // exact
  // Ratios of the variances of b and a along those directions: the eigenvalues of a^-1 b.
  const Eigen::Matrix2d ratios = a.inverse() * b;
  const double half = ratios.trace() / 2, root = std::sqrt(std::max(half * half - ratios.determinant(), 0.0));
  const double least = half - root, most = half + root;
  if (least >= 1) return a;
  if (most <= 1) return b;
  const double of_b = (1 - least) / (most - least), of_a = 1 - of_b * most;
  return of_a * a + of_b * b;
}

/// Common part of the errors of two matches, as it appears in both images. The error of order 2 is that of
/// order 1 and more, so that the smaller noise is common.
Eigen::Matrix2d common_part(const SharedNoise& one, const SharedNoise& other) {
  return one.map * smaller_of(one.covariance, other.covariance) * other.map.transpose();
}

}  // namespace

/// Arrays of a frame that are not part of its field.
struct Scratch {
  std::vector<Eigen::Vector3d> displacements;
  std::vector<PointCovariance> covariances, right_covariances;
  std::vector<double> epipolar_sigma;
};

/// Computes the surface from matches.
class Surface {
 public:
  /// options: with those chosen from the reference.
  Surface(const StereoOptions& options, const CameraRig& rig, std::shared_ptr<const Grid> grid,
          ImageView left, core::ThreadPool& pool)
      : options_(options),
        geometry_(rig),
        calibration_(rig),
        grid_(std::move(grid)),
        pool_(pool),
        subsets_(subsets_of(options.track)),
        right_subsets_(subsets_),
        filter_(subsets_, grid_->step),
        responses_(bend_responses(left, *grid_, subsets_, pool)) {}

  static MeasuredSubsets subsets_of(const TrackOptions& options) {
    return {options.refine.subset, options.refine.order, options.refine.weights};
  }

  /// Prepares the result of a tracker. order: of its subsets.
  Match matched(FrameResult result, int order) {
    Match match{std::move(result), {}};
    MeasuredSubsets subsets = subsets_;
    subsets.order = order;
    match.neighbours = subtract_bends(match.field(), subsets, filter_, responses_, pool_);
    return match;
  }

  /// The shape in the references. right_order: of the subsets in the right images.
  StereoFrame reference(Match right, int right_order) {
    right_reference_ = std::move(right);
    right_subsets_.order = right_order;
    StereoFrame frame = reference_in_axes();
    if (options_.axes != StereoAxes::camera) {
      axes_ = axes_of(options_, *grid_, positions_, usable_of(frame.field));
      frame = reference_in_axes();
    }
    reference_status_ = frame.field.status;
    Scratch scratch = scratch_of();
    finish(frame, scratch);
    return frame;
  }

  /// The shape in the references with another rig.
  StereoFrame reference_with(const CameraRig& rig) {
    geometry_ = Geometry(rig);
    calibration_ = CalibrationErrors(rig);
    axes_ = {};
    return reference(std::move(*right_reference_), right_subsets_.order);
  }

  /// How a rig must change for the matches of the references; nothing if these are too few.
  std::optional<RigCorrection> correction_of(const CameraRig& rig) const {
    constexpr std::size_t kFewPoints = 20, kMostPoints = 5000;
    const Field& field = right_reference_->field();
    std::vector<std::size_t> nodes;
    for (std::size_t k = 0; k < field.status.size(); ++k)
      if (field.status[k] == Status::ok) nodes.push_back(k);
    if (nodes.size() < kFewPoints) return {};
    std::vector<Camera::Point> left, right;
    const std::size_t each = nodes.size() / kMostPoints + 1;
    for (std::size_t n = 0; n < nodes.size(); n += each) {
      const Seen from = node(nodes[n]), to = seen(*right_reference_, nodes[n]);
      left.push_back({from.x, from.y}), right.push_back({to.x, to.y});
    }
    if (left.size() < kFewPoints) return {};
    return refine_rig(rig, left, right);
  }

  /// Derivative of the right by the left reference image point at every node.
  const LocalMaps& maps_across() const { return right_reference_->neighbours.maps; }

  StereoFrame frame(const Match& left, const Match& right) {
    StereoFrame frame = begin(left, right);
    Scratch scratch = scratch_of();
    for_each_node([&](std::size_t k) { measure(frame.field, k, left, right, scratch); });
    check(frame, scratch);
    move(frame, scratch);
    finish(frame, scratch);
    return frame;
  }

 private:
  struct Pair {
    Seen left, right;
  };

  /// What later frames need of a point in the references.
  struct PointBefore {
    FromPixels from_px = FromPixels::Zero();                                       ///< mm per px
    Eigen::Matrix3d covariance = Eigen::Matrix3d::Zero();                          ///< mm^2, by the noise
    Eigen::Vector3f calibration_sigma = Eigen::Vector3f::Constant(kMissingFloat);  ///< mm
  };

  StereoFrame reference_in_axes() {
    const Match& match = *right_reference_;
    StereoFrame frame = begin(match, match);
    Scratch scratch = scratch_of();
    positions_.assign(static_cast<std::size_t>(grid_->nodes()), Eigen::Vector3d::Constant(kMissing));
    before_.assign(positions_.size(), {});
    incidence_.assign(positions_.size(), kMissingFloat);
    for_each_node([&](std::size_t k) {
      frame.field.status[k] = match.field().status[k];
      if (!has_values(frame.field.status[k])) return;
      const SurfacePoint point = meet({node(k), seen(match, k)});
      if (!store_match(frame.field, k, point, scratch)) return;
      positions_[k] = point.meeting.position;
      before_[k].from_px = point.meeting.from_px;
      before_[k].covariance = point.meeting.from_px * point.pixels * point.meeting.from_px.transpose();
      if (calibration_.are_known())
        before_[k].calibration_sigma =
            calibration_.sigmas(from_rig(positions_[k], point.meeting.from_px)).cast<float>();
      store_position(frame.field.stereo, k);
      incidence_[k] = match.neighbours.is_known[k] ? incidence_of(point) : kMissingFloat;
      if (incidence_[k] > kSteepest) frame.field.status[k] = Status::low_correlation;
      for (NodeValues<double>* zero : {&frame.field.u, &frame.field.v}) (*zero)[k] = 0;
      for (NodeValues<float>* zero : {&frame.field.sigma_u, &frame.field.sigma_v}) (*zero)[k] = 0;
      store_displacement(frame.field, k, Eigen::Vector3d::Zero(), PointCovariance::Zero());
      store_calibration_sigma(frame.field.stereo, k, point.meeting);
    });
    for_each_node([&](std::size_t k) {
      if (has_values(frame.field.status[k]) && std::isnan(incidence_[k]) && is_beside_steep(k))
        frame.field.status[k] = Status::low_correlation;
    });
    check(frame, scratch);
    return frame;
  }

  /// True if the surface is too steep near a node whose own incidence is not known, at the edge of a body.
  bool is_beside_steep(std::size_t k) const {
    constexpr int kNear = 3;  // nodes
    const int i = static_cast<int>(k % grid_->nx), j = static_cast<int>(k / grid_->nx);
    for (int y = std::max(j - kNear, 0); y <= std::min(j + kNear, grid_->ny - 1); ++y)
      for (int x = std::max(i - kNear, 0); x <= std::min(i + kNear, grid_->nx - 1); ++x)
        if (incidence_[static_cast<std::size_t>(y) * grid_->nx + x] > kSteepest) return true;
    return false;
  }

  /// Measures a point of a later frame.
  void measure(Field& field, std::size_t k, const Match& left, const Match& right, Scratch& scratch) const {
    field.status[k] = joined_status(left.field().status[k], right.field().status[k], k);
    if (!has_values(field.status[k])) return;
    const PointBefore& before = before_[k];
    const SurfacePoint now = meet({seen(left, k), seen(right, k)});
    if (!store_match(field, k, now, scratch)) return;
    store_position(field.stereo, k);
    store_calibration_sigma(field.stereo, k, now.meeting);
    scratch.displacements[k] = now.meeting.position - positions_[k];
    const SharedNoise of_left(now.left), of_right(now.right), of_before(seen(*right_reference_, k));
    const Eigen::Matrix2d right_across = common_part(of_right, of_before);
    PixelCovariance across =
        PixelCovariance::Zero();  // now (rows), before (columns): the left point is exact
    across.topRightCorner<2, 2>() = common_part(of_left, of_before);
    across.bottomRightCorner<2, 2>() = right_across;
    scratch.covariances[k] = errors_of(before, now.meeting.from_px, now.pixels, across).cast<float>();
    if (right_subsets_.order != subsets_.order) {
      across.topRightCorner<2, 2>().setZero();
      PixelCovariance pixels = PixelCovariance::Zero();
      pixels.bottomRightCorner<2, 2>() = now.right.covariance();
      scratch.right_covariances[k] = errors_of(before, now.meeting.from_px, pixels, across).cast<float>();
    }
    field.u[k] = left.field().u[k], field.v[k] = left.field().v[k];
    field.sigma_u[k] = left.field().sigma_u[k], field.sigma_v[k] = left.field().sigma_v[k];
  }

  /// Finds the motion as a rigid body, and subtracts it if that is wanted.
  void move(StereoFrame& frame, Scratch& scratch) {
    const std::vector<std::uint8_t> usable = usable_of(frame.field);
    frame.motion = rigid_motion_of(
        {*grid_, usable, positions_, scratch.displacements, scratch.covariances, {}}, subsets_, pool_);
    if (options_.remove_rigid_motion) remove_motion(frame.motion, positions_, scratch.displacements);
    for_each_node([&](std::size_t k) {
      if (has_values(frame.field.status[k]))
        store_displacement(frame.field, k, scratch.displacements[k], scratch.covariances[k]);
    });
  }

  static std::vector<std::uint8_t> usable_of(const Field& field) {
    std::vector<std::uint8_t> usable;
    for (const Status status : field.status) usable.push_back(status == Status::ok);
    return usable;
  }

  template <typename Body>
  void for_each_node(const Body& body) {
    core::for_each_index(pool_, grid_->nodes(), [&](std::int64_t k) { body(static_cast<std::size_t>(k)); });
  }

  Seen node(std::size_t k) const {
    return {double(grid_->x(static_cast<int>(k % grid_->nx))),
            double(grid_->y(static_cast<int>(k / grid_->nx)))};
  }

  Seen seen(const Match& match, std::size_t k) const {
    const Field& field = match.field();
    Seen seen = node(k);
    seen.x += field.u[k], seen.y += field.v[k];
    seen.sigma = {field.sigma_u[k], field.sigma_v[k]};
    seen.map = match.neighbours.maps[k].cast<double>();
    return seen;
  }

  SurfacePoint meet(const Pair& pair) const {
    SurfacePoint point{pair.left, pair.right, {}, {}};
    const Sight l = geometry_.left(pair.left.x, pair.left.y), r = geometry_.right(pair.right.x, pair.right.y);
    if (!l.exists() || !r.exists()) return point;
    Vector4d sigmas;
    sigmas << pair.left.sigma, pair.right.sigma;
    point.meeting = geometry_.meet(l, r, sigmas);
    point.meeting.position = axes_.rotation * (point.meeting.position - axes_.origin);
    point.meeting.from_px = axes_.rotation * point.meeting.from_px;
    point.epipolar = geometry_.epipolar(l, r);
    point.pixels.topLeftCorner<2, 2>() = pair.left.covariance();
    point.pixels.bottomRightCorner<2, 2>() = pair.right.covariance();
    const Eigen::Matrix2d common = common_part(SharedNoise(pair.left), SharedNoise(pair.right));
    point.pixels.topRightCorner<2, 2>() = common;
    point.pixels.bottomLeftCorner<2, 2>() = common.transpose();
    return point;
  }

  /// Covariance of the positions now (first) and before. pixels: of the image points now; across: now (rows)
  /// and before.
  static Eigen::Matrix<double, 6, 6> errors_of(const PointBefore& before, const FromPixels& from_px,
                                               const PixelCovariance& pixels, const PixelCovariance& across) {
    Eigen::Matrix<double, 6, 6> errors;
    errors.topLeftCorner<3, 3>() = from_px * pixels * from_px.transpose();
    errors.bottomRightCorner<3, 3>() = before.covariance;
    errors.topRightCorner<3, 3>() =
        from_px * across.rightCols<2>() * before.from_px.rightCols<2>().transpose();
    errors.bottomLeftCorner<3, 3>() = errors.topRightCorner<3, 3>().transpose();
    return errors;
  }

  StereoFrame begin(const Match& left, const Match& right) const {
    StereoFrame frame;
    frame.field = Field(grid_);
    const auto nodes = static_cast<std::size_t>(grid_->nodes());
    StereoField& stereo = frame.field.stereo;
    for (auto* values : {&stereo.x, &stereo.y, &stereo.z, &stereo.u, &stereo.v, &stereo.w})
      *values = NodeValues<double>(nodes, kMissing);
    for (auto* values :
         {&stereo.sigma_x, &stereo.sigma_y, &stereo.sigma_z, &stereo.sigma_u, &stereo.sigma_v,
          &stereo.sigma_w, &stereo.epipolar, &stereo.reprojection, &stereo.incidence,
          &stereo.calibration_sigma_x, &stereo.calibration_sigma_y, &stereo.calibration_sigma_z,
          &stereo.calibration_sigma_u, &stereo.calibration_sigma_v, &stereo.calibration_sigma_w})
      *values = NodeValues<float>(nodes, kMissingFloat);
    for (std::size_t k = 0; k < nodes; ++k) {
      frame.field.zncc[k] = std::min(left.field().zncc[k], right.field().zncc[k]);
      frame.field.iterations[k] = std::max(left.field().iterations[k], right.field().iterations[k]);
    }
    frame.noise_left = left.result.noise, frame.noise_right = right.result.noise;
    frame.seconds = right.result.seconds;
    if (&left != &right) frame.seconds += left.result.seconds;
    return frame;
  }

  Scratch scratch_of() const {
    const auto nodes = static_cast<std::size_t>(grid_->nodes());
    Scratch scratch;
    scratch.displacements.assign(nodes, Eigen::Vector3d::Zero());
    scratch.covariances.assign(nodes, PointCovariance::Zero());
    if (right_subsets_.order != subsets_.order)
      scratch.right_covariances.assign(nodes, PointCovariance::Zero());
    scratch.epipolar_sigma.assign(nodes, kMissing);
    return scratch;
  }

  /// The status of a point whose position in the references is needed too. A failure counts before `outlier`.
  Status joined_status(Status left, Status right, std::size_t k) const {
    const Status before = reference_status_[k];
    for (const Status status : {before, left, right})
      if (!has_values(status)) return status;
    const bool is_outlier = std::ranges::count(std::array{before, left, right}, Status::outlier) > 0;
    return is_outlier ? Status::outlier : Status::ok;
  }

  /// Stores what tells how well two image points fit. False, with a status, if their rays do not meet.
  bool store_match(Field& field, std::size_t k, const SurfacePoint& point, Scratch& scratch) const {
    if (!point.meeting.exists) {
      field.status[k] = Status::epipolar;
      return false;
    }
    scratch.epipolar_sigma[k] =
        std::sqrt(point.epipolar.by_pixels.dot(point.pixels * point.epipolar.by_pixels));
    field.stereo.epipolar[k] = static_cast<float>(point.epipolar.px);
    field.stereo.reprojection[k] = static_cast<float>(point.meeting.residual.norm() / std::numbers::sqrt2);
    return true;
  }

  static float sigma_of(double variance) { return static_cast<float>(std::sqrt(std::max(variance, 0.0))); }

  /// How a position in the axes of the measurement changes with the calibration; the axes stay.
  FromRig from_rig(const Eigen::Vector3d& position, const FromPixels& from_px) const {
    return calibration_.from_rig(axes_.rotation.transpose() * position + axes_.origin, from_px);
  }

  /// Stores what the calibration does to a displacement.
  void store_calibration_sigma(StereoField& stereo, std::size_t k, const Meeting& now) const {
    if (!calibration_.are_known()) return;
    const Eigen::Vector3d sigma = calibration_.sigmas(from_rig(now.position, now.from_px) -
                                                      from_rig(positions_[k], before_[k].from_px));
    stereo.calibration_sigma_u[k] = static_cast<float>(sigma.x());
    stereo.calibration_sigma_v[k] = static_cast<float>(sigma.y());
    stereo.calibration_sigma_w[k] = static_cast<float>(sigma.z());
  }

  /// Stores the position in the references, which is that of every frame.
  void store_position(StereoField& stereo, std::size_t k) const {
    const Eigen::Vector3d& position = positions_[k];
    const Eigen::Matrix3d& covariance = before_[k].covariance;
    stereo.x[k] = position.x(), stereo.y[k] = position.y(), stereo.z[k] = position.z();
    stereo.sigma_x[k] = sigma_of(covariance(0, 0)), stereo.sigma_y[k] = sigma_of(covariance(1, 1));
    stereo.sigma_z[k] = sigma_of(covariance(2, 2));
    const Eigen::Vector3f& calibration = before_[k].calibration_sigma;
    stereo.calibration_sigma_x[k] = calibration.x(), stereo.calibration_sigma_y[k] = calibration.y();
    stereo.calibration_sigma_z[k] = calibration.z();
  }

  static void store_displacement(Field& field, std::size_t k, const Eigen::Vector3d& displacement,
                                 const PointCovariance& errors) {
    const auto variance = [&](int axis) {
      return double(errors(axis, axis)) + double(errors(axis + 3, axis + 3)) -
             2 * double(errors(axis, axis + 3));
    };
    StereoField& stereo = field.stereo;
    stereo.u[k] = displacement.x(), stereo.v[k] = displacement.y(), stereo.w[k] = displacement.z();
    stereo.sigma_u[k] = sigma_of(variance(0)), stereo.sigma_v[k] = sigma_of(variance(1));
    stereo.sigma_w[k] = sigma_of(variance(2));
  }

  void check(StereoFrame& frame, const Scratch& scratch) {
    const NodeValues<float>& px = frame.field.stereo.epipolar;
    const EpipolarSummary summary =
        mark_contradictions(frame.field, {{px.data(), px.size()}, scratch.epipolar_sigma}, pool_);
    frame.epipolar_median = summary.median, frame.epipolar_sd = summary.sd;
  }

  /// Strain, incidence, and NaN where nothing is known.
  void finish(StereoFrame& frame, Scratch& scratch) {
    Field& field = frame.field;
    const track::Stopwatch watch;
    const std::vector<std::uint8_t> usable = usable_of(field);
    std::vector<std::uint8_t> measured;
    for (const Status status : field.status) measured.push_back(has_values(status));
    const SurfacePoints points{
        *grid_, usable, positions_, scratch.displacements, scratch.covariances, scratch.right_covariances};
    field.strain = surface_strain(points, measured, options_.track.strain, {subsets_, right_subsets_}, pool_);
    for_each_node([&](std::size_t k) {
      if (has_values(field.status[k]))
        field.stereo.incidence[k] = incidence_[k];
      else
        clear(field, k);
    });
    frame.seconds.strain += watch.seconds();
  }

  /// Angle between the normal of the surface and the more oblique line of sight, degrees.
  float incidence_of(const SurfacePoint& point) const {
    Eigen::Matrix<double, 4, 2> by_reference;
    by_reference << point.left.map, point.right.map;
    const Eigen::Matrix<double, 3, 2> tangents = point.meeting.from_px * by_reference;
    const Eigen::Vector3d normal = tangents.col(0).cross(tangents.col(1)).normalized();
    const auto cosine = [&](const Eigen::Vector3d& centre) {
      const Eigen::Vector3d seen_from = axes_.rotation * (centre - axes_.origin);
      return std::abs(normal.dot((point.meeting.position - seen_from).normalized()));
    };
    const double least = std::min(cosine(Eigen::Vector3d::Zero()), cosine(geometry_.right_centre()));
    return static_cast<float>(std::acos(std::min(least, 1.0)) * 180 / std::numbers::pi);
  }

  static void clear(Field& field, std::size_t k) {
    StereoField& stereo = field.stereo;
    for (auto* values :
         {&field.u, &field.v, &stereo.x, &stereo.y, &stereo.z, &stereo.u, &stereo.v, &stereo.w})
      (*values)[k] = kMissing;
    for (auto* values :
         {&field.zncc, &field.sigma_u, &field.sigma_v, &stereo.sigma_x, &stereo.sigma_y, &stereo.sigma_z,
          &stereo.sigma_u, &stereo.sigma_v, &stereo.sigma_w, &stereo.epipolar, &stereo.reprojection,
          &stereo.calibration_sigma_x, &stereo.calibration_sigma_y, &stereo.calibration_sigma_z,
          &stereo.calibration_sigma_u, &stereo.calibration_sigma_v, &stereo.calibration_sigma_w})
      (*values)[k] = kMissingFloat;
  }

  StereoOptions options_;
  Geometry geometry_;
  CalibrationErrors calibration_;
  Axes axes_;
  std::shared_ptr<const Grid> grid_;
  core::ThreadPool& pool_;
  MeasuredSubsets subsets_, right_subsets_;
  BendFilter filter_;
  std::vector<BendResponse> responses_;
  std::optional<Match> right_reference_;
  NodeValues<Status> reference_status_;
  std::vector<Eigen::Vector3d> positions_;  ///< positions in the references; NaN where there is none
  std::vector<PointBefore> before_;
  std::vector<float> incidence_;  ///< angles of incidence, degrees
};

namespace {

const TrackOptions& checked(const StereoOptions& options) {
  for (const std::string& problem : options.validate()) throw UsageError(problem);
  return options.track;
}

void check_equal(ImageView left, ImageView right) {
  if (left.size() != right.size() || left.type != right.type)
    throw UsageError(
        "The left and the right image differ in size or depth: both cameras need images of one kind.");
}

void check_size(ImageView image, const CameraRig& rig, std::size_t camera, const char* name) {
  if (camera >= rig.cameras.size()) return;
  const Size known = rig.cameras[camera].camera.image;
  if (image.size() == known) return;
  const auto text = [](Size size) {
    return std::to_string(size.width) + " x " + std::to_string(size.height);
  };
  throw UsageError(std::string("The ") + name + " image has " + text(image.size()) +
                   " px, and the calibration is one of images of " + text(known) +
                   " px: use the images of the calibrated cameras as they were taken.");
}

}  // namespace
}  // namespace stereo

std::vector<std::string> StereoOptions::validate() const {
  std::vector<std::string> found = track.validate();
  if (track.refine.order == 0 && !track.automatic_order)
    found.push_back("Order 0 cannot follow a subset from one camera to the other: choose order 1 or 2.");
  if (track.camera)
    found.push_back("The calibration of both cameras takes the place of a camera file: leave that out.");
  if (track.global.enabled) found.push_back("The global step is made for one camera: leave it out.");
  if (axes == StereoAxes::points && !axes_points)
    found.push_back("Three points in the left reference are needed for these axes.");
  if (axes != StereoAxes::points && axes_points)
    found.push_back(
        "Three points that define axes were given, but other axes: choose those through points, or leave the "
        "points out.");
  if (!(largest_epipolar > 0)) found.push_back("The largest epipolar distance must be above 0 px.");
  return found;
}

namespace stereo {
namespace {

/// Nodes beside the found ones that may be found too: neighbours support each other.
constexpr int kMargin = 4;

using Efforts = std::vector<track::Effort>;

/// Efforts for frames to come: `found` where this field has values. Nodes far from these are lost for good:
/// what the references lost has no position, and a background costs the longest searches.
Efforts efforts_for(const Field& field, track::Effort found) {
  const Grid& grid = field.grid();
  Efforts efforts(field.status.size(), track::Effort::none);
  for (std::size_t k = 0; k < efforts.size(); ++k) {
    if (!has_values(field.status[k])) continue;
    const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
    for (int y = std::max(j - kMargin, 0); y <= std::min(j + kMargin, grid.ny - 1); ++y)
      for (int x = std::max(i - kMargin, 0); x <= std::min(i + kMargin, grid.nx - 1); ++x) {
        track::Effort& effort = efforts[static_cast<std::size_t>(y) * grid.nx + x];
        effort = std::max(effort, track::Effort::neighbours);
      }
    efforts[k] = std::max(efforts[k], found);
  }
  return efforts;
}

double largest_turn(const RigCorrection& correction) {
  const auto& [x, y, z] = correction.rotation_deg;
  return std::max(std::hypot(x, y, z), correction.direction_deg);
}

/// A rig that turns by more was not moved by accident: another one took the images.
bool is_small(const RigCorrection& correction) {
  constexpr double kLargest = 1;  // degree
  return largest_turn(correction) <= kLargest;
}

/// True if a small turn explains distances from the epipolar lines.
bool explains(const RigCorrection& correction) {
  constexpr double kMostLeft = 0.1;  // px
  return is_small(correction) && correction.epipolar_after_px < kMostLeft;
}

std::string degrees_of(const RigCorrection& correction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", largest_turn(correction));
  return text;
}

std::string text_of(const RigCorrection& correction) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", correction.epipolar_after_px);
  return "A right camera that has turned by " + degrees_of(correction) +
         " degrees since its calibration would leave " + text + " px.";
}

/// Joins the states of the left and the right sequence; empty if one of them has none.
std::vector<std::byte> joined(std::span<const std::byte> left, std::span<const std::byte> right) {
  if (left.empty() || right.empty()) return {};
  const std::uint64_t bytes = left.size();
  std::vector<std::byte> state(sizeof bytes);
  std::memcpy(state.data(), &bytes, sizeof bytes);
  state.insert(state.end(), left.begin(), left.end());
  state.insert(state.end(), right.begin(), right.end());
  return state;
}

/// The states of both sequences; nothing if these are not such bytes.
std::optional<std::array<std::span<const std::byte>, 2>> parts_of(std::span<const std::byte> state) {
  std::uint64_t bytes = 0;
  if (state.size() < sizeof bytes) return {};
  std::memcpy(&bytes, state.data(), sizeof bytes);
  state = state.subspan(sizeof bytes);
  if (bytes > state.size()) return {};
  return std::array{state.first(bytes), state.subspan(bytes)};
}

/// Leaves points to their neighbours that a search by whole pixels cannot recognize, since the other camera
/// sees their subsets too distorted: their loss would cause searches of whole images. The least distorted
/// quarter of the points is always searched, so that large motions are noticed.
void leave_distorted(const LocalMaps& maps, int subset, Efforts& efforts) {
  constexpr float kMostDistorted = 1.5;  // root mean square over the subset, px
  constexpr std::size_t kSearched = 4;   // one in so many
  const float to_square = (static_cast<float>(subset) * static_cast<float>(subset) - 1) / 12;
  const auto square_of = [&](std::size_t k) {
    return to_square * (maps[k] - Eigen::Matrix2f::Identity()).squaredNorm();
  };
  std::vector<float> squares;
  for (std::size_t k = 0; k < efforts.size(); ++k)
    if (efforts[k] == track::Effort::search) squares.push_back(square_of(k));
  if (squares.empty()) return;
  const auto quarter = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / kSearched);
  std::ranges::nth_element(squares, quarter);
  const float most = std::max(*quarter, kMostDistorted * kMostDistorted);
  for (std::size_t k = 0; k < efforts.size(); ++k)
    if (efforts[k] == track::Effort::search && square_of(k) > most) efforts[k] = track::Effort::neighbours;
}

}  // namespace
}  // namespace stereo

struct StereoTracker::Impl {
  using Sequence = track::Sequence;

  double largest_epipolar;
  TrackOptions options;  ///< options of the left images
  Image left_reference;  ///< kept until the first later left image
  Roi roi;
  core::ThreadPool pool;
  int right_order;                  ///< order of the subsets in the right images
  std::unique_ptr<Sequence> right;  ///< from the left reference to the right images
  std::unique_ptr<Sequence> left;   ///< from the left reference to the later left images
  std::vector<float> right_sigma_factors;  ///< see stereo::sigma_factors()
  stereo::Surface surface;
  StereoFrame reference;
  std::optional<RigCorrection> correction;

  Impl(const StereoOptions& given, const CameraRig& rig, ImageView left_image, ImageView right_image,
       const Roi& region, const std::stop_token& stop)
      : largest_epipolar(given.largest_epipolar),
        options(tracker_options(stereo::checked(given))),
        left_reference(copy_of(left_image)),
        roi(region),
        pool(options.threads),
        right_order(options.refine.order),
        right(std::make_unique<Sequence>(right_options(), left_image, region)),
        surface(with_chosen(given), rig, std::make_shared<const Grid>(right->grid()), left_image, pool) {
    stereo::check_equal(left_image, right_image);
    stereo::check_size(left_image, rig, 0, "left");
    stereo::check_size(right_image, rig, 1, "right");
    stereo::Match across = match_references(right_image, stop);  // which chooses the order
    right_sigma_factors = stereo::sigma_factors(across.field(), rig, pool);
    stereo::multiply_sigmas(across.field(), right_sigma_factors);
    reference = surface.reference(std::move(across), right_order);
    correct(rig, given.correct_rig);
    reference.seconds.prepare += right->prepare_seconds();
    refuse_foreign_calibration();
    stereo::Efforts efforts = efforts_of_found();
    stereo::leave_distorted(surface.maps_across(), right->options().refine.subset, efforts);
    right->limit_effort(efforts);
  }

  stereo::Efforts efforts_of_found() const {
    return stereo::efforts_for(reference.field, track::Effort::search);
  }

  StereoOptions with_chosen(StereoOptions given) const {
    given.track = right->options();
    return given;
  }

  static TrackOptions tracker_options(TrackOptions options) {
    options.bending_in_sigma = options.automatic_order || options.refine.order != 1;
    return options;
  }

  /// A search range is meant for the motion: the distance between both images of a point is far larger.
  TrackOptions right_options() const {
    TrackOptions across = options;
    across.search.reset();
    across.refine.order = right_order;
    if (right_order == 2) across.bending_in_sigma = true;
    return across;
  }

  stereo::Match match(Sequence& sequence, ImageView image, int order, const std::stop_token& stop) {
    return match(sequence, sequence.take(image), order, stop);
  }
  stereo::Match match(Sequence& sequence, std::shared_ptr<const track::Frame> image, int order,
                      const std::stop_token& stop) {
    FrameResult result = sequence.measure(std::move(image), stop)->fetch();
    if (&sequence == right.get()) stereo::multiply_sigmas(result.field, right_sigma_factors);
    return surface.matched(std::move(result), order);
  }

  /// Matches the right reference, with order 2 if the surface bends so much that order 1 is worse. Order 2
  /// looks only where order 1 found something, and starts there.
  stereo::Match match_references(ImageView image, const std::stop_token& stop) {
    constexpr double kMostBent = 0.1;    // share of the points
    constexpr double kLeastFound = 0.9;  // share of the points that order 1 finds
    stereo::Match first = match(*right, image, right_order, stop);
    if (right_order != 1 || options.automatic_order || first.neighbours.bent <= kMostBent) return first;
    right_order = 2;
    auto quadratic = std::make_unique<Sequence>(right_options(), left_reference.view(), roi);
    quadratic->start_from(*right);
    quadratic->limit_effort(stereo::efforts_for(first.field(), track::Effort::neighbours));
    stereo::Match second = match(*quadratic, image, right_order, stop);
    const auto found = [](const stereo::Match& match) {
      return static_cast<double>(match.field().counts()[static_cast<int>(Status::ok)]);
    };
    if (found(second) < kLeastFound * found(first)) {
      right_order = 1;
      return first;
    }
    second.result.seconds += first.result.seconds;
    right = std::move(quadratic);
    return second;
  }

  void correct(const CameraRig& rig, bool is_wanted) {
    constexpr double kDoubtful = 0.05;  // px
    if (!is_wanted && !(reference.epipolar_median > kDoubtful)) return;
    correction = surface.correction_of(rig);
    if (!is_wanted) return;
    if (!correction)
      throw UsageError(
          "The rig cannot be corrected: fewer than 20 points of the left reference were found in the right "
          "one.");
    if (!stereo::is_small(*correction))
      throw UsageError("The rig cannot be corrected: the right camera would have to turn by " +
                       stereo::degrees_of(*correction) +
                       " degrees, more than by an accident. Check that left and right are not swapped, or "
                       "calibrate again.");
    reference = surface.reference_with(correction->rig);
  }

  void refuse_foreign_calibration() const {
    constexpr std::int64_t kFewPoints = 20;
    const auto counts = reference.field.counts();
    const std::int64_t matched = counts[static_cast<int>(Status::ok)] +
                                 counts[static_cast<int>(Status::outlier)] +
                                 counts[static_cast<int>(Status::epipolar)];
    if (matched < kFewPoints || !(reference.epipolar_median > largest_epipolar)) return;
    char distance[32];
    std::snprintf(distance, sizeof distance, "%.3g", reference.epipolar_median);
    throw UsageError(
        "The calibration does not belong to these images: their " + std::to_string(matched) +
        " matches lie " + distance +
        " px from their epipolar lines (median); a fitting one leaves some hundredths of a px. " +
        (correction && stereo::explains(*correction)
             ? stereo::text_of(*correction) +
                   " If that may be so, let the rig be corrected; otherwise calibrate again."
             : "Check that left and right are not swapped, or calibrate again."));
  }

  StereoFrame track(ImageView left_image, ImageView right_image, const std::stop_token& stop) {
    if (!left) left = make_left();
    left_reference = {};
    // Both are taken first: an image of another size must not move one of the sequences on.
    auto left_taken = left->take(left_image), right_taken = right->take(right_image);
    const stereo::Match l = match(*left, std::move(left_taken), options.refine.order, stop);
    const stereo::Match r = match(*right, std::move(right_taken), right_order, stop);
    StereoFrame frame = surface.frame(l, r);
    frame.state = stereo::joined(l.result.state, r.result.state);
    return frame;
  }

  std::unique_ptr<Sequence> make_left() const {
    auto sequence = std::make_unique<Sequence>(options, left_reference.view(), roi);
    sequence->limit_effort(efforts_of_found());
    return sequence;
  }

  bool restore(std::span<const std::byte> state, const ReadImage& read) {
    const auto parts = stereo::parts_of(state);
    if (!parts) return false;
    // The left sequence measures from the second pair on.
    const auto reader = [&](std::int64_t first, int camera) -> TrackStream::ReadFrame {
      if (!read) return {};
      return [&read, first, camera](std::int64_t k) { return read(first + k, camera); };
    };
    auto restored = make_left();
    if (!restored->restore((*parts)[0], reader(1, 0)) || !right->restore((*parts)[1], reader(0, 1)))
      return false;
    left = std::move(restored);
    return true;
  }
};

StereoTracker::StereoTracker(const StereoOptions& options, const CameraRig& rig, ImageView left,
                             ImageView right, const Roi& roi, std::stop_token stop)
    : impl_(std::make_unique<Impl>(options, rig, left, right, roi, stop)) {}
StereoTracker::~StereoTracker() = default;
StereoTracker::StereoTracker(StereoTracker&&) noexcept = default;
StereoTracker& StereoTracker::operator=(StereoTracker&&) noexcept = default;

const Grid& StereoTracker::grid() const { return impl_->right->grid(); }
const StereoFrame& StereoTracker::reference() const { return impl_->reference; }
const std::optional<RigCorrection>& StereoTracker::rig_correction() const { return impl_->correction; }
StereoFrame StereoTracker::track(ImageView left, ImageView right, std::stop_token stop) {
  return impl_->track(left, right, stop);
}
bool StereoTracker::restore(std::span<const std::byte> state, const ReadImage& read) {
  return impl_->restore(state, read);
}
std::vector<std::string> StereoTracker::kernels() const { return impl_->right->backend().kernels(); }
std::string StereoTracker::device() const { return impl_->right->backend().device(); }
std::string StereoTracker::device_reason() const { return impl_->right->device_reason(); }
int StereoTracker::order_between_cameras() const { return impl_->right_order; }
TrackOptions StereoTracker::options() const {
  TrackOptions options = impl_->right->options();
  options.refine.order = impl_->options.refine.order;
  options.search = impl_->options.search;
  return options;
}

}  // namespace dic
