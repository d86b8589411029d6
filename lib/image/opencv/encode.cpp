#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "image/codecs.hpp"
#include "image/opencv/codecs.hpp"
#include "image/opencv/quiet.hpp"

namespace dic::image {
namespace {

int cv_depth(ScalarType type) {
  if (type == ScalarType::f32) return CV_32F;
  return type == ScalarType::u16 ? CV_16U : CV_8U;
}

/// The pixels in OpenCV's order of channels.
cv::Mat bgr_or_grey(const Raster& image) {
  cv::Mat pixels(image.height, image.width, CV_MAKETYPE(cv_depth(image.type), image.channels),
                 const_cast<void*>(image.data));
  if (image.channels == 1) return pixels;
  cv::Mat bgr;
  cv::cvtColor(pixels, bgr, cv::COLOR_RGB2BGR);
  return bgr;
}

}  // namespace

std::vector<std::uint8_t> encode_with_opencv(const std::string& ending, const Raster& image) {
  std::vector<std::uint8_t> bytes;
  try {
    const QuietCerr quiet;
    cv::imencode(ending, bgr_or_grey(image), bytes);
  } catch (const cv::Exception& e) {
    throw Refusal("cannot be encoded (" + e.err + "); choose another format.");
  }
  return bytes;
}

}  // namespace dic::image
