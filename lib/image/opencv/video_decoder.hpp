#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <optional>

namespace dic {

/// Hands out the frames of a video in order.
class VideoDecoder {
 public:
  virtual ~VideoDecoder() = default;
  /// Goes to the next frame (the first one at first); false at the end.
  virtual bool advance() = 0;
  /// The frame that advance() went to, as BGR; false where it cannot be decoded.
  virtual bool retrieve(cv::Mat& frame) = 0;
  std::optional<std::int64_t> count;        // as the file says
  std::optional<double> frames_per_second;  // likewise
};

/// By OpenCV's own decoders; null where none of them knows the file.
std::unique_ptr<VideoDecoder> decode_video_with_opencv(const std::filesystem::path& path);

/// By the programs ffprobe and ffmpeg; null where they are not installed or do not know the file. They are
/// started without a shell, and read no other files and nothing from a network.
std::unique_ptr<VideoDecoder> decode_video_with_ffmpeg(const std::filesystem::path& path);

}  // namespace dic
