// <jpeglib.h> uses FILE without including <cstdio>.
#include <cstdio>
// clang-format off
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include <csetjmp>

#include "image/codecs.hpp"

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
    jpeg_read_header(&info_, TRUE);
    return true;
  }

  bool read_grey(std::uint8_t* pixels) {
    if (setjmp(escape_)) return false;
    info_.out_color_space = JCS_GRAYSCALE;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels + static_cast<std::size_t>(info_.output_scanline) * info_.output_width;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(
        &info_);  // reads up to the end marker, and so detects a file cut after the last row
    return true;
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

}  // namespace

Image decode_jpeg(std::span<const std::uint8_t> bytes) {
  JpegDecoder decoder;
  if (!decoder.read_header(bytes.data(), bytes.size())) throw damaged("JPEG", decoder.message());
  const auto& info = decoder.info();
  check_size(info.image_width, info.image_height);
  check_plausible(info.image_width, info.image_height, bytes.size());
  const auto space = info.jpeg_color_space;
  if (space != JCS_GRAYSCALE && space != JCS_YCbCr && space != JCS_RGB)
    throw Refusal("is a JPEG in CMYK or an unknown colour space; save it as grey or RGB.");
  Image image({static_cast<int>(info.image_width), static_cast<int>(info.image_height)}, ScalarType::u8);
  if (!decoder.read_grey(image.row<std::uint8_t>(0))) throw damaged("JPEG", decoder.message());
  return image;
}

}  // namespace dic::image
