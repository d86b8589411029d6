/// Input: a byte that chooses the kind, then a CINE recording, or the description of an MRAW recording, an
/// empty line and its pixels, or the structure of a video file.
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <string_view>

#include "image/cine.hpp"
#include "image/codecs.hpp"
#include "image/mraw.hpp"
#include "image/opencv/video_container.hpp"
#include "memory_file.hpp"

namespace {

/// Reads the first and the last frames.
void read_frames(const dic::image::FrameFile& file) {
  dic::require(file.count() > 0);
  dic::image::ImageBuffers buffers;
  for (const std::int64_t i : {std::int64_t{0}, file.count() - 1}) try {
      dic::require(file.time(i).value_or(0) >= 0);
      const dic::Image image = file.read(i, buffers);
      dic::require(image.width() > 0 && image.height() > 0);
    } catch (const dic::image::Refusal&) {
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::span<const std::uint8_t> content(data + 1, size - 1);
  const std::string_view text(reinterpret_cast<const char*>(content.data()), content.size());
  const std::size_t blank = std::min(text.find("\n\n"), text.size());
  const bool is_mraw = data[0] % 3 == 1;
  const dic::MemoryFile file(is_mraw ? content.subspan(std::min(blank + 2, content.size())) : content);
  try {
    if (is_mraw)
      read_frames(*dic::image::open_mraw(file.path(), text.substr(0, blank)));
    else if (data[0] % 3 == 0)
      read_frames(*dic::image::open_cine(file.path()));
    else
      dic::image::inspect_video(file.path());
  } catch (const dic::image::Refusal&) {
  }
  return 0;
}
