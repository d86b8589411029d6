#include "io/canvas.hpp"

#include <cstdio>
#include <dic/image_io.hpp>
#include <iterator>
#include <opencv2/imgproc.hpp>

namespace dic::io {
namespace {

constexpr int kOversampling = 3;  // reduced, OpenCV's stroke font gets smooth edges

// R, G, B. Of even lightness; people with any kind of colour vision can tell them apart (Okabe and Ito).
const cv::Scalar kColours[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115},   {204, 121, 167},
                               {86, 180, 233}, {230, 159, 0}, {120, 120, 120}, {0, 0, 0}};

cv::Point px(cv::Point2d p) { return {cvRound(p.x * kOversampling), cvRound(p.y * kOversampling)}; }

}  // namespace

Canvas::Canvas(int width, int height)
    : size_(width, height),
      paper_(height * kOversampling, width * kOversampling, CV_8UC3, cv::Scalar(255, 255, 255)) {}

void Canvas::line(cv::Point2d a, cv::Point2d b, const cv::Scalar& colour, double width) {
  cv::line(paper_, px(a), px(b), colour, cvRound(width * kOversampling), cv::LINE_AA);
}

void Canvas::disc(cv::Point2d centre, double radius, const cv::Scalar& colour) {
  cv::circle(paper_, px(centre), cvRound(radius * kOversampling), colour, cv::FILLED, cv::LINE_AA);
}

void Canvas::box(cv::Point2d corner, cv::Point2d opposite, const cv::Scalar& colour) {
  cv::rectangle(paper_, px(corner), px(opposite), colour, cv::FILLED);
}

void Canvas::text(const std::string& words, cv::Point2d at, double size, const cv::Scalar& colour) {
  cv::putText(paper_, words, px(at), cv::FONT_HERSHEY_SIMPLEX, size * kOversampling, colour, kOversampling,
              cv::LINE_AA);
}

double Canvas::width_of(const std::string& words, double size) {
  int baseline = 0;
  return cv::getTextSize(words, cv::FONT_HERSHEY_SIMPLEX, size, 1, &baseline).width;
}

cv::Scalar Canvas::colour(std::size_t k) { return kColours[k % std::size(kColours)]; }

void Canvas::write(const std::filesystem::path& path) const {
  cv::Mat reduced;
  cv::resize(paper_, reduced, size_, 0, 0, cv::INTER_AREA);
  write_image(path, RgbView{reduced.data, reduced.cols, reduced.rows});
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

}  // namespace dic::io
