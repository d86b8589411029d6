#include <algorithm>
#include <cmath>
#include <dic/calibrate.hpp>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/opencv.hpp>
#include <limits>
#include <numeric>
#include <opencv2/calib3d.hpp>
#include <opencv2/imgproc.hpp>
#include <utility>

#include "calibrate/target_images.hpp"
#include "camera/lens.hpp"

namespace dic {
namespace {

constexpr std::size_t kLeastImages = 3;  // images that a lens needs

using calibration::coverage_of;
using calibration::free_parameters;
using calibration::in_image;
using calibration::look_at;
using calibration::look_at_all;
using calibration::on_target;
using calibration::root_mean_square;
using camera::kLensParameters;
using camera::kPinholeParameters;

cv::Matx33d matrix_of(const Lens& l) { return {l.fx, 0, l.cx, 0, l.fy, l.cy, 0, 0, 1}; }

cv::Mat distortion_of(const Lens& l) {
  return (cv::Mat_<double>(1, 8) << l.k1, l.k2, l.p1, l.p2, l.k3, l.k4, l.k5, l.k6);
}

void set_residuals(CalibrationImage& image, const std::vector<cv::Point2f>& predicted) {
  image.residuals.clear();
  for (std::size_t k = 0; k < predicted.size(); ++k)
    image.residuals.push_back({image.points[k].x - predicted[k].x, image.points[k].y - predicted[k].y});
  image.rms = root_mean_square(image.residuals);
}

std::vector<CalibrationImage*> usable(std::vector<CalibrationImage>& images) {
  std::vector<CalibrationImage*> list;
  for (CalibrationImage& image : images)
    if (image.problem.empty()) list.push_back(&image);
  return list;
}

int flags_of(LensModel model) {
  switch (model) {
    case LensModel::k1:
      return cv::CALIB_FIX_K2 | cv::CALIB_FIX_K3 | cv::CALIB_ZERO_TANGENT_DIST;
    case LensModel::k1k2:
      return cv::CALIB_FIX_K3 | cv::CALIB_ZERO_TANGENT_DIST;
    case LensModel::brown:
      return 0;
    case LensModel::rational:
      break;
  }
  return cv::CALIB_RATIONAL_MODEL;
}

/// Standard deviations of the lens parameters by least squares, with the pose of each image eliminated.
/// (Those of cv::calibrateCamera are too large by the square root of 2: it counts a point as one residual.)
class LensDeviations {
 public:
  explicit LensDeviations(int distortion_terms)
      : parameters_(static_cast<int>(kPinholeParameters) + distortion_terms),
        normal_(cv::Mat::zeros(parameters_, parameters_, CV_64F)) {}

  /// Adds the residuals of an image. jacobian: from cv::projectPoints, its first six columns are the pose.
  void add(const CalibrationImage& image, const cv::Mat& jacobian) {
    const cv::Mat pose = jacobian.colRange(0, 6), lens = jacobian.colRange(6, 6 + parameters_);
    const cv::Mat mixed = lens.t() * pose;
    const cv::Mat inverse = cv::Mat(pose.t() * pose).inv(cv::DECOMP_SVD);
    normal_ += lens.t() * lens - mixed * inverse * mixed.t();
    for (const auto& r : image.residuals) squares_ += r.x * r.x + r.y * r.y;
    freedom_ += 2 * static_cast<int>(image.residuals.size()) - 6;
  }

  /// The deviations of a lens; infinite for parameters that the images leave open. free: indices in
  /// kLensParameters of the estimated parameters.
  Lens of(const std::vector<int>& free) const {
    const int n = static_cast<int>(free.size());
    const std::vector<double> variances = unit_variances(free);
    Lens deviations;
    for (int i = 0; i < n; ++i)
      deviations.*kLensParameters[free[i]].value =
          std::sqrt(variances[i] * squares_ / std::max(1, freedom_ - n));
    return deviations;
  }

 private:
  /// Variances of the parameters for residuals of variance 1. A pseudo-inverse would leave out the directions
  /// that the images do not determine, and so call a parameter exact that is not known at all.
  std::vector<double> unit_variances(const std::vector<int>& free) const {
    constexpr double kOpen = 1e-10;     // an eigenvalue of the normalized matrix below this is rounding
    constexpr double kInvolved = 1e-6;  // least share of such a direction in a parameter that it leaves open
    const int n = static_cast<int>(free.size());
    const auto scale = [&](int i) {
      return std::sqrt(std::max(normal_.at<double>(free[i], free[i]), std::numeric_limits<double>::min()));
    };
    cv::Mat part(n, n, CV_64F), eigenvalues, eigenvectors;
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        part.at<double>(i, j) = normal_.at<double>(free[i], free[j]) / (scale(i) * scale(j));
    cv::eigen(part, eigenvalues, eigenvectors);
    std::vector<double> variances(n, 0.0);
    for (int k = 0; k < n; ++k)
      for (int i = 0; i < n; ++i) {
        const double share = std::pow(eigenvectors.at<double>(k, i), 2);
        const double eigenvalue = eigenvalues.at<double>(k);
        if (eigenvalue > kOpen)
          variances[i] += share / eigenvalue / std::pow(scale(i), 2);
        else if (share > kInvolved)
          variances[i] = std::numeric_limits<double>::infinity();
      }
    return variances;
  }

  int parameters_;
  cv::Mat normal_;
  double squares_ = 0;
  int freedom_ = 0;
};

/// The points of images as OpenCV takes them.
struct Views {
  explicit Views(const std::vector<CalibrationImage*>& images) {
    for (const CalibrationImage* image : images) {
      objects.push_back(on_target(*image));
      seen.push_back(in_image(*image));
      points += image->points.size();
    }
  }

  std::vector<std::vector<cv::Point3f>> objects;
  std::vector<std::vector<cv::Point2f>> seen;
  std::size_t points = 0;
};

const cv::TermCriteria kEnd(cv::TermCriteria::COUNT | cv::TermCriteria::EPS, 100, 1e-12);

/// Computes lens, deviations and residuals from these images.
void fit_lens(const std::vector<CalibrationImage*>& images, Calibration& result) {
  if (images.size() < kLeastImages) {
    const auto unused =
        std::ranges::find_if(result.images, [](const auto& image) { return !image.problem.empty(); });
    throw UsageError(
        "The target was found in " + std::to_string(images.size()) +
        " different views, but a lens needs at least 3, better 15: " +
        (unused == result.images.end() ? std::string("take more.") : unused->file + ": " + unused->problem));
  }
  const Views views(images);
  cv::Mat matrix, distortion;
  std::vector<cv::Mat> turns, shifts;
  const Size size = result.camera.image;
  cv::calibrateCamera(views.objects, views.seen, cv::Size(size.width, size.height), matrix, distortion, turns,
                      shifts, flags_of(result.model), kEnd);
  Lens lens{matrix.at<double>(0, 0), matrix.at<double>(1, 1), matrix.at<double>(0, 2),
            matrix.at<double>(1, 2)};
  const std::size_t terms = std::min(distortion.total(), camera::kEstimableParameters - kPinholeParameters);
  for (std::size_t k = 0; k < terms; ++k)
    lens.*kLensParameters[kPinholeParameters + k].value = distortion.at<double>(static_cast<int>(k));
  result.camera.lens = lens;
  LensDeviations deviations(static_cast<int>(distortion.total()));
  for (std::size_t i = 0; i < images.size(); ++i) {
    std::vector<cv::Point2f> predicted;
    cv::Mat jacobian;
    cv::projectPoints(views.objects[i], turns[i], shifts[i], matrix, distortion, predicted, jacobian);
    set_residuals(*images[i], predicted);
    deviations.add(*images[i], jacobian);
  }
  result.deviations = deviations.of(free_parameters(result.model));
}

double rms_of(const std::vector<CalibrationImage*>& images) {
  std::vector<Camera::Point> all;
  for (const CalibrationImage* image : images)
    all.insert(all.end(), image->residuals.begin(), image->residuals.end());
  return root_mean_square(all);
}

double median_rms(const std::vector<CalibrationImage*>& images) {
  std::vector<double> all;
  for (const CalibrationImage* image : images) all.push_back(image->rms);
  std::nth_element(all.begin(), all.begin() + std::ssize(all) / 2, all.end());
  return all[all.size() / 2];
}

/// Sum of squared residuals, px^2, of the best lens whose focal length is `factor` times that of the result.
double squares_with_focal_length(double factor, const std::vector<CalibrationImage*>& images,
                                 const Calibration& result) {
  const Views views(images);
  Lens lens = *result.camera.lens;
  lens.fx *= factor, lens.fy *= factor;
  cv::Mat matrix(matrix_of(lens)), distortion = distortion_of(lens);
  std::vector<cv::Mat> turns, shifts;
  const Size size = result.camera.image;
  const double rms = cv::calibrateCamera(
      views.objects, views.seen, cv::Size(size.width, size.height), matrix, distortion, turns, shifts,
      flags_of(result.model) | cv::CALIB_USE_INTRINSIC_GUESS | cv::CALIB_FIX_FOCAL_LENGTH, kEnd);
  return rms * rms * static_cast<double>(views.points);
}

/// Standard deviation of the focal length as a share of it, from how much worse a focal length fits that is a
/// tenth larger or smaller. Unlike the covariance at the solution, this also tells when the solver stopped
/// somewhere in a long valley.
double relative_focal_deviation(const std::vector<CalibrationImage*>& images, const Calibration& result) {
  constexpr double kChange = 0.1;
  double squares = 0, freedom = -static_cast<double>(free_parameters(result.model).size());
  for (const CalibrationImage* image : images) {
    for (const auto& r : image->residuals) squares += r.x * r.x + r.y * r.y;
    freedom += 2 * static_cast<double>(image->residuals.size()) - 6;
  }
  const double nearest = std::min(squares_with_focal_length(1 + kChange, images, result),
                                  squares_with_focal_length(1 - kChange, images, result));
  if (!(nearest > squares)) return std::numeric_limits<double>::infinity();
  return kChange * std::sqrt(squares / std::max(1.0, freedom) / (nearest - squares));
}

/// Throws UsageError if the images do not determine the lens: without tilt, a target twice as far away in a
/// camera of twice the focal length looks the same.
void check_determined(const std::vector<CalibrationImage*>& images, const Calibration& result) {
  constexpr double kMost = 0.1;  // of the focal length
  const Lens& deviations = *result.deviations;
  const bool has_focal =
      deviations.fx < kMost * result.camera.lens->fx && deviations.fy < kMost * result.camera.lens->fy;
  if (!has_focal || !(relative_focal_deviation(images, result) < kMost))
    throw UsageError(
        "These images do not determine the focal length, because the target is hardly tilted in them: add "
        "images "
        "with the target tilted by 20 to 40 degrees to several sides.");
  for (const int index : free_parameters(result.model))
    if (const auto& [name, value] = kLensParameters[index]; !std::isfinite(deviations.*value))
      throw UsageError(
          "These images do not determine the parameter " + std::string(name) +
          " of the lens: add images that show the target in all parts of the image, or choose a lens model "
          "with fewer parameters.");
}

/// Fits again without the image of the largest residuals if its target seems to be bent, moved or mistaken:
/// its residuals exceed three times the median, or those of all others halve. False: nothing changed.
bool leave_out_the_worst(Calibration& result) {
  const auto all = usable(result.images);
  if (all.size() <= kLeastImages) return false;
  CalibrationImage* worst = *std::ranges::max_element(all, {}, &CalibrationImage::rms);
  auto others = all;
  std::erase(others, worst);
  const bool stands_out = worst->rms > 3 * median_rms(all);
  const double before = rms_of(others), own = worst->rms;
  fit_lens(others, result);
  if (!stands_out && rms_of(others) > before / 2) {
    fit_lens(all, result);
    return false;
  }
  char text[120];
  std::snprintf(text, sizeof text,
                "It does not fit the other images (%.3f px): was the target flat and still?", own);
  worst->problem = text;
  worst->residuals.clear();
  return true;
}

void calibrate_lens(const CalibrationJob& job, Calibration& result) {
  core::ThreadPool pool(job.threads);
  result.images = look_at_all(*open_frames(job.images), job.target, pool, result.camera.image);
  for (std::size_t i = 0; i < result.images.size(); ++i)
    if (const auto first = calibration::first_alike(result.images, i))
      result.images[i].problem =
          "The target stands as in " + result.images[*first].file + ", which counts once.";
  fit_lens(usable(result.images), result);
  while (leave_out_the_worst(result)) continue;
  check_determined(usable(result.images), result);
  result.rms = rms_of(usable(result.images));
  const auto used = usable(result.images);
  result.coverage = coverage_of({used.begin(), used.end()}, result.camera.image);
  if (result.coverage < 0.5)
    result.warnings.push_back(
        "The targets cover less than half of the image: the distortion is not known outside them.");
  if (result.deviations->fx > 0.01 * result.camera.lens->fx)
    result.warnings.push_back(
        "The focal length is known to no better than 1 %: add images with the target tilted by 20 to 40 "
        "degrees.");
}

/// Fits the plane by the target's pose: its six parameters are known better than the eight of a homography.
SpecimenPlane fit_pose(const Lens& lens, PlaneFit& fit) {
  const auto object = on_target(fit.image);
  cv::Vec3d turn, shift;
  cv::solvePnP(object, in_image(fit.image), matrix_of(lens), distortion_of(lens), turn, shift);
  std::vector<cv::Point2f> predicted;
  cv::projectPoints(object, turn, shift, matrix_of(lens), distortion_of(lens), predicted);
  set_residuals(fit.image, predicted);
  cv::Matx33d r;
  cv::Rodrigues(turn, r);
  const cv::Matx33d h = matrix_of(lens) * cv::Matx33d(r(0, 0), r(0, 1), shift[0], r(1, 0), r(1, 1), shift[1],
                                                      r(2, 0), r(2, 1), shift[2]);
  fit.tilt_deg = std::acos(std::min(1.0, std::abs(r(2, 2)))) * 180 / CV_PI;
  fit.distance_mm = std::abs((r(0, 2) * shift[0] + r(1, 2) * shift[1] + r(2, 2) * shift[2]) / r(2, 2));
  SpecimenPlane plane;
  std::copy(h.val, h.val + 9, plane.px_from_mm.begin());
  return plane;
}

SpecimenPlane fit_homography(PlaneFit& fit) {
  std::vector<cv::Point2f> flat;
  for (const cv::Point3f& p : on_target(fit.image)) flat.emplace_back(p.x, p.y);
  const cv::Mat h = cv::findHomography(flat, in_image(fit.image), 0);
  if (h.empty()) throw FileError(fit.image.file + ": the target gives no homography; take another image.");
  std::vector<cv::Point2f> predicted;
  cv::perspectiveTransform(flat, predicted, h);
  set_residuals(fit.image, predicted);
  SpecimenPlane plane;
  std::copy(h.ptr<double>(), h.ptr<double>() + 9, plane.px_from_mm.begin());
  return plane;
}

void fit_plane(const CalibrationJob& job, Calibration& result) {
  Size size;
  PlaneFit fit;
  fit.image = look_at(*open_frames({job.plane}), 0, job.target, size);
  if (!fit.image.problem.empty()) throw FileError(job.plane + ": " + fit.image.problem);
  if (result.camera.image == Size{}) result.camera.image = size;
  if (size != result.camera.image) throw UsageError(job.plane + " differs in size from the camera's images.");
  result.camera.plane = result.camera.lens ? fit_pose(*result.camera.lens, fit) : fit_homography(fit);
  if (!result.camera.lens && fit.image.rms > 0.1)
    result.warnings.push_back(
        "The plane's residuals are large: the lens distorts; calibrate it with several images of the "
        "target.");
  result.plane = std::move(fit);
}

}  // namespace

std::vector<std::string> CalibrationJob::validate() const {
  std::vector<std::string> list = target.validate();
  if (images.empty() && plane.empty())
    list.push_back(
        "No images were given: name several of the target for the lens, one of it on the specimen, or both.");
  if (camera && !camera->lens) list.push_back("The camera file holds no lens: calibrate it with images.");
  if (camera && (!images.empty() || plane.empty()))
    list.push_back(
        "The camera file gives the lens: name no images of the target but one of it on the specimen.");
  return list;
}

Calibration calibrate(const CalibrationJob& job) {
  if (const auto problems = job.validate(); !problems.empty()) throw UsageError(problems.front());
  Calibration result;
  result.model = job.model;
  result.target = job.target;
  if (job.camera) result.camera = {job.camera->image, job.camera->lens, {}};
  if (!job.images.empty()) calibrate_lens(job, result);
  if (!job.plane.empty()) {
    fit_plane(job, result);
    if (const auto problems = result.camera.validate(); !problems.empty()) throw UsageError(problems.front());
    result.plane->rms_mm = result.plane->image.rms * Camera(result.camera).scale_mm_per_px();
  } else if (const auto problems = result.camera.validate(); !problems.empty()) {
    throw UsageError(problems.front());
  }
  return result;
}

}  // namespace dic
