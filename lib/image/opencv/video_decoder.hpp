#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <opencv2/core/mat.hpp>
#include <optional>

namespace dic::image {

/// Returns the frames of a video in order.
class VideoDecoder {
 public:
  virtual ~VideoDecoder() = default;
  /// Goes to the next frame, with the first call to the first frame; returns false at the end.
  virtual bool advance() = 0;
  /// Gets the current frame as BGR, as it is stored; returns false if it cannot be decoded.
  virtual bool retrieve(cv::Mat& frame) = 0;
  /// Time at which the current frame is shown, s; none if it is not known.
  virtual std::optional<double> time() const = 0;
  std::optional<std::int64_t> count;        // number of frames according to the file, perhaps an estimate
  std::optional<double> frames_per_second;  // frame rate according to the file
};

/// Opens a video with OpenCV's own decoders; null if none of them supports the file.
std::unique_ptr<VideoDecoder> decode_video_with_opencv(const std::filesystem::path& path);

/// Opens a video with the programs ffprobe and ffmpeg; null if they are not installed or do not support the
/// file. They are started without a shell, and read no other files and nothing from a network.
std::unique_ptr<VideoDecoder> decode_video_with_ffmpeg(const std::filesystem::path& path);

}  // namespace dic::image
