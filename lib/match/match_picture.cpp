#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/image_io.hpp>
#include <dic/match.hpp>
#include <opencv2/imgproc.hpp>

namespace dic {
namespace {

const cv::Scalar kBox(255, 60, 30), kTopEdge(40, 220, 60), kPaper(0, 0, 0), kInk(255, 255, 255);  // R, G, B
constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;

/// Converts an image to 8-bit R, G, B; deeper images are stretched between their extremes.
cv::Mat to_rgb(ImageView image) {
  cv::Mat grey(image.height, image.width, CV_8U);
  visit_scalar(image.type, [&]<typename T>(T) {
    double low = 0, high = 255;
    if constexpr (!std::is_same_v<T, std::uint8_t>) {
      low = high = image.row<T>(0)[0];
      for (int y = 0; y < image.height; ++y) {
        const auto [least, most] = std::minmax_element(image.row<T>(y), image.row<T>(y) + image.width);
        low = std::min<double>(low, *least);
        high = std::max<double>(high, *most);
      }
    }
    const double gain = high > low ? 255 / (high - low) : 0;
    for (int y = 0; y < image.height; ++y)
      std::transform(image.row<T>(y), image.row<T>(y) + image.width, grey.ptr(y),
                     [&](T value) { return static_cast<std::uint8_t>(std::lround(gain * (value - low))); });
  });
  cv::Mat rgb;
  cv::cvtColor(grey, rgb, cv::COLOR_GRAY2RGB);
  return rgb;
}

cv::Point fixed_point(const std::array<double, 2>& corner, int fraction_bits) {
  const double one = 1 << fraction_bits;
  return {cvRound(corner[0] * one), cvRound(corner[1] * one)};
}

/// Width of lines, px. Lines and letters grow with the image, because larger images are displayed smaller.
int line_width(const cv::Mat& image) { return std::max(2, std::min(image.cols, image.rows) / 400); }

void draw_box(cv::Mat& image, const Match& match) {
  constexpr int kFractionBits = 4;
  const auto corners = box_corners(match);
  for (std::size_t k = corners.size(); k-- > 0;)  // draws the top edge last, which shows which way is up
    cv::line(image, fixed_point(corners[k], kFractionBits),
             fixed_point(corners[(k + 1) % corners.size()], kFractionBits), k == 0 ? kTopEdge : kBox,
             line_width(image), cv::LINE_AA, kFractionBits);
}

/// Writes the score above the box, or at the nearest place that has room for it.
void draw_label(cv::Mat& image, const Match& match) {
  char text[16];
  std::snprintf(text, sizeof text, "%.3f", match.score);
  const int line = line_width(image), pen = line / 2;
  const double size = 0.25 * line;
  int baseline = 0;
  const cv::Size extent = cv::getTextSize(text, kFont, size, pen, &baseline);
  const cv::Size paper(extent.width + 2 * line, extent.height + baseline + line);

  double left = image.cols, top = image.rows;
  for (const auto& corner : box_corners(match)) {
    left = std::min(left, corner[0]);
    top = std::min(top, corner[1]);
  }
  const cv::Point place(
      std::clamp(cvRound(left), 0, std::max(0, image.cols - paper.width)),
      std::clamp(cvRound(top) - paper.height - line, 0, std::max(0, image.rows - paper.height)));
  cv::rectangle(image, cv::Rect(place, paper), kPaper, cv::FILLED);
  cv::putText(image, text, place + cv::Point(line, line + extent.height), kFont, size, kInk, pen,
              cv::LINE_AA);
}

}  // namespace

void write_match_picture(const std::filesystem::path& path, ImageView image, std::span<const Match> matches) {
  cv::Mat drawing = to_rgb(image);
  for (const Match& match : matches) draw_box(drawing, match);
  for (const Match& match : matches) draw_label(drawing, match);
  write_image(path, RgbView{drawing.data, drawing.cols, drawing.rows});
}

}  // namespace dic
