#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/calibrate.hpp>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/opencv.hpp>
#include <opencv2/imgproc.hpp>
#include <vector>

#include "calibrate/bundle.hpp"
#include "camera/epipolar.hpp"

namespace dic {
namespace {

constexpr int kWidth = 800;  // of each image in the picture, px
constexpr int kMargin = 40;  // height of the legend below the images, px
constexpr std::size_t kLines = 12;

/// The pair with the most points; of the used ones.
const CalibrationPair& shown(const StereoCalibration& calibration) {
  const auto points = [](const CalibrationPair& pair) {
    return pair.problem.empty() ? pair.left.points.size() + pair.right.points.size() : 0;
  };
  return *std::ranges::max_element(calibration.pairs, {}, points);
}

/// Pastes an image, scaled, into a half of the canvas; returns the scale.
double paste(const std::string& file, const cv::Mat& canvas) {
  const Image image = read_image(file);
  const cv::Mat pixels = as_mat(image.view());
  cv::Mat grey, small;
  cv::normalize(pixels, grey, 0, 255, cv::NORM_MINMAX, CV_8U);
  const double zoom =
      std::min(static_cast<double>(canvas.cols) / grey.cols, static_cast<double>(canvas.rows) / grey.rows);
  cv::resize(grey, small, {}, zoom, zoom, cv::INTER_AREA);
  const cv::Rect place = cv::Rect(0, 0, small.cols, small.rows) & cv::Rect({}, canvas.size());
  cv::Mat coloured;
  cv::cvtColor(small(place), coloured, cv::COLOR_GRAY2RGB);
  coloured.copyTo(canvas(place));
  return zoom;
}

/// The epipolar line of a left point, bent by the right lens: images of places along the left ray.
std::vector<cv::Point2d> epipolar_line(const Camera& left, const RigCamera& right, const TargetPoint& point,
                                       double distance_mm) {
  constexpr int kParts = 200;
  const Lens& lens = *left.parameters().lens;
  const auto ideal = left.undistort(point.x, point.y);
  const Eigen::Vector3d ray((ideal.x - lens.cx) / lens.fx, (ideal.y - lens.cy) / lens.fy, 1);
  const Eigen::Matrix3d rotation = camera::matrix_of(right.rotation);
  std::vector<cv::Point2d> line;
  for (int k = 0; k <= kParts; ++k) {
    const double depth = distance_mm * std::exp2(2.0 * k / kParts - 1);
    const auto at = calibration::project(*right.camera.lens,
                                         rotation * ray * depth + camera::vector_of(right.translation_mm));
    if (std::isfinite(at.x) && std::isfinite(at.y)) line.emplace_back(at.x, at.y);
  }
  return line;
}

cv::Scalar colour_of(std::size_t number) {
  const cv::Mat hsv(1, 1, CV_8UC3, cv::Scalar(std::fmod(static_cast<double>(number) * 68.75, 180), 220, 230));
  cv::Mat rgb;
  cv::cvtColor(hsv, rgb, cv::COLOR_HSV2RGB);
  const auto c = rgb.at<cv::Vec3b>(0, 0);
  return {static_cast<double>(c[0]), static_cast<double>(c[1]), static_cast<double>(c[2])};
}

}  // namespace

void write_epipolar_picture(const std::filesystem::path& path, const StereoCalibration& calibration) {
  const CalibrationPair& pair = shown(calibration);
  const RigCamera& right = calibration.rig.cameras[1];
  const Camera left(calibration.rig.cameras[0].camera);
  const Size size = left.parameters().image;
  const int height = std::max(1, kWidth * size.height / size.width);
  cv::Mat canvas(height + kMargin, 2 * kWidth, CV_8UC3, cv::Scalar::all(255));
  cv::Mat halves[2] = {canvas(cv::Rect(0, 0, kWidth, height)), canvas(cv::Rect(kWidth, 0, kWidth, height))};
  const double zooms[2] = {paste(pair.left.file, halves[0]), paste(pair.right.file, halves[1])};
  const auto place = [&](int side, double x, double y) {
    return cv::Point(cvRound(std::clamp(x * zooms[side], -1e4, 1e4)),
                     cvRound(std::clamp(y * zooms[side], -1e4, 1e4)));
  };
  // Rays cross the target within half to twice this distance.
  const double distance =
      calibration.baseline_mm / std::max(0.05, 2 * std::sin(calibration.angle_deg * CV_PI / 360));
  const std::size_t step = std::max<std::size_t>(1, pair.left.points.size() / kLines);
  for (std::size_t k = 0; k < pair.left.points.size(); k += step) {
    const TargetPoint& point = pair.left.points[k];
    const cv::Scalar colour = colour_of(k / step);
    cv::circle(halves[0], place(0, point.x, point.y), 4, colour, 2, cv::LINE_AA);
    std::vector<cv::Point> line;
    for (const auto& p : epipolar_line(left, right, point, distance)) line.push_back(place(1, p.x, p.y));
    if (line.size() > 1) cv::polylines(halves[1], line, false, colour, 1, cv::LINE_AA);
  }
  for (const TargetPoint& point : pair.right.points)
    cv::circle(halves[1], place(1, point.x, point.y), 2, cv::Scalar(255, 255, 255), cv::FILLED, cv::LINE_AA);
  char legend[160];
  std::snprintf(legend, sizeof legend,
                "Points on the left, their epipolar lines on the right; root mean square distance %.4f px",
                calibration.rig.epipolar_px);
  cv::putText(canvas, legend, {8, height + 26}, cv::FONT_HERSHEY_SIMPLEX, 0.6, cv::Scalar::all(30), 1,
              cv::LINE_AA);
  write_image(path, RgbView{canvas.data, canvas.cols, canvas.rows});
}

}  // namespace dic
