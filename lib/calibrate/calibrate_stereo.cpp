#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/calibrate.hpp>
#include <dic/error.hpp>
#include <dic/refine_rig.hpp>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>
#include <opencv2/calib3d.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "calibrate/bundle.hpp"
#include "calibrate/target_images.hpp"
#include "camera/epipolar.hpp"
#include "camera/lens.hpp"
#include "core/dense_solvers.hpp"

namespace dic {
namespace {

using calibration::Bundle;
using calibration::BundleFit;
using calibration::Pose;
using camera::kLensParameters;

constexpr std::size_t kLeastPairs = 3, kFewPairs = 8;
constexpr double kDegrees = 180 / std::numbers::pi;
constexpr double kLeastTilt = 10;  // degrees, between the pairs of a calibration

/// Images of one camera, with a rough lens and the poses of their targets.
struct Side {
  std::vector<CalibrationImage> images;
  Size size;
  Lens lens;
  std::vector<Pose> poses;  ///< of the usable images; others are the identity
};

Pose pose_of(const cv::Mat& turn, const cv::Mat& shift) {
  cv::Matx33d rotation;
  cv::Rodrigues(turn, rotation);
  Pose pose;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) pose.rotation(i, j) = rotation(i, j);
    pose.translation[i] = shift.at<double>(i);
  }
  return pose;
}

/// A lens to start from: one focal length, the principal point in the middle, k1.
void find_rough_lens(Side& side, const std::vector<std::size_t>& used) {
  std::vector<std::vector<cv::Point3f>> objects;
  std::vector<std::vector<cv::Point2f>> seen;
  for (const std::size_t i : used) {
    objects.push_back(calibration::on_target(side.images[i]));
    seen.push_back(calibration::in_image(side.images[i]));
  }
  cv::Mat matrix = cv::Mat::eye(3, 3, CV_64F), distortion;
  std::vector<cv::Mat> turns, shifts;
  cv::calibrateCamera(objects, seen, cv::Size(side.size.width, side.size.height), matrix, distortion, turns,
                      shifts,
                      cv::CALIB_FIX_ASPECT_RATIO | cv::CALIB_FIX_PRINCIPAL_POINT |
                          cv::CALIB_ZERO_TANGENT_DIST | cv::CALIB_FIX_K2 | cv::CALIB_FIX_K3);
  side.lens = {matrix.at<double>(0, 0), matrix.at<double>(1, 1), matrix.at<double>(0, 2),
               matrix.at<double>(1, 2), distortion.at<double>(0)};
  side.poses.assign(side.images.size(), {});
  for (std::size_t k = 0; k < used.size(); ++k) side.poses[used[k]] = pose_of(turns[k], shifts[k]);
}

/// The pose of the target turned by 180 degrees about its middle, where each point has the number of its
/// opposite.
Pose turned(const Pose& pose, const Target& target) {
  const bool is_shifted = target.pattern == TargetPattern::acircles;
  const int columns = is_shifted ? 2 * target.columns : target.columns;
  Pose half;
  half.rotation.diagonal() << -1, -1, 1;
  half.translation << (columns - 1) * target.square_mm, (target.rows - 1) * target.square_mm, 0;
  return pose.after(half);
}

void turn_points(CalibrationImage& image, const Target& target) {
  const Pose half = turned({}, target);
  for (TargetPoint& point : image.points)
    point.mm_x = half.translation[0] - point.mm_x, point.mm_y = half.translation[1] - point.mm_y;
}

/// How far two relative poses are apart: the angle between them, rad, plus the distance of the cameras as a
/// share of the working distance.
double difference(const Pose& a, const Pose& b, double working_distance) {
  return camera::rotation_vector(a.rotation * b.rotation.transpose()).norm() +
         (a.translation - b.translation).norm() / working_distance;
}

/// Finds which right image belongs to which left one, and which of them is numbered from its other end.
class Pairing {
 public:
  Pairing(const Side& left, const Side& right, const Target& target, const std::vector<std::size_t>& used)
      : left_(left), right_(right), target_(target), used_(used) {
    for (const std::size_t i : used)
      distance_ += left.poses[i].translation.norm() / static_cast<double>(used.size());
    turns_ = calibration::looks_the_same_turned(target) ? 2 : 1;
  }

  /// The relative pose by left image i and right image j.
  Pose relative(std::size_t i, std::size_t j, int turn) const {
    const Pose right = turn == 0 ? right_.poses[j] : turned(right_.poses[j], target_);
    return right.after(left_.poses[i].inverse());
  }

  struct Match {
    double difference = std::numeric_limits<double>::infinity();
    std::size_t right = 0;
    int turn = 0;
  };
  /// The right image among `candidates` that fits left image i best under a relative pose.
  Match best(std::size_t i, const std::vector<std::size_t>& candidates, const Pose& pose) const {
    Match best;
    for (const std::size_t j : candidates)
      for (int turn = 0; turn < turns_; ++turn)
        if (const double far = difference(relative(i, j, turn), pose, distance_); far < best.difference)
          best = {far, j, turn};
    return best;
  }

  /// The relative pose on which most pairs agree: of candidate pairs (i, j), the one with the least median
  /// difference to each left image's own pair, or to its best one. Among equals the cameras that are turned
  /// least against each other: a target that looks the same from both ends may be turned in all images.
  std::pair<Pose, double> consensus(bool own_pairs) const {
    constexpr double kTurned =
        1e-3;  // weight of the cameras' rotation about their axes, decides among equals
    std::pair<Pose, double> best{{}, std::numeric_limits<double>::infinity()};
    for (const std::size_t i : used_)
      for (const std::size_t j : own_pairs ? std::vector{i} : used_)
        for (int turn = 0; turn < turns_; ++turn) {
          const Pose pose = relative(i, j, turn);
          std::vector<double> differences;
          for (const std::size_t k : used_) differences.push_back(best_of(k, own_pairs, pose).difference);
          std::ranges::nth_element(differences, differences.begin() + std::ssize(differences) / 2);
          const double cost = differences[differences.size() / 2] +
                              kTurned * std::abs(std::atan2(pose.rotation(1, 0), pose.rotation(0, 0)));
          if (cost < best.second) best = {pose, cost};
        }
    return best;
  }
  Match best_of(std::size_t i, bool own_pair, const Pose& pose) const {
    return best(i, own_pair ? std::vector{i} : used_, pose);
  }

 private:
  const Side &left_, &right_;
  const Target& target_;
  const std::vector<std::size_t>& used_;
  double distance_ = 0;  ///< from the camera to the targets, mm
  int turns_ = 1;
};

constexpr double kAlike = 0.1;  // difference of relative poses that rough lenses explain

[[noreturn]] void refuse_mixed_pairs(const Pairing& pairing, const Side& left, const Side& right,
                                     const std::vector<std::size_t>& used) {
  const auto [pose, cost] = pairing.consensus(false);
  std::string text =
      "The pairs contradict each other: left and right images must show the target at the same moments";
  for (const std::size_t i : used)
    if (const auto match = pairing.best_of(i, false, pose); match.difference < kAlike && match.right != i)
      throw UsageError(text + "; for instance " + left.images[i].file + " fits " +
                       right.images[match.right].file + ", not " + right.images[i].file +
                       ": check the order of the files.");
  throw UsageError(text + "; check the order of the files.");
}

/// Pairs whose poses contradict the consensus get a problem; returns the others and the consensus.
std::pair<std::vector<std::size_t>, Pose> agreeing_pairs(Side& left, Side& right, const Target& target,
                                                         const std::vector<std::size_t>& used,
                                                         StereoCalibration& result) {
  const Pairing pairing(left, right, target, used);
  const auto [pose, cost] = pairing.consensus(true);
  if (cost > kAlike) refuse_mixed_pairs(pairing, left, right, used);
  std::vector<std::size_t> agreeing;
  std::string from_other_end;
  for (const std::size_t i : used) {
    const auto own = pairing.best_of(i, true, pose), any = pairing.best_of(i, false, pose);
    if (own.difference > kAlike) {
      result.pairs[i].problem =
          "The two images do not belong together" +
          (any.difference < kAlike ? ": the left one fits " + right.images[any.right].file + "."
                                   : std::string("."));
      continue;
    }
    agreeing.push_back(i);
    if (own.turn == 0) continue;
    turn_points(right.images[i], target);
    from_other_end += (from_other_end.empty() ? "" : ", ") + right.images[i].file;
  }
  if (!from_other_end.empty())
    result.warnings.push_back(
        "The points of the target were numbered from its other end, turned by 180 degrees, and turned back "
        "in: " +
        from_other_end + "; a target with rings or markers has no such doubt.");
  return {agreeing, pose};
}

/// Radius of the circles on the target from their areas in the images, mm; 0 for corners.
double radius_of(const Side& side, const std::vector<std::size_t>& used) {
  std::vector<double> radii;
  for (const std::size_t i : used)
    for (const TargetPoint& p : side.images[i].points) {
      if (!(p.area > 0)) continue;
      const auto at = [&](double dx, double dy) {
        return calibration::project(side.lens,
                                    side.poses[i].rotation * Eigen::Vector3d(p.mm_x + dx, p.mm_y + dy, 0) +
                                        side.poses[i].translation);
      };
      const auto o = at(0, 0), x = at(1e-3, 0), y = at(0, 1e-3);
      const double px2_per_mm2 = std::abs((x.x - o.x) * (y.y - o.y) - (x.y - o.y) * (y.x - o.x)) * 1e6;
      radii.push_back(std::sqrt(p.area / px2_per_mm2 / std::numbers::pi));
    }
  if (radii.empty()) return 0;
  std::ranges::nth_element(radii, radii.begin() + std::ssize(radii) / 2);
  return radii[radii.size() / 2];
}

/// A point that fits no rig, such as a dot under dirt: far beyond the scatter of all others.
bool remove_outliers(Bundle& bundle) {
  constexpr double kFar = 7;  // robust standard deviations
  std::vector<double> sizes;
  for (const auto& view : bundle.views)
    for (const CalibrationImage* image : view.images)
      for (const auto& r : image->residuals) sizes.push_back(std::hypot(r.x, r.y));
  std::ranges::nth_element(sizes, sizes.begin() + std::ssize(sizes) / 2);
  const double limit = kFar * sizes[sizes.size() / 2] / 1.18;  // the median of two normal components' length
  bool removed = false;
  for (const auto& view : bundle.views)
    for (CalibrationImage* image : view.images) {
      std::vector<TargetPoint> kept;
      for (std::size_t k = 0; k < image->points.size(); ++k)
        if (std::hypot(image->residuals[k].x, image->residuals[k].y) <= limit)
          kept.push_back(image->points[k]);
      const bool has_outliers =
          kept.size() < image->points.size() && 10 * kept.size() > 9 * image->points.size();
      if (has_outliers) image->points = std::move(kept), removed = true;
    }
  return removed;
}

double rms_of_view(const calibration::BundleView& view) {
  auto all = view.images[0]->residuals;
  all.insert(all.end(), view.images[1]->residuals.begin(), view.images[1]->residuals.end());
  return calibration::root_mean_square(all);
}

/// Takes the pair of the largest residuals out of the bundle if its target seems to have moved between the
/// two images: its residuals exceed three times the median of all.
bool leave_out_the_worst_view(Bundle& bundle, const std::vector<CalibrationImage>& left,
                              StereoCalibration& result) {
  if (bundle.views.size() <= kLeastPairs) return false;
  std::vector<double> sorted;
  for (const auto& view : bundle.views) sorted.push_back(rms_of_view(view));
  std::ranges::sort(sorted);
  const auto worst =
      std::ranges::max_element(bundle.views, {}, [](const auto& view) { return rms_of_view(view); });
  if (rms_of_view(*worst) <= 3 * sorted[sorted.size() / 2]) return false;
  char text[160];
  std::snprintf(text, sizeof text,
                "It does not fit the other pairs (%.3f px): was the target still, and were both images taken "
                "at the same time?",
                rms_of_view(*worst));
  const auto number = static_cast<std::size_t>(worst->images[0] - left.data());
  result.pairs[number].problem = text;
  for (CalibrationImage* image : worst->images)
    image->residuals.clear(), image->rms = CalibrationImage::kNone;
  bundle.views.erase(worst);
  return true;
}

/// Sums over all images that give the true place of one point of the target.
struct TargetResidual {
  Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
  Eigen::Vector2d right = Eigen::Vector2d::Zero();
  int count = 0;
  Eigen::Vector2d place = Eigen::Vector2d::Zero(), shift = Eigen::Vector2d::Zero();  ///< mm
};
using TargetResiduals = std::map<std::pair<long, long>, TargetResidual>;

/// The number of a point on the grid of the target.
std::pair<long, long> number_of(const TargetPoint& p, double square) {
  return {std::lround(p.mm_x / square), std::lround(p.mm_y / square)};
}

/// The change of the image of a point of the target, px, for a change of its place, mm.
Eigen::Matrix2d image_by_target(const Bundle& bundle, const Pose& target, std::size_t side,
                                const TargetPoint& p) {
  const Pose pose = side == 0 ? target : bundle.right_from_left.after(target);
  const auto at = [&](double dx, double dy) {
    const auto seen = calibration::project(
        bundle.lenses[side], pose.rotation * Eigen::Vector3d(p.mm_x + dx, p.mm_y + dy, 0) + pose.translation);
    return Eigen::Vector2d(seen.x, seen.y);
  };
  constexpr double kChange = 1e-3;  // mm
  Eigen::Matrix2d slope;
  slope.col(0) = (at(kChange, 0) - at(-kChange, 0)) / (2 * kChange);
  slope.col(1) = (at(0, kChange) - at(0, -kChange)) / (2 * kChange);
  return slope;
}

TargetResiduals target_residuals(const Bundle& bundle, double square) {
  TargetResiduals all;
  for (const auto& view : bundle.views)
    for (std::size_t side = 0; side < 2; ++side)
      for (std::size_t k = 0; k < view.images[side]->points.size(); ++k) {
        const TargetPoint& p = view.images[side]->points[k];
        const Eigen::Vector2d residual(view.images[side]->residuals[k].x, view.images[side]->residuals[k].y);
        const Eigen::Matrix2d slope = image_by_target(bundle, view.target, side, p);
        TargetResidual& one = all[number_of(p, square)];
        one.normal += slope.transpose() * slope;
        one.right += slope.transpose() * residual;
        one.place = {p.mm_x, p.mm_y};
        ++one.count;
      }
  return all;
}

/// Sets the shift of each point that its residuals ask for, without the affine part, which belongs to the
/// cameras and to the given spacing.
void find_shifts(TargetResiduals& all) {
  Eigen::MatrixXd places(all.size(), 3), shifts(all.size(), 2);
  Eigen::Index row = 0;
  for (auto& [number, one] : all) {
    places.row(row) << one.place[0], one.place[1], 1;
    shifts.row(row++) = core::solve_symmetric(one.normal, one.right).transpose();
  }
  const Eigen::MatrixXd affine = core::least_squares(places, shifts);
  const Eigen::MatrixXd rest = shifts - places * affine;
  row = 0;
  for (auto& [number, one] : all) one.shift = rest.row(row++).transpose();
}

/// True if the residuals of the same point of the target agree over the images far more than chance allows.
bool is_irregular(const TargetResiduals& all, std::size_t views, double rms) {
  constexpr std::size_t kLeastViews = 5;
  constexpr double kLeast = 0.05, kChance = 4;  // px; ratio of mean squares
  double squares = 0, expected = 0;
  for (const auto& [number, one] : all) {
    const double explained = one.right.dot(one.normal.ldlt().solve(one.right));  // sum of squares, px^2
    squares += explained / one.count / static_cast<double>(all.size());
    expected += rms * rms / one.count / static_cast<double>(all.size());
  }
  return views >= kLeastViews && squares > kLeast * kLeast && squares > kChance * expected;
}

/// Fits the places of the target's points together with the cameras, if the target is not as regular as its
/// description: printed on paper, a dot is some micrometres from its place, and the residuals are those of
/// the print. (In turn: the points by their mean residuals, the cameras by the bundle adjustment.)
void refine_target(Bundle& bundle, BundleFit& found, StereoCalibration& result) {
  constexpr int kRounds = 12;
  const double square = result.target.square_mm;
  if (!is_irregular(target_residuals(bundle, square), bundle.views.size(), found.rms)) return;
  std::map<std::pair<long, long>, Eigen::Vector2d> total;
  for (int i = 0; i < kRounds; ++i) {
    TargetResiduals all = target_residuals(bundle, square);
    find_shifts(all);
    for (const auto& view : bundle.views)
      for (CalibrationImage* image : view.images)
        for (TargetPoint& p : image->points) {
          const Eigen::Vector2d& shift = all.at(number_of(p, square)).shift;
          p.mm_x += shift[0], p.mm_y += shift[1];
        }
    for (const auto& [number, one] : all)
      total.try_emplace(number, Eigen::Vector2d::Zero()).first->second += one.shift;
    found = calibration::adjust(bundle);
  }
  double squares = 0;
  for (const auto& [number, shift] : total)
    squares += shift.squaredNorm() / static_cast<double>(total.size());
  result.target_error_mm = std::sqrt(squares);
  char text[240];
  std::snprintf(
      text, sizeof text,
      "The points of the target are off their regular places by %.1f um (root mean square); their true "
      "places were fitted as well: a more exact target makes the calibration better.",
      1000 * result.target_error_mm);
  result.warnings.emplace_back(text);
}

/// Fits with few parameters first: from far away all of them at once may lead astray.
BundleFit fit(Bundle& bundle, const std::vector<CalibrationImage>& left, StereoCalibration& result) {
  const std::vector<int> all = calibration::free_parameters(result.model);
  bundle.free = {0, 1, 4};
  calibration::adjust(bundle);
  bundle.free = calibration::free_parameters(LensModel::k1);
  calibration::adjust(bundle);
  bundle.free = all;
  BundleFit found = calibration::adjust(bundle);
  while (leave_out_the_worst_view(bundle, left, result)) found = calibration::adjust(bundle);
  for (int i = 0; i < 3 && remove_outliers(bundle); ++i) found = calibration::adjust(bundle);
  refine_target(bundle, found, result);
  return found;
}

/// Throws UsageError if the images do not determine the rig.
void check_bundle_determined(const Bundle& bundle, const BundleFit& found, StereoCalibration& result) {
  constexpr double kMost = 0.1, kGood = 0.01;  // of the focal length
  const auto deviation = [&](int side, int k) {
    const int at = side * static_cast<int>(camera::kEstimableParameters) + k;
    return std::sqrt(found.covariance(at, at));
  };
  double worst = 0;
  for (int side = 0; side < 2; ++side)
    for (const int k : {0, 1})
      worst = std::max(worst, deviation(side, k) /
                                  (bundle.lenses[side].*kLensParameters[static_cast<std::size_t>(k)].value));
  if (!(worst < kMost))
    throw UsageError(
        "These images do not determine the focal lengths, because the target is hardly tilted in them: add "
        "pairs with the target tilted by 20 to 40 degrees to several sides.");
  if (worst > kGood)
    result.warnings.emplace_back(
        "The focal lengths are known to no better than 1 %: add pairs with the target tilted by 20 to 40 "
        "degrees.");
  for (int side = 0; side < 2; ++side)
    for (const int k : bundle.free)
      if (!std::isfinite(deviation(side, k)))
        throw UsageError("These images do not determine the parameter " +
                         std::string(kLensParameters[static_cast<std::size_t>(k)].name) +
                         " of the lenses: add images that show the target in all parts of the image, or "
                         "choose a lens model with fewer parameters.");
}

/// The point between two rays that is nearest to both, in the left camera's axes.
Eigen::Vector3d triangulated(const camera::EpipolarPair& pair, const RigCamera& right) {
  const Eigen::Matrix3d rotation = camera::matrix_of(right.rotation);
  const Eigen::Vector3d from = -(rotation.transpose() * camera::vector_of(right.translation_mm));
  Eigen::Matrix<double, 3, 2> rays;
  rays << pair.left, -(rotation.transpose() * pair.right);
  const Eigen::Vector2d lengths = core::least_squares(rays, from);
  return (pair.left * lengths[0] + from + rotation.transpose() * pair.right * lengths[1]) / 2;
}

/// The points that both images of a pair show.
struct Common {
  TargetPoint left, right;
};
std::vector<Common> common_points(const CalibrationPair& pair) {
  std::vector<Common> common;
  for (const TargetPoint& p : pair.left.points) {
    const auto found = std::ranges::find_if(
        pair.right.points, [&](const TargetPoint& q) { return p.mm_x == q.mm_x && p.mm_y == q.mm_y; });
    if (found != pair.right.points.end()) common.push_back({p, *found});
  }
  return common;
}

/// The length by the given spacing of what check_distance_mm measures.
double nominal_distance(const Target& target) {
  const bool is_charuco = target.pattern == TargetPattern::charuco;
  const int steps = is_charuco ? target.columns - 2 : target.columns - 1;
  return (target.pattern == TargetPattern::acircles ? 2 : 1) * steps * target.square_mm;
}

/// Sets the distances from the epipolar lines of all pairs, and the mean of the checked distance.
void judge_pairs(StereoCalibration& result) {
  const RigCamera& right = result.rig.cameras[1];
  const Camera first(result.rig.cameras[0].camera), second(right.camera);
  double squares = 0, count = 0, length = 0, lengths = 0;
  for (CalibrationPair& pair : result.pairs) {
    if (!pair.problem.empty()) continue;
    double own = 0;
    const std::vector<Common> common = common_points(pair);
    std::vector<std::pair<double, Eigen::Vector3d>> row;  // first row: place on the target, and in space
    for (const auto& [p, q] : common) {
      const auto seen = camera::epipolar_pair(first, second, {p.x, p.y}, {q.x, q.y});
      const double far = camera::line_distance(camera::essential_matrix(right), seen);
      own += far * far;
      if (std::lround(p.mm_y / result.target.square_mm) == 0)
        row.emplace_back(p.mm_x, triangulated(seen, right));
    }
    squares += own, count += static_cast<double>(common.size());
    pair.epipolar_px = std::sqrt(own / std::max<double>(1, static_cast<double>(common.size())));
    if (row.size() < 2) continue;
    const auto [a, b] = std::ranges::minmax(row, {}, [](const auto& point) { return point.first; });
    // Hidden ends and dots beyond the rings: the given spacing relates what is seen to the whole.
    length += (a.second - b.second).norm() / (b.first - a.first), lengths += 1;
  }
  result.rig.epipolar_px = std::sqrt(squares / count);
  if (result.check_distance_mm > 0 && lengths > 0)
    result.found_distance_mm = length / lengths * nominal_distance(result.target);
}

/// The warning that the given spacing contradicts a measured distance; empty if it does not.
std::string wrong_spacing(const StereoCalibration& result) {
  constexpr double kMost = 0.002;
  const double ratio = result.check_distance_mm / result.found_distance_mm;
  if (!(std::abs(ratio - 1) > kMost)) return {};
  char text[240];
  std::snprintf(
      text, sizeof text,
      "The checked distance is %.4g mm by this calibration, but %.4g mm as measured: the spacing of the "
      "target is %.5g mm, or another row was measured.",
      result.found_distance_mm, result.check_distance_mm, result.target.square_mm * ratio);
  return text;
}

void warn(StereoCalibration& result, std::size_t used) {
  const auto add = [&](const std::string& text) { result.warnings.push_back(text); };
  if (used < kFewPairs)
    add("Only " + std::to_string(used) +
        " pairs were used: 15 with the target in all parts of both images make "
        "the calibration better and its standard deviations trustworthy.");
  if (std::min(result.coverage[0], result.coverage[1]) < 0.5)
    add("The targets cover less than half of an image: the distortion is not known outside them.");
  const Eigen::Vector3d centre = -(camera::matrix_of(result.rig.cameras[1].rotation).transpose() *
                                   camera::vector_of(result.rig.cameras[1].translation_mm));
  if (-centre[0] > 0.5 * centre.norm())
    add("The right camera stands to the left of the left one: left and right images are swapped, unless you "
        "mean them so.");
  if (std::abs(centre[0]) < 0.5 * centre.norm() && std::abs(centre[1]) > 0.5 * centre.norm())
    add("The cameras stand one above the other: the calibration is valid, but left and right mean nothing.");
  if (const std::string text = wrong_spacing(result); !text.empty()) add(text);
  if (result.rig.epipolar_px > 0.5)
    add("Points lie far from their epipolar lines: was the target flat and still, and its spacing even?");
}

/// The largest angle between the target's planes in two views, degrees.
double largest_tilt(const Bundle& bundle) {
  double cosine = 1;
  for (const auto& a : bundle.views)
    for (const auto& b : bundle.views)
      cosine = std::min(cosine, a.target.rotation.col(2).dot(b.target.rotation.col(2)));
  return std::acos(std::clamp(cosine, -1.0, 1.0)) * kDegrees;
}

std::vector<std::size_t> usable_pairs(const Side& left, const Side& right, StereoCalibration& result) {
  std::vector<std::size_t> used;
  for (std::size_t i = 0; i < left.images.size(); ++i) {
    const auto first = calibration::first_alike(left.images, i);
    if (first && calibration::first_alike(right.images, i) == first)
      result.pairs[i].problem =
          "The target stands as in " + left.images[*first].file + ", which counts once.";
    for (const Side* side : {&left, &right})
      if (result.pairs[i].problem.empty() && !side->images[i].problem.empty())
        result.pairs[i].problem = side->images[i].file + ": " + side->images[i].problem;
    if (result.pairs[i].problem.empty()) used.push_back(i);
  }
  if (used.size() >= kLeastPairs) return used;
  const auto unused =
      std::ranges::find_if(result.pairs, [](const auto& pair) { return !pair.problem.empty(); });
  throw UsageError("The target was found in both images of " + std::to_string(used.size()) +
                   " pairs, but two cameras need at least 3, better 15: " +
                   (unused == result.pairs.end() ? std::string("take more.") : unused->problem));
}

Side look(const std::vector<std::string>& images, const Target& target, core::ThreadPool& pool) {
  Side side;
  side.images = calibration::look_at_all(*open_frames(images), target, pool, side.size);
  return side;
}

void store(const Bundle& bundle, const BundleFit& found, const std::array<Size, 2>& sizes,
           StereoCalibration& result) {
  CameraRig& rig = result.rig;
  rig.cameras.resize(2);
  for (std::size_t k = 0; k < 2; ++k) rig.cameras[k].camera = {sizes[k], bundle.lenses[k], {}};
  camera::store(bundle.right_from_left.rotation, rig.cameras[1].rotation);
  camera::store(bundle.right_from_left.translation, rig.cameras[1].translation_mm);
  const Eigen::Index n = found.covariance.rows();
  for (Eigen::Index i = 0; i < n; ++i)
    for (Eigen::Index j = 0; j < n; ++j) rig.covariance.push_back(found.covariance(i, j));
  result.rms = found.rms;
  result.baseline_mm = bundle.right_from_left.translation.norm();
  result.angle_deg = std::acos(std::clamp(bundle.right_from_left.rotation(2, 2), -1.0, 1.0)) * kDegrees;
}

}  // namespace

std::vector<std::string> StereoCalibrationJob::validate() const {
  std::vector<std::string> list = target.validate();
  if (left.empty() || right.empty())
    list.emplace_back("Images of both cameras must be given, in pairs by their order.");
  if (!(check_distance_mm >= 0) || !std::isfinite(check_distance_mm))
    list.emplace_back("The measured distance on the target must be positive, in mm.");
  if (check_distance_mm > 0 && target.columns < 3)
    list.emplace_back("To check a distance on a target with rings, say how many columns of dots it spans.");
  return list;
}

StereoCalibration calibrate_stereo(const StereoCalibrationJob& job) {
  if (const auto problems = job.validate(); !problems.empty()) throw UsageError(problems.front());
  core::ThreadPool pool(job.threads);
  Side left = look(job.left, job.target, pool), right = look(job.right, job.target, pool);
  if (left.images.size() != right.images.size())
    throw UsageError("There are " + std::to_string(left.images.size()) + " left images, but " +
                     std::to_string(right.images.size()) + " right ones: images pair by their order.");
  StereoCalibration result;
  result.model = job.model, result.target = job.target, result.check_distance_mm = job.check_distance_mm;
  result.pairs.resize(left.images.size());
  std::vector<std::size_t> used = usable_pairs(left, right, result);
  find_rough_lens(left, used);
  find_rough_lens(right, used);
  Bundle bundle;
  bundle.lenses = {left.lens, right.lens};
  std::tie(used, bundle.right_from_left) = agreeing_pairs(left, right, job.target, used, result);
  bundle.radius_mm = (radius_of(left, used) + radius_of(right, used)) / 2;
  for (const std::size_t i : used)
    bundle.views.push_back({{&left.images[i], &right.images[i]}, left.poses[i]});
  const BundleFit found = fit(bundle, left.images, result);
  check_bundle_determined(bundle, found, result);
  store(bundle, found, {left.size, right.size}, result);
  if (const auto problems = result.rig.validate(); !problems.empty()) throw UsageError(problems.front());
  std::array<std::vector<const CalibrationImage*>, 2> seen;
  for (const auto& view : bundle.views)
    for (std::size_t k = 0; k < 2; ++k) seen[k].push_back(view.images[k]);
  result.coverage = {calibration::coverage_of(seen[0], left.size),
                     calibration::coverage_of(seen[1], right.size)};
  for (std::size_t i = 0; i < result.pairs.size(); ++i)
    result.pairs[i].left = left.images[i], result.pairs[i].right = right.images[i];
  judge_pairs(result);
  warn(result, bundle.views.size());
  if (largest_tilt(bundle) < kLeastTilt)
    result.warnings.emplace_back(
        "The target is tilted alike in all pairs, so that focal lengths and distances are poorly known: add "
        "pairs with the target tilted by 20 to 40 degrees to several sides.");
  return result;
}

}  // namespace dic
