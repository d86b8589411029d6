#include "calibrate/saddle.hpp"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <optional>

namespace dic::calibration {
namespace {

/// Fits quadratic surfaces f = a x^2 + b x y + c y^2 + d x + e y + constant over a disc by least squares.
class DiscFit {
 public:
  explicit DiscFit(int radius) : radius_(radius) {
    each_pixel(
        [&](double x, double y) { n_ += 1, x2_ += x * x, x4_ += x * x * x * x, x2y2_ += x * x * y * y; });
  }

  /// The vector from `centre`, the middle of the disc, to the saddle; nothing if the surface has no saddle.
  std::optional<cv::Point2d> step(const cv::Mat& grey, cv::Point2d centre) const {
    cv::Mat patch;
    cv::getRectSubPix(grey, {2 * radius_ + 1, 2 * radius_ + 1}, centre, patch, CV_32F);
    double f = 0, fx = 0, fy = 0, fxy = 0, fxx = 0, fyy = 0;
    each_pixel([&](double x, double y) {
      const double value = patch.at<float>(static_cast<int>(y) + radius_, static_cast<int>(x) + radius_);
      f += value, fx += value * x, fy += value * y;
      fxy += value * x * y, fxx += value * x * x, fyy += value * y * y;
    });
    const double sum = (fxx + fyy - 2 * f * x2_ / n_) / (x4_ + x2y2_ - 2 * x2_ * x2_ / n_);
    const double difference = (fxx - fyy) / (x4_ - x2y2_);
    const double a = (sum + difference) / 2, b = fxy / x2y2_, c = (sum - difference) / 2;
    const double d = fx / x2_, e = fy / x2_, det = 4 * a * c - b * b;
    if (!(det < 0)) return std::nullopt;
    return cv::Point2d((b * e - 2 * c * d) / det, (b * d - 2 * a * e) / det);
  }

 private:
  template <typename Body>
  void each_pixel(const Body& body) const {
    const double limit = (radius_ + 0.5) * (radius_ + 0.5);
    for (int y = -radius_; y <= radius_; ++y)
      for (int x = -radius_; x <= radius_; ++x)
        if (x * x + y * y <= limit) body(x, y);
  }

  int radius_;
  double n_ = 0, x2_ = 0, x4_ = 0, x2y2_ = 0;
};

std::optional<cv::Point2f> saddle_near(const cv::Mat& grey, cv::Point2d start, int radius) {
  constexpr int kMostSteps = 30;
  constexpr double kLastStep = 1e-3;  // px
  const DiscFit fit(radius);
  const cv::Rect2d inside(radius, radius, grey.cols - 1 - 2 * radius, grey.rows - 1 - 2 * radius);
  cv::Point2d place = start;
  for (int i = 0; i < kMostSteps && inside.contains(place); ++i) {
    const auto step = fit.step(grey, place);
    if (!step) return std::nullopt;
    place += *step;
    if (cv::norm(place - start) > radius) return std::nullopt;
    if (cv::norm(*step) < kLastStep) return place;
  }
  return std::nullopt;
}

}  // namespace

std::vector<double> nearest_distances(const std::vector<cv::Point2f>& places) {
  std::vector<double> distances(places.size(), 1e9);
  for (std::size_t k = 0; k < places.size(); ++k)
    for (std::size_t other = 0; other < places.size(); ++other)
      if (other != k) distances[k] = std::min(distances[k], cv::norm(places[other] - places[k]));
  return distances;
}

std::vector<std::optional<cv::Point2f>> saddles_near(const cv::Mat& grey, double free,
                                                     const std::vector<cv::Point2f>& corners) {
  constexpr double kBlur = 1.5;  // px; needed because getRectSubPix interpolates linearly between pixels
  cv::Mat smooth;
  cv::GaussianBlur(grey, smooth, {}, kBlur);
  const std::vector<double> distances = nearest_distances(corners);
  std::vector<std::optional<cv::Point2f>> saddles;
  for (std::size_t k = 0; k < corners.size(); ++k) {
    const int radius = std::clamp(static_cast<int>(free * distances[k] - 2 * kBlur), 3, 25);
    saddles.push_back(saddle_near(smooth, corners[k], radius));
  }
  return saddles;
}

}  // namespace dic::calibration
