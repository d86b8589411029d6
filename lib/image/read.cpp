#include <cerrno>
#include <cmath>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <new>
#include <system_error>

#include "image/codecs.hpp"
#include "image/opencv_codecs.hpp"
#include "image/pgm.hpp"

namespace dic {

using namespace image;

namespace fs = std::filesystem;

Refusal image::damaged(const std::string& format, const std::string& detail) {
  return Refusal("is a damaged or truncated " + format + " (" + detail + "); copy or export it again.");
}

void image::check_size(std::int64_t width, std::int64_t height) {
  if (width <= 0 || height <= 0) throw Refusal("has no pixels; export it again.");
  if (width > kMaxPixels / height)
    throw Refusal("is too large: " + std::to_string(width) + "x" + std::to_string(height) +
                  " px, at most 2^30 pixels can be read; crop or bin it.");
}

void image::check_plausible(std::int64_t width, std::int64_t height, std::uint64_t file_bytes) {
  constexpr std::int64_t kAlwaysFine = std::int64_t{1} << 24;  // px; images up to this take little memory
  constexpr std::uint64_t kMostPixelsPerByte = 2000;
  const std::int64_t pixels = width * height;
  if (pixels > kAlwaysFine && pixels / kMostPixelsPerByte > file_bytes)
    throw Refusal("claims " + std::to_string(width) + "x" + std::to_string(height) + " px in " +
                  std::to_string(file_bytes) + " bytes: it is damaged or blank; copy or export it again.");
}

namespace {

enum class Format { png, jpeg, tiff, pgm, other };

Format format_of(std::string_view start) {
  using namespace std::literals;
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return Format::png;
  if (start.starts_with("\xff\xd8\xff"sv)) return Format::jpeg;
  if (start.starts_with("P5"sv)) return Format::pgm;
  // Classic TIFF and BigTIFF, little and big endian.
  for (const auto magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv})
    if (start.starts_with(magic)) return Format::tiff;
  return Format::other;
}

Refusal unreadable() {
  return Refusal("cannot be read (" + std::generic_category().message(errno) +
                 "); check the file and its permissions.");
}

/// Opens a file and gets its size. Refuses all except regular files: a pipe has no size and would block.
std::ifstream open_file(const fs::path& path, std::uintmax_t& size) {
  std::error_code error;
  const auto status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) throw Refusal("does not exist; check the name.");
  if (fs::is_directory(status)) throw Refusal("is a directory; name an image inside it.");
  if (error) throw Refusal("cannot be read (" + error.message() + "); check the path and its permissions.");
  if (!fs::is_regular_file(status)) throw Refusal("is not a regular file; name an image file.");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw unreadable();
  size = fs::file_size(path);
  if (size == 0) throw Refusal("is empty (0 bytes); copy or export it again.");
  return file;
}

void read_at(std::ifstream& file, std::uintmax_t offset, std::span<std::uint8_t> bytes) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw unreadable();
}

Image decode(const fs::path& path, ImageBuffers& buffers) {
  std::uintmax_t size = 0;
  std::ifstream file = open_file(path, size);
  char start[64] = {};
  file.read(start, sizeof start);
  const std::string_view begin(start, static_cast<std::size_t>(file.gcount()));
  const Format format = format_of(begin);
  if (format == Format::tiff) return decode_tiff(path, buffers);
  if (const auto header = format == Format::pgm ? plain_pgm(begin) : std::nullopt)
    return read_pgm(*header, size,
                    [&](std::span<std::uint8_t> pixels) { read_at(file, header->bytes, pixels); });
  const std::span<std::uint8_t> bytes = buffers.file.get(size);
  read_at(file, 0, bytes);
  if (format == Format::jpeg) return decode_jpeg(bytes);
  if (format == Format::png) return decode_png(bytes, buffers.unpacked);
  return opencv_codecs().decode({bytes.begin(), bytes.end()});
}

void check_finite(const Image& image) {
  if (image.type() != ScalarType::f32) return;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (!std::isfinite(image.row<float>(y)[x]))
        throw Refusal("holds values that are not finite, the first at x=" + std::to_string(x) +
                      ", y=" + std::to_string(y) + "; replace NaN and infinity before.");
}

}  // namespace

Image read_image(const fs::path& path) {
  ImageBuffers buffers;
  return read_image(path, buffers);
}

Image image::read_image(const fs::path& path, ImageBuffers& buffers) {
  try {
    Image image = decode(path, buffers);
    check_finite(image);
    return image;
  } catch (const Refusal& why) {
    throw FileError("'" + path.string() + "' " + why.what());
  } catch (const std::bad_alloc&) {
    throw FileError("'" + path.string() + "' needs more memory than there is; crop or bin it.");
  }
}

}  // namespace dic
