#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <fstream>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/advice.hpp"
#include "image/codecs.hpp"
#include "image/frame_file.hpp"
#include "image/opencv_codecs.hpp"
#include "image/orientation.hpp"
#include "image/pgm.hpp"
#include "image/webp.hpp"

namespace dic {

using namespace image;

namespace fs = std::filesystem;

Refusal image::damaged(const std::string& format, const std::string& detail) {
  return Refusal("is a damaged or truncated " + format + " (" + detail + "); copy or export it again.");
}

Refusal image::cannot_be_read(int error) {
  return Refusal("cannot be read (" + std::generic_category().message(error) + "); " +
                 core::advice_for_reading(error) + ".");
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

enum class Format { png, jpeg, tiff, pgm, gif, other };

Format format_of(std::string_view start) {
  using namespace std::literals;
  if (start.starts_with("\x89PNG\r\n\x1a\n"sv)) return Format::png;
  if (start.starts_with("\xff\xd8\xff"sv)) return Format::jpeg;
  if (start.starts_with("P5"sv)) return Format::pgm;
  if (start.starts_with("GIF8"sv)) return Format::gif;
  // Classic TIFF and BigTIFF, little and big endian.
  for (const auto magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv})
    if (start.starts_with(magic)) return Format::tiff;
  return Format::other;
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
  if (!file) throw cannot_be_read(errno);
  size = fs::file_size(path);
  if (size == 0) throw Refusal("is empty (0 bytes); copy or export it again.");
  return file;
}

void read_at(std::ifstream& file, std::uintmax_t offset, std::span<std::uint8_t> bytes) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  if (!file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())))
    throw cannot_be_read(errno);
}

/// The first frame of a GIF, which is decoded as a video. begin: the start of the file.
Image decode_gif(const fs::path& path, std::string_view begin, std::uintmax_t size, Content content) {
  if (content == Content::alpha) return {};
  constexpr std::size_t kHeader = 13;
  if (begin.size() < kHeader) throw damaged("GIF", "it ends in its header");
  const auto side = [&](std::size_t at) {
    return static_cast<std::uint8_t>(begin[at]) | static_cast<std::uint8_t>(begin[at + 1]) << 8;
  };
  check_size(side(6), side(8));
  check_plausible(side(6), side(8), size);
  try {
    return opencv_codecs().open_video(path)->read(0);
  } catch (const std::out_of_range&) {
    throw damaged("GIF", "it has no frame");
  }
}

std::string_view start_of(std::ifstream& file, std::span<char> start) {
  file.read(start.data(), std::ssize(start));
  return {start.data(), static_cast<std::size_t>(file.gcount())};
}

Image decode(const fs::path& path, ImageBuffers& buffers, Content content) {
  std::uintmax_t size = 0;
  std::ifstream file = open_file(path, size);
  char start[64] = {};
  const std::string_view begin = start_of(file, start);
  const Format format = format_of(begin);
  if (format == Format::tiff) return decode_first_page(path, buffers, content);
  if (format == Format::gif) return decode_gif(path, begin, size, content);
  if (const auto header = format == Format::pgm ? plain_pgm(begin) : std::nullopt) {
    if (content == Content::alpha) return {};
    return read_pgm(*header, size,
                    [&](std::span<std::uint8_t> pixels) { read_at(file, header->bytes, pixels); });
  }
  const std::span<std::uint8_t> bytes = buffers.file.get(size);
  read_at(file, 0, bytes);
  if (format == Format::jpeg) return decode_jpeg(bytes, content);
  if (format == Format::png) return decode_png(bytes, buffers.unpacked, content);
  check_webp(bytes);
  return oriented(opencv_codecs().decode({bytes.begin(), bytes.end()}, content), webp_orientation(bytes));
}

/// True for files whose compression changes pixels beside an edge.
bool is_lossy(const fs::path& path) {
  std::uintmax_t size = 0;
  std::ifstream file = open_file(path, size);
  char start[64] = {};
  const std::string_view begin = start_of(file, start);
  const Format format = format_of(begin);
  if (format == Format::tiff) return is_lossy_tiff(path);
  if (format != Format::other) return format == Format::jpeg;
  const bool is_jpeg_2000 = begin.find("jP  \r\n") == 4 || begin.starts_with("\xff\x4f\xff\x51");
  return is_jpeg_2000 || is_lossy_webp(begin);
}

void check_finite(const Image& image) {
  if (image.type() != ScalarType::f32) return;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x)
      if (!std::isfinite(image.row<float>(y)[x]))
        throw Refusal("holds values that are not finite, the first at x=" + std::to_string(x) +
                      ", y=" + std::to_string(y) + "; replace NaN and infinity before.");
}

/// 255 for values above `limit`, else 0.
Image above(const Image& image, double limit) {
  Image mask(image.size(), ScalarType::u8);
  visit_scalar(image.type(), [&](auto element) {
    for (int y = 0; y < image.height(); ++y)
      std::transform(image.row<decltype(element)>(y), image.row<decltype(element)>(y) + image.width(),
                     mask.row<std::uint8_t>(y), [limit](auto v) { return v > limit ? 255 : 0; });
  });
  return mask;
}

double largest(const Image& image) {
  double found = 0;
  visit_scalar(image.type(), [&](auto element) {
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x)
        found = std::max(found, static_cast<double>(image.row<decltype(element)>(y)[x]));
  });
  return found;
}

/// Fully opaque elements of alpha have this value.
double opaque(ScalarType type) {
  if (type == ScalarType::f32) return 1;
  return type == ScalarType::u16 ? 65535 : 255;
}

/// Leaves transparent pixels out of a mask. Where all opaque ones have the same answer, the opacity alone
/// decides: editors fill a mask with one colour, black or white, and erase the outside.
void apply_opacity(const Image& opacity, Image& mask) {
  std::int64_t opaque = 0, inside = 0;
  for (int y = 0; y < mask.height(); ++y)
    for (int x = 0; x < mask.width(); ++x) {
      if (!opacity.row<std::uint8_t>(y)[x]) continue;
      ++opaque;
      inside += mask.row<std::uint8_t>(y)[x] != 0;
    }
  const bool is_plain = inside == 0 || inside == opaque;
  for (int y = 0; y < mask.height(); ++y)
    for (int x = 0; x < mask.width(); ++x) {
      std::uint8_t& value = mask.row<std::uint8_t>(y)[x];
      value = opacity.row<std::uint8_t>(y)[x] && (is_plain || value) ? 255 : 0;
    }
}

}  // namespace

bool image::is_tiff(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  char start[4] = {};
  return format_of(start_of(file, start)) == Format::tiff;
}

Image image::read_checked(const fs::path& path, const std::function<Image()>& decode) {
  try {
    Image image = decode();
    check_finite(image);
    return image;
  } catch (const Refusal& why) {
    throw FileError("'" + path.string() + "' " + why.what());
  } catch (const std::bad_alloc&) {
    throw FileError("'" + path.string() + "' needs more memory than there is; crop or bin it.");
  }
}

Image image::read_image(const fs::path& path, ImageBuffers& buffers) {
  return read_checked(path, [&] { return decode(path, buffers, Content::grey); });
}

Image read_image(const fs::path& path) {
  ImageBuffers buffers;
  return read_image(path, buffers);
}

Image read_opacity(const fs::path& path) {
  return read_checked(path, [&] {
    ImageBuffers buffers;
    const Image alpha = decode(path, buffers, Content::alpha);
    if (alpha.empty()) return Image();
    Image opacity = above(alpha, opaque(alpha.type()) / 2);
    for (int y = 0; y < opacity.height(); ++y)
      if (std::memchr(opacity.row<std::uint8_t>(y), 0, static_cast<std::size_t>(opacity.width())))
        return opacity;
    return Image();
  });
}

Image read_mask(const fs::path& path) {
  if (const std::int64_t frames = frames_in(path); frames > 1)
    throw FileError("'" + path.string() + "' holds " + std::to_string(frames) +
                    " images, a mask is one; save the one that is meant.");
  Image mask = read_checked(path, [&] {
    ImageBuffers buffers;
    const Image image = decode(path, buffers, Content::mask);
    return above(image, is_lossy(path) ? largest(image) / 2 : 0);
  });
  if (const Image opacity = read_opacity(path); !opacity.empty()) apply_opacity(opacity, mask);
  return mask;
}

}  // namespace dic
