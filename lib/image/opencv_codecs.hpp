#pragma once

#include <cstdint>
#include <dic/image_io.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "image/content.hpp"
#include "image/raster.hpp"
#include "image/webcam.hpp"

namespace dic::image {

/// The functions that use OpenCV's codecs. OpenCV links these to 180 shared libraries, which take 0.1 s and
/// 45 MB to load: a shared libdic loads them when a file first needs them, a static one is linked with them.
struct OpenCvCodecs {
  /// Decodes the contents of a file. Throws Refusal.
  Image (*decode)(std::vector<std::uint8_t> bytes, Content content);
  /// Returns the contents of a file with this ending. Throws Refusal.
  std::vector<std::uint8_t> (*encode)(const std::string& ending, const Raster& image);
  /// Opens a video. Throws FileError.
  std::unique_ptr<FrameSource> (*open_video)(const std::filesystem::path& path);
  /// Opens a webcam by its number, or by the file of a device; null if there is none.
  std::unique_ptr<Webcam> (*open_webcam)(const std::string& name);
};

/// The functions, which the first call may load. Throws Refusal if they cannot be loaded.
const OpenCvCodecs& opencv_codecs();

}  // namespace dic::image
