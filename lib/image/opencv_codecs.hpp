#pragma once

#include <cstdint>
#include <dic/image_io.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "image/raster.hpp"

namespace dic {

/// What OpenCV's codecs read and write. OpenCV links them to 180 shared libraries, which take 0.1 s and 45 MB
/// to load: a shared libdic loads them when a file first needs them, a static one is linked with them.
struct OpenCvCodecs {
  /// Throws Refusal.
  Image (*decode)(std::vector<std::uint8_t> bytes);
  /// The bytes of a file with this ending. Throws Refusal.
  std::vector<std::uint8_t> (*encode)(const std::string& ending, const Raster& image);
  /// Throws FileError.
  std::unique_ptr<FrameSource> (*open_video)(const std::filesystem::path& path);
};

/// Throws Refusal where they cannot be loaded.
const OpenCvCodecs& opencv_codecs();

}  // namespace dic
