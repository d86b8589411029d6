#include <algorithm>
#include <cmath>
#include <dic/calibrate.hpp>
#include <dic/image_io.hpp>
#include <opencv2/imgproc.hpp>

namespace dic {
namespace {

constexpr int kLongest = 1200;  // longest side of the picture, px
constexpr int kMargin = 40;     // height of the legend below the image, px
constexpr double kLine = 20;    // length of the line for a residual as large as the root mean square, px

std::vector<const CalibrationImage*> drawn(const Calibration& calibration) {
  std::vector<const CalibrationImage*> images;
  for (const CalibrationImage& image : calibration.images)
    if (!image.residuals.empty()) images.push_back(&image);
  if (calibration.plane) images.push_back(&calibration.plane->image);
  return images;
}

double overall_rms(const std::vector<const CalibrationImage*>& images) {
  double sum = 0, count = 0;
  for (const CalibrationImage* image : images) {
    sum += image->rms * image->rms * static_cast<double>(image->residuals.size());
    count += static_cast<double>(image->residuals.size());
  }
  return std::sqrt(sum / count);
}

/// The colour of an image's residuals. Hues are a golden angle apart, so that successive colours differ.
cv::Scalar colour_of(std::size_t number) {
  const cv::Mat hsv(1, 1, CV_8UC3, cv::Scalar(std::fmod(static_cast<double>(number) * 68.75, 180), 220, 190));
  cv::Mat rgb;
  cv::cvtColor(hsv, rgb, cv::COLOR_HSV2RGB);
  const auto c = rgb.at<cv::Vec3b>(0, 0);
  return {static_cast<double>(c[0]), static_cast<double>(c[1]), static_cast<double>(c[2])};
}

}  // namespace

void write_residual_picture(const std::filesystem::path& path, const Calibration& calibration) {
  const Size size = calibration.camera.image;
  const auto images = drawn(calibration);
  const double zoom = static_cast<double>(kLongest) / std::max(size.width, size.height);
  const double rms = overall_rms(images), enlarged = rms > 0 ? kLine / (rms * zoom) : 1;
  const cv::Size frame(cvRound(size.width * zoom), cvRound(size.height * zoom));
  cv::Mat canvas(frame.height + kMargin, frame.width, CV_8UC3, cv::Scalar::all(255));
  cv::rectangle(canvas, cv::Rect({}, frame), cv::Scalar::all(160));
  constexpr int kFraction = 4;  // fractional bits of a position
  const auto place = [&](double x, double y) {
    return cv::Point(cvRound(x * zoom * (1 << kFraction)), cvRound(y * zoom * (1 << kFraction)));
  };
  for (std::size_t i = 0; i < images.size(); ++i)
    for (std::size_t k = 0; k < images[i]->residuals.size(); ++k) {
      const auto [x, y] = std::pair(images[i]->points[k].x, images[i]->points[k].y);
      const auto [rx, ry] = images[i]->residuals[k];
      cv::line(canvas, place(x, y), place(x + enlarged * rx, y + enlarged * ry), colour_of(i), 1, cv::LINE_AA,
               kFraction);
      cv::circle(canvas, place(x, y), 2 << kFraction, colour_of(i), cv::FILLED, cv::LINE_AA, kFraction);
    }
  char legend[120];
  std::snprintf(legend, sizeof legend,
                "Residuals of %zu images, enlarged %.0f times; root mean square %.4f px", images.size(),
                enlarged, rms);
  cv::putText(canvas, legend, {8, frame.height + 26}, cv::FONT_HERSHEY_SIMPLEX, 0.6, cv::Scalar::all(30), 1,
              cv::LINE_AA);
  write_image(path, RgbView{canvas.data, canvas.cols, canvas.rows});
}

}  // namespace dic
