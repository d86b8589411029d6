#include <algorithm>
#include <cstdio>
#include <dic/error.hpp>
#include <stdexcept>

#include "image/codecs.hpp"
#include "image/opencv/codecs.hpp"
#include "image/opencv/video_decoder.hpp"

namespace dic::image {
namespace {

class VideoSource : public FrameSource {
 public:
  explicit VideoSource(std::filesystem::path path)
      : path_(std::move(path)), video_(decode_video_with_opencv(path_)) {
    if (!video_) video_ = decode_video_with_ffmpeg(path_);
    if (!video_)
      throw FileError("'" + path_.string() +
                      "' cannot be opened as a video; convert it to a common format such as AVI or MP4, or "
                      "install ffmpeg.");
  }

  std::optional<std::int64_t> count() const override { return video_->count; }
  std::optional<double> frames_per_second() const override { return video_->frames_per_second; }

  std::string name(std::int64_t i) const override {
    char number[32];
    std::snprintf(number, sizeof number, "_%06lld", static_cast<long long>(i));
    std::string name = path_.stem().string();
    std::ranges::replace(name, '.', '_');  // files are named after frames: no part may look like an ending
    return name + number;
  }

  std::string stamp(std::int64_t) const override { return file_stamp(path_); }

  Image read(std::int64_t i) override {
    if (i < position_) throw UsageError("The frames of a video are read in order.");
    while (position_ < i && !ended_) advance();
    if (ended_) report_end(i);
    cv::Mat frame;
    if (!video_->retrieve(frame)) throw unreadable(i, "it cannot be decoded");
    try {
      return grey_from_bgr(frame);
    } catch (const Refusal& why) {
      throw unreadable(i, std::string("it ") + why.what());
    }
  }

 private:
  void advance() {
    if (video_->advance())
      ++position_;
    else
      ended_ = true;
  }

  /// Throws at the end of the video. Frame counts in files are estimates, but far fewer frames than announced
  /// mean damage, which is reported once.
  [[noreturn]] void report_end(std::int64_t i) {
    const std::int64_t found = position_ + 1;
    const auto count = video_->count;
    const bool damaged = count && !end_reported_ && *count - found > std::max<std::int64_t>(2, *count / 20);
    end_reported_ = true;
    if (damaged)
      throw unreadable(
          i, "the video ends after " + std::to_string(found) + " of " + std::to_string(*count) + " frames");
    throw std::out_of_range("The video has no frame " + std::to_string(i) + ".");
  }

  FileError unreadable(std::int64_t i, const std::string& why) const {
    return FileError("Frame " + std::to_string(i) + " of '" + path_.string() + "' cannot be read: " + why +
                     "; convert the video again.");
  }

  std::filesystem::path path_;
  std::unique_ptr<VideoDecoder> video_;
  std::int64_t position_ = -1;  // index of the current frame
  bool ended_ = false;
  bool end_reported_ = false;
};

}  // namespace

std::unique_ptr<FrameSource> open_video_with_opencv(const std::filesystem::path& path) {
  return std::make_unique<VideoSource>(path);
}

}  // namespace dic::image
