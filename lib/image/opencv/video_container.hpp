#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "image/orientation.hpp"

namespace dic::image {

/// Properties of a video file that OpenCV does not tell, or tells differently from version to version.
struct VideoContainer {
  /// True if the file stores its number of frames; in other formats OpenCV estimates it from the duration.
  bool counts_frames = false;
  /// Number of frames of an AVI. It is less than what the head says if the recorder left some out, which
  /// players bridge by showing the one before.
  std::optional<std::int64_t> frames = {};
  /// Times of the frames of MP4 and QuickTime in the order in which they are shown, s from the first; else
  /// empty.
  std::vector<double> times = {};
  bool is_cut = false;  ///< the file is shorter than it says
  Orientation orientation = kAsStored;
};

/// Reads the structure of a file: MP4 and QuickTime, AVI, GIF, Matroska and WebM. The default for others.
VideoContainer inspect_video(const std::filesystem::path& path);

}  // namespace dic::image
