#include <limits>
#include <opencv2/imgcodecs.hpp>
#include <optional>

#include "image/codecs.hpp"
#include "image/grey.hpp"
#include "image/opencv/codecs.hpp"
#include "image/opencv/quiet.hpp"

namespace dic::image {
namespace {

ScalarType scalar_type(int depth) {
  switch (depth) {
    case CV_8U:
      return ScalarType::u8;
    case CV_16U:
      return ScalarType::u16;
    case CV_32F:
      return ScalarType::f32;
    default:
      throw Refusal("holds elements of a type that is not supported; save it as 8 or 16 bit or float.");
  }
}

/// Lets OpenCV decode straight into an Image, so that a grey image is never copied.
class ImageAllocator : public cv::MatAllocator {
 public:
  explicit ImageAllocator(std::uint64_t file_bytes) : file_bytes_(file_bytes) {}

  mutable Image image;  // mutable because allocate() is const

  cv::UMatData* allocate(int dims, const int* sizes, int type, void*, std::size_t* step, cv::AccessFlag,
                         cv::UMatUsageFlags) const override {
    CV_Assert(dims == 2);
    check_plausible(sizes[1], sizes[0], file_bytes_);
    image = Image({sizes[1] * CV_MAT_CN(type), sizes[0]}, scalar_type(CV_MAT_DEPTH(type)));
    step[1] = CV_ELEM_SIZE(type);
    step[0] = step[1] * sizes[1];
    auto* data = new cv::UMatData(this);
    data->data = data->origdata = image.row<std::uint8_t>(0);
    data->size = step[0] * sizes[0];
    return data;
  }
  bool allocate(cv::UMatData*, cv::AccessFlag, cv::UMatUsageFlags) const override { return false; }
  void deallocate(cv::UMatData* data) const override { delete data; }

 private:
  std::uint64_t file_bytes_;
};

/// Decodes the bytes, and frees them on return.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
void decode_by_opencv(std::vector<std::uint8_t> bytes, cv::Mat& image) {
  const QuietCerr quiet;
  try {
    cv::imdecode(bytes, cv::IMREAD_UNCHANGED, &image);
  } catch (const cv::Exception& e) {
    if (e.func == "validateInputImageSize")
      throw Refusal("is too large: at most 2^30 pixels can be read; crop or bin it.");
    throw Refusal("cannot be decoded (" + e.err + "); export it again as PNG or TIFF.");
  }
  if (image.empty())
    throw Refusal("is not an image that can be decoded, or is damaged; use PNG, TIFF, BMP, JPEG or PGM.");
}

template <typename T>
Image grey_from_bgr_as(const cv::Mat& image, ScalarType type) {
  Image grey({image.cols, image.rows}, type);
  const int channels = image.channels();
  for (int y = 0; y < image.rows; ++y) {
    const T* row = image.ptr<T>(y);
    grey_row(Channels<T>{{row + 2, row + 1, row}, channels}, image.cols, grey.row<T>(y));
  }
  return grey;
}

/// The last of four channels; an empty image if there are fewer.
Image alpha_of(const cv::Mat& image) {
  constexpr int kWithAlpha = 4;
  if (image.channels() != kWithAlpha) return {};
  Image alpha({image.cols, image.rows}, scalar_type(image.depth()));
  visit_scalar(alpha.type(), [&](auto element) {
    using T = decltype(element);
    for (int y = 0; y < image.rows; ++y)
      for (int x = 0; x < image.cols; ++x)
        alpha.row<T>(y)[x] = image.ptr<T>(y)[kWithAlpha * x + kWithAlpha - 1];
  });
  return alpha;
}

}  // namespace

Image grey_from_bgr(const cv::Mat& image) {
  const ScalarType type = scalar_type(image.depth());
  if (type == ScalarType::u8) return grey_from_bgr_as<std::uint8_t>(image, type);
  if (type == ScalarType::u16) return grey_from_bgr_as<std::uint16_t>(image, type);
  return grey_from_bgr_as<float>(image, type);
}

Image decode_with_opencv(std::vector<std::uint8_t> bytes, Content content) {
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Refusal("is too large: files of this format are read up to 2 GiB; crop or bin it.");
  ImageAllocator allocator(bytes.size());
  cv::Mat image;
  image.allocator = &allocator;
  decode_by_opencv(std::move(bytes), image);
  if (content == Content::alpha) return alpha_of(image);
  return image.channels() == 1 ? std::move(allocator.image) : grey_from_bgr(image);
}

}  // namespace dic::image
