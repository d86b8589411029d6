#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <system_error>

#include "core/advice.hpp"
#include "core/new_file.hpp"
#include "image/codecs.hpp"
#include "image/endings.hpp"
#include "image/opencv_codecs.hpp"
#include "image/pgm.hpp"

namespace dic {

using namespace image;

namespace fs = std::filesystem;

namespace {

bool one_of(const std::string& ending, std::initializer_list<const char*> endings) {
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}

/// The ending in lower case. Throws UsageError if the format lacks the depth: OpenCV would change the depth.
std::string checked_ending(const fs::path& path, const RasterFormat& image) {
  const std::string ending = lower_case_ending(path);
  bool fits = one_of(ending, {".tif", ".tiff"});
  if (image.type != ScalarType::f32) fits |= ending == ".png" || (ending == ".pgm" && image.channels == 1);
  if (image.type == ScalarType::u8) fits |= ending == ".bmp";
  if (!fits)
    throw UsageError("'" + path.string() +
                     "' cannot hold this image: write 8 bit to .png, .tif, .bmp or (grey) " +
                     ".pgm, 16 bit to .png, .tif or .pgm, float to .tif.");
  return ending;
}

[[noreturn]] void refuse(const fs::path& path, int error) {
  throw FileError("'" + path.string() + "' cannot be written (" + std::generic_category().message(error) +
                  "); " + core::advice_for_writing(error) + ".");
}

/// Writes a file completely or not at all.
void write_bytes(const fs::path& path, std::span<const std::uint8_t> bytes) {
  std::error_code failure;
  core::NewFile target(path, failure);
  if (failure) refuse(path, failure.value());
  errno = 0;
  std::ofstream file(target.temporary(), std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) refuse(path, errno);
  target.commit(failure);
  if (failure) refuse(path, failure.value());
}

/// Gathers all rows, for codecs that need them at once.
Raster gathered(const RasterFormat& image, const RowWriter& write_row, Buffer& buffer) {
  const std::span<std::uint8_t> pixels = buffer.get(image.row_bytes() * image.height);
  for (int y = 0; y < image.height; ++y)
    write_row(y, pixels.subspan(y * image.row_bytes(), image.row_bytes()));
  return {image, pixels.data()};
}

void encode_and_write(const fs::path& path, const RasterFormat& image, const RowWriter& write_row) {
  const std::string ending = checked_ending(path, image);
  if (image.width == 0 || image.height == 0)
    throw UsageError("'" + path.string() + "' cannot be written: the image has no pixels.");
  try {
    ImageBuffers buffers;
    if (ending == ".png") return write_bytes(path, encode_png(image, write_row, buffers));
    if (ending == ".pgm") return write_bytes(path, encode_pgm(image, write_row, buffers.unpacked));
    write_bytes(path, opencv_codecs().encode(ending, gathered(image, write_row, buffers.unpacked)));
  } catch (const Refusal& why) {
    throw FileError("'" + path.string() + "' " + why.what());
  }
}

}  // namespace

void write_image(const fs::path& path, ImageView image) {
  if (image.type != ScalarType::u8 && image.type != ScalarType::u16 && image.type != ScalarType::f32)
    throw UsageError("An image of type " + std::string(to_string(image.type)) +
                     " cannot be written; convert it to u8, u16 or f32.");
  const ImageView checked =
      ImageView::of(image.data, image.type, image.size(), image.row_bytes, image.bit_depth);
  encode_and_write(path, {checked.width, checked.height, 1, checked.type, checked.bit_depth},
                   [&](int y, std::span<std::uint8_t> row) {
                     std::memcpy(row.data(), checked.row<std::byte>(y), row.size());
                   });
}

void write_image(const fs::path& path, RgbView image) {
  if (!image.data && image.width > 0 && image.height > 0)
    throw UsageError("The pixels of an image are a null pointer.");
  write_image(path, RgbRows{{image.width, image.height}, [&](int y, std::span<std::uint8_t> row) {
                              std::memcpy(row.data(), image.data + y * row.size(), row.size());
                            }});
}

void write_image(const fs::path& path, const RgbRows& image) {
  if (image.size.width < 0 || image.size.height < 0)
    throw UsageError("An image cannot have a negative size.");
  if (!image.write_row) throw UsageError("An image by rows needs a function that writes them.");
  encode_and_write(path, {image.size.width, image.size.height, 3, ScalarType::u8}, image.write_row);
}

}  // namespace dic
