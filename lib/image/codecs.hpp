#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "image/buffer.hpp"
#include "image/content.hpp"
#include "image/raster.hpp"
#include "image/tiff_page.hpp"

/// The decoders behind read_image(). OpenCV decodes most formats (opencv_codecs.hpp). PNG is read and written
/// with libdeflate, which takes half the time of zlib. JPEG and TIFF are read directly by libjpeg and
/// libtiff: OpenCV returns a damaged JPEG as a full image with a message on stderr, and gives wrong grey
/// values, without any message, for planar 16-bit RGB, grey with alpha and other TIFFs.
namespace dic::image {

/// Why an image cannot be read: the end of a sentence that begins with the file's name.
class DIC_INTERNAL_API Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The Refusal of a file whose contents violate its format.
Refusal damaged(const std::string& format, const std::string& detail);
/// The Refusal of a file that the system does not open or read; `error` is its errno.
Refusal cannot_be_read(int error);

/// Largest number of pixels: OpenCV's limit, applied to every format.
inline constexpr std::int64_t kMaxPixels = std::int64_t{1} << 30;
/// Throws Refusal for empty images and those beyond kMaxPixels.
void check_size(std::int64_t width, std::int64_t height);

/// Throws Refusal if a file is far too small for the image size in its header, so that a few bytes cannot
/// make the program allocate gigabytes. A large blank image of 2000 pixels per byte still passes.
DIC_INTERNAL_API void check_plausible(std::int64_t width, std::int64_t height, std::uint64_t file_bytes);

Image decode_jpeg(std::span<const std::uint8_t> bytes, Content content);
/// Decodes a PNG; modifies the bytes.
Image decode_png(std::span<std::uint8_t> bytes, Buffer& unpacked, Content content);
/// Encodes 8 or 16 bits per element. Requests rows from the top. The result lies in the buffers.
std::span<const std::uint8_t> encode_png(const RasterFormat& image, const RowWriter& write_row,
                                         ImageBuffers& buffers);
/// The pages of a TIFF that are pictures, in order; see tiff_pages() of tiff_file.hpp.
std::vector<TiffPage> pages_of_tiff(const std::filesystem::path& path);
/// Decodes a page, straight from the file, because a TIFF may be much larger than a page.
Image decode_tiff(const std::filesystem::path& path, const TiffPage& page, ImageBuffers& buffers,
                  Content content);
/// Decodes the first picture.
Image decode_first_page(const std::filesystem::path& path, ImageBuffers& buffers, Content content);
/// True if the first picture is compressed with loss.
bool is_lossy_tiff(const std::filesystem::path& path);

/// Like read_image() of <dic/image_io.hpp>, with memory that is reused.
Image read_image(const std::filesystem::path& path, ImageBuffers& buffers);
/// Calls `decode` for a file, and checks the image. Throws FileError with the name of the file.
Image read_checked(const std::filesystem::path& path, const std::function<Image()>& decode);

/// True if the file begins as a TIFF; false if it cannot be read.
bool is_tiff(const std::filesystem::path& path);

}  // namespace dic::image
