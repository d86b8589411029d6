#include "draw/opencv_canvas.hpp"

#include <algorithm>
#include <cmath>
#include <opencv2/imgproc.hpp>
#include <utility>
#include <vector>

#include "draw/put_rows.hpp"

namespace dic::draw {
namespace {

constexpr int kSubpixelBits = 4;  // fractional bits of cv's fixed-point coordinates
constexpr int kOversampling = 3;  // text is drawn larger and reduced, which smooths OpenCV's stroke font
constexpr double kFontScale = 1 / 29.;  // scale of the stroke font that is as high as a font of size 1

cv::Scalar scalar(Colour colour) { return {double(colour.r), double(colour.g), double(colour.b)}; }

std::vector<cv::Point> fixed_point(std::span<const Canvas::Point> points) {
  std::vector<cv::Point> fixed;
  constexpr double kUnit = 1 << kSubpixelBits;
  for (const Canvas::Point& p : points)
    fixed.emplace_back(cvRound((p.x - 0.5) * kUnit),
                       cvRound((p.y - 0.5) * kUnit));  // pixel centres are at .5
  return fixed;
}

/// Spells in ASCII what the stroke font cannot show.
std::string in_ascii(std::string_view words) {
  static constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
      {"×10", "1e"}, {"⁻", "-"}, {"−", "-"},      {"¹", "1"}, {"²", "2"}, {"³", "3"},
      {"⁴", "4"},    {"⁵", "5"}, {"⁶", "6"},      {"⁷", "7"}, {"⁸", "8"}, {"⁹", "9"},
      {"⁰", "0"},    {"ε", "e"}, {"σ", "sigma "}, {"…", ".."}};
  std::string text;
  while (!words.empty()) {
    const auto spelling = std::ranges::find_if(
        kSpellings, [&](const auto& candidate) { return words.starts_with(candidate.first); });
    if (spelling != std::end(kSpellings)) {
      text += spelling->second;
      words.remove_prefix(spelling->first.size());
    } else {
      if ((words.front() & 0xC0) != 0x80) text += words.front() & 0x80 ? '?' : words.front();
      words.remove_prefix(1);
    }
  }
  return text;
}

struct Extent {
  int width = 0, height = 0, below = 0;  // px; below: depth below the base line
};

Extent extent_of(const std::string& ascii, double scale) {
  Extent extent;
  const cv::Size size = cv::getTextSize(ascii, cv::FONT_HERSHEY_SIMPLEX, scale, kOversampling, &extent.below);
  extent.width = size.width, extent.height = size.height;
  return extent;
}

}  // namespace

OpenCvCanvas::OpenCvCanvas(double width, double height)
    : paper_(static_cast<int>(std::ceil(height)), static_cast<int>(std::ceil(width)), CV_8UC3,
             cv::Scalar::all(255)) {}

void OpenCvCanvas::polyline(std::span<const Point> points, Colour colour, double width) {
  cv::polylines(paper_, fixed_point(points), false, scalar(colour), std::max(1, cvRound(width)), cv::LINE_AA,
                kSubpixelBits);
}

void OpenCvCanvas::polygon(std::span<const Point> points, Colour colour) {
  cv::fillConvexPoly(paper_, fixed_point(points), scalar(colour), cv::LINE_AA, kSubpixelBits);
}

void OpenCvCanvas::disc(Point centre, double radius, Colour colour) {
  const Point one[] = {centre};
  cv::circle(paper_, fixed_point(one).front(), cvRound(radius * (1 << kSubpixelBits)), scalar(colour),
             cv::FILLED, cv::LINE_AA, kSubpixelBits);
}

void OpenCvCanvas::image(const RgbRows& pixels, Point corner) {
  put_rows(
      pixels, {cvRound(corner.x), cvRound(corner.y)}, paper_.size(),
      [this](int x, int y, std::span<const std::uint8_t> rgb) { std::ranges::copy(rgb, paper_.ptr(y, x)); });
}

void OpenCvCanvas::text(std::string_view words, Point at, double size, Colour colour, Align align) {
  const std::string ascii = in_ascii(words);
  if (ascii.empty()) return;
  const double scale = size * kFontScale * kOversampling;
  const Extent extent = extent_of(ascii, scale);
  constexpr int kMargin = 2;  // margin around the text, px of the paper
  const double left = at.x - (align == Align::left     ? 0.0
                              : align == Align::centre ? 0.5
                                                       : 1.0) *
                                 extent.width / kOversampling;
  const cv::Point corner(static_cast<int>(std::floor(left)) - kMargin,
                         static_cast<int>(std::floor(at.y)) - extent.height / kOversampling - kMargin);
  const cv::Rect box(corner, cv::Size(extent.width / kOversampling + 2 * kMargin + 2,
                                      (extent.height + extent.below) / kOversampling + 2 * kMargin + 2));
  cv::Mat large(box.height * kOversampling, box.width * kOversampling, CV_8U, cv::Scalar(0)), ink;
  cv::putText(large, ascii,
              {cvRound((left - corner.x) * kOversampling), cvRound((at.y - corner.y) * kOversampling)},
              cv::FONT_HERSHEY_SIMPLEX, scale, cv::Scalar(255), kOversampling, cv::LINE_AA);
  cv::resize(large, ink, box.size(), 0, 0, cv::INTER_AREA);
  const cv::Rect seen = box & cv::Rect({}, paper_.size());
  const std::uint8_t channels[] = {colour.r, colour.g, colour.b};
  for (int y = seen.y; y < seen.y + seen.height; ++y)
    for (int x = seen.x; x < seen.x + seen.width; ++x)
      for (int c = 0; c < 3; ++c) {
        std::uint8_t& shown = paper_.at<cv::Vec3b>(y, x)[c];
        shown = static_cast<std::uint8_t>(shown + (channels[c] - shown) *
                                                      ink.at<std::uint8_t>(y - box.y, x - box.x) / 255);
      }
}

double OpenCvCanvas::width_of(std::string_view words, double size) const {
  return static_cast<double>(extent_of(in_ascii(words), size * kFontScale * kOversampling).width) /
         kOversampling;
}

void OpenCvCanvas::write(const std::filesystem::path& path) {
  write_image(path, RgbView{paper_.data, paper_.cols, paper_.rows});
}

}  // namespace dic::draw

dic::CanvasFactory dic::png_canvases() {
  return [](double width, double height) { return std::make_unique<draw::OpenCvCanvas>(width, height); };
}
