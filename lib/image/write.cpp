#include <algorithm>
#include <cctype>
#include <cerrno>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <system_error>

#include "core/new_file.hpp"
#include "image/endings.hpp"
#include "image/quiet.hpp"

namespace dic {

namespace fs = std::filesystem;

namespace {

bool one_of(const std::string& ending, std::initializer_list<const char*> endings) {
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

int cv_depth(ScalarType type) {
  switch (type) {
    case ScalarType::u8:
      return CV_8U;
    case ScalarType::u16:
      return CV_16U;
    case ScalarType::f32:
      return CV_32F;
    default:
      throw UsageError("An image of type " + std::string(to_string(type)) +
                       " cannot be written; convert it to u8, u16 or f32.");
  }
}

/// The ending in lower case. OpenCV would choose another depth on its own where the format lacks one.
std::string checked_ending(const fs::path& path, int depth, int channels) {
  const std::string ending = lower_case_ending(path);
  bool fits = one_of(ending, {".tif", ".tiff"});
  if (depth != CV_32F) fits |= ending == ".png" || (ending == ".pgm" && channels == 1);
  if (depth == CV_8U) fits |= ending == ".bmp";
  if (!fits)
    throw UsageError("'" + path.string() +
                     "' cannot hold this image: write 8 bit to .png, .tif, .bmp or (grey) " +
                     ".pgm, 16 bit to .png, .tif or .pgm, float to .tif.");
  return ending;
}

[[noreturn]] void refuse(const fs::path& path, int error) {
  throw FileError("'" + path.string() + "' cannot be written (" + std::generic_category().message(error) +
                  "); free some space or choose another place.");
}

/// The file is whole or not there.
void write_bytes(const fs::path& path, const std::vector<std::uint8_t>& bytes) {
  std::error_code failure;
  NewFile target(path, failure);
  if (failure) refuse(path, failure.value());
  errno = 0;
  std::ofstream file(target.temporary(), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) refuse(path, errno);
  target.commit(failure);
  if (failure) refuse(path, failure.value());
}

void encode_and_write(const fs::path& path, const cv::Mat& image) {
  const std::string ending = checked_ending(path, image.depth(), image.channels());
  if (image.empty()) throw UsageError("'" + path.string() + "' cannot be written: the image has no pixels.");
  std::vector<std::uint8_t> bytes;
  try {
    const QuietCerr quiet;
    cv::imencode(ending, image, bytes);
  } catch (const cv::Exception& e) {
    throw FileError("'" + path.string() + "' cannot be encoded (" + e.err + "); choose another format.");
  }
  write_bytes(path, bytes);
}

}  // namespace

void write_image(const fs::path& path, ImageView image) {
  // Checked, and with rows in OpenCV's order: upwards in memory and unaligned rows are copied.
  const ImageView checked =
      ImageView::of(image.data, image.type, image.size(), image.row_bytes, image.bit_depth);
  const Image packed = copy_of(checked);
  encode_and_write(path, cv::Mat(packed.height(), packed.width(), cv_depth(image.type),
                                 const_cast<std::byte*>(packed.row<std::byte>(0))));
}

void write_image(const fs::path& path, RgbView image) {
  if (image.width < 0 || image.height < 0) throw UsageError("An image cannot have a negative size.");
  if (!image.data && image.width > 0 && image.height > 0)
    throw UsageError("The pixels of an image are a null pointer.");
  const cv::Mat rgb(image.height, image.width, CV_8UC3, const_cast<std::uint8_t*>(image.data));
  cv::Mat bgr;
  if (!rgb.empty()) cv::cvtColor(rgb, bgr, cv::COLOR_RGB2BGR);
  encode_and_write(path, rgb.empty() ? rgb : bgr);
}

}  // namespace dic
