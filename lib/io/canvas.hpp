#pragma once

#include <filesystem>
#include <opencv2/core.hpp>
#include <string>

namespace dic::io {

/// A white image to draw on; coordinates in px.
class Canvas {
 public:
  inline static const cv::Scalar kInk{40, 40, 40}, kGridLine{225, 225, 225};

  Canvas(int width, int height);

  void line(cv::Point2d a, cv::Point2d b, const cv::Scalar& colour, double width);
  void disc(cv::Point2d centre, double radius, const cv::Scalar& colour);
  void box(cv::Point2d corner, cv::Point2d opposite, const cv::Scalar& colour);
  /// `at`: the left end of the base line.
  void text(const std::string& words, cv::Point2d at, double size, const cv::Scalar& colour = kInk);

  static double width_of(const std::string& words, double size);
  /// One of eight colours that can be told apart; they repeat.
  static cv::Scalar colour(std::size_t k);

  /// Writes a PNG. Throws FileError.
  void write(const std::filesystem::path& path) const;

 private:
  cv::Size size_;
  cv::Mat paper_;
};

/// "0.5", "20", "1e+06".
std::string short_number(double value);

}  // namespace dic::io
