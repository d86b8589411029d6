// <jpeglib.h> uses FILE without including <cstdio>.
#include <cstdio>
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>
#include <string_view>
#include <utility>
#include <vector>

#include "image/codecs.hpp"
#include "image/grey.hpp"
#include "image/orientation.hpp"

namespace dic::image {
namespace {

/// Decodes a JPEG. libjpeg reports errors by a callback that must not return, and exceptions must not unwind
/// C frames, so the callback uses longjmp. The functions that call setjmp hold no objects with destructors.
class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr info) { fail(info); };
    errors_.emit_message = on_message;
    info_.client_data = this;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  bool read_header(const std::uint8_t* bytes, std::size_t size) {
    if (setjmp(escape_)) return false;
    jpeg_create_decompress(&info_);
    jpeg_mem_src(&info_, bytes, size);
    constexpr unsigned kLongest = 0xffff;
    jpeg_save_markers(&info_, JPEG_APP0 + 1, kLongest);  // EXIF
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  /// Starts decoding into `space`, which libjpeg converts to.
  bool start(J_COLOR_SPACE space) {
    if (setjmp(escape_)) return false;
    info_.out_color_space = space;
    jpeg_start_decompress(&info_);
    return true;
  }

  bool read_row(std::uint8_t* row) {
    if (setjmp(escape_)) return false;
    jpeg_read_scanlines(&info_, &row, 1);
    return true;
  }

  /// Reads up to the end marker, and so detects a file that is cut after its last row.
  bool finish() {
    if (setjmp(escape_)) return false;
    jpeg_finish_decompress(&info_);
    return true;
  }

  Orientation orientation() const {
    constexpr std::string_view kExif("Exif\0\0", 6);
    for (auto marker = info_.marker_list; marker; marker = marker->next) {
      const std::string_view data(reinterpret_cast<const char*>(marker->data), marker->data_length);
      if (data.starts_with(kExif))
        return exif_orientation({marker->data + kExif.size(), marker->data_length - kExif.size()});
    }
    return kAsStored;
  }

  const jpeg_decompress_struct& info() const { return info_; }
  const char* message() const { return message_; }

 private:
  static void fail(j_common_ptr info) {
    auto* decoder = static_cast<JpegDecoder*>(info->client_data);
    info->err->format_message(info, decoder->message_);
    std::longjmp(decoder->escape_, 1);
  }

  /// Fails on warnings (level -1) except for three, as they mean lost pixels; ignores traces (level >= 0).
  static void on_message(j_common_ptr info, int level) {
    if (level >= 0) return;
    switch (info->err->msg_code) {
      case JWRN_ADOBE_XFORM:
      case JWRN_EXTRANEOUS_DATA:
      case JWRN_JFIF_MAJOR:
        return;
      default:
        fail(info);
    }
  }

  jpeg_error_mgr errors_{};
  jpeg_decompress_struct info_{};
  std::jmp_buf escape_{};
  char message_[JMSG_LENGTH_MAX] = {};
};

bool read_grey(JpegDecoder& decoder, Image& image) {
  if (!decoder.start(JCS_GRAYSCALE)) return false;
  for (int y = 0; y < image.height(); ++y)
    if (!decoder.read_row(image.row<std::uint8_t>(y))) return false;
  return decoder.finish();
}

/// Reads inks. Programs of Adobe, and those that follow them, store 255 for no ink.
bool read_inks(JpegDecoder& decoder, Image& image) {
  if (!decoder.start(JCS_CMYK)) return false;
  constexpr int kInks = 4;
  const std::uint8_t no_ink = decoder.info().saw_Adobe_marker ? 0xff : 0;
  std::vector<std::uint8_t> row(static_cast<std::size_t>(image.width()) * kInks);
  for (int y = 0; y < image.height(); ++y) {
    if (!decoder.read_row(row.data())) return false;
    for (std::uint8_t& ink : row) ink ^= no_ink;
    const std::uint8_t* first = row.data();
    grey_row_of_inks(Channels<std::uint8_t>{{first, first + 1, first + 2}, kInks, first + 3}, image.width(),
                     image.row<std::uint8_t>(y));
  }
  return decoder.finish();
}

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes, Content content) {
  if (content == Content::alpha) return {};
  JpegDecoder decoder;
  if (!decoder.read_header(bytes.data(), bytes.size())) throw damaged("JPEG", decoder.message());
  const auto& info = decoder.info();
  check_size(info.image_width, info.image_height);
  check_plausible(info.image_width, info.image_height, bytes.size());
  const auto space = info.jpeg_color_space;
  const Orientation orientation = decoder.orientation();  // libjpeg forgets it when it has finished
  const bool has_inks = space == JCS_CMYK || space == JCS_YCCK;
  if (!has_inks && space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
    throw Refusal("is a JPEG in an unknown colour space; save it as grey or RGB.");
  Image image({static_cast<int>(info.image_width), static_cast<int>(info.image_height)}, ScalarType::u8);
  if (!(has_inks ? read_inks(decoder, image) : read_grey(decoder, image)))
    throw damaged("JPEG", decoder.message());
  return oriented(std::move(image), orientation);
}

}  // namespace dic::image
