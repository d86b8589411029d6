#pragma once

#include <dic/draw.hpp>
#include <opencv2/core.hpp>
#include <string>

namespace dic::draw {

/// A canvas of pixels that is written as PNG.
class OpenCvCanvas final : public Canvas {
 public:
  OpenCvCanvas(double width, double height);

  double resolution() const override { return 1; }
  void polyline(std::span<const Point> points, Colour colour, double width) override;
  void polygon(std::span<const Point> points, Colour colour) override;
  void disc(Point centre, double radius, Colour colour) override;
  void image(const RgbRows& pixels, Point corner) override;
  void text(std::string_view words, Point at, double size, Colour colour, Align align) override;
  double width_of(std::string_view words, double size) const override;
  void write(const std::filesystem::path& path) override;

 private:
  cv::Mat paper_;  ///< 8-bit R, G, B
};

}  // namespace dic::draw
