#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <opencv2/videoio.hpp>
#include <opencv2/videoio/registry.hpp>
#include <stdexcept>

#include "image/codecs.hpp"
#include "image/opencv/codecs.hpp"
#include "image/opencv/quiet.hpp"

namespace dic {
namespace {

class VideoSource : public FrameSource {
 public:
  explicit VideoSource(std::filesystem::path path) : path_(std::move(path)) {
    const QuietCerr quiet;
    if (!open())
      throw FileError("'" + path_.string() +
                      "' cannot be opened as a video; convert it to a common format such as AVI or MP4.");
    const double frames = video_.get(cv::CAP_PROP_FRAME_COUNT);
    if (std::isfinite(frames) && frames >= 1) count_ = std::llround(frames);
  }

  std::optional<std::int64_t> count() const override { return count_; }

  std::optional<double> frames_per_second() const override {
    const double fps = video_.get(cv::CAP_PROP_FPS);
    return std::isfinite(fps) && fps > 0 ? std::optional(fps) : std::nullopt;
  }

  std::string name(std::int64_t i) const override {
    char number[32];
    std::snprintf(number, sizeof number, "_%06lld", static_cast<long long>(i));
    std::string name = path_.stem().string();
    std::ranges::replace(name, '.', '_');  // files are named after frames, without what looks like an ending
    return name + number;
  }

  std::string stamp(std::int64_t) const override { return file_stamp(path_); }

  Image read(std::int64_t i) override {
    if (i < position_) throw UsageError("The frames of a video are read in order.");
    cv::Mat frame;
    {
      const QuietCerr quiet;
      while (position_ < i && !ended_) advance();
      if (ended_) report_end(i);
      if (!video_.retrieve(frame) || frame.empty()) throw unreadable(i, "it cannot be decoded");
    }
    try {
      return grey_from_bgr(frame);
    } catch (const Refusal& why) {
      throw unreadable(i, std::string("it ") + why.what());
    }
  }

 private:
  /// OpenCV by itself would ask its camera drivers, too, which search the machine's buses (and leak).
  bool open() {
    const auto backends = cv::videoio_registry::getStreamBackends();
    return std::any_of(backends.begin(), backends.end(), [this](cv::VideoCaptureAPIs backend) {
      const bool reads_videos = backend != cv::CAP_IMAGES && backend != cv::CAP_GPHOTO2;
      return reads_videos && video_.open(path_.string(), backend);
    });
  }

  void advance() {
    if (video_.grab())
      ++position_;
    else
      ended_ = true;
  }

  /// Frame counts in files are estimates; far fewer frames than announced mean damage, which is reported
  /// once.
  [[noreturn]] void report_end(std::int64_t i) {
    const std::int64_t found = position_ + 1;
    const bool damaged =
        count_ && !end_reported_ && *count_ - found > std::max<std::int64_t>(2, *count_ / 20);
    end_reported_ = true;
    if (damaged)
      throw unreadable(
          i, "the video ends after " + std::to_string(found) + " of " + std::to_string(*count_) + " frames");
    throw std::out_of_range("The video has no frame " + std::to_string(i) + ".");
  }

  FileError unreadable(std::int64_t i, const std::string& why) const {
    return FileError("Frame " + std::to_string(i) + " of '" + path_.string() + "' cannot be read: " + why +
                     "; convert the video again.");
  }

  std::filesystem::path path_;
  cv::VideoCapture video_;
  std::optional<std::int64_t> count_;  // as the file says
  std::int64_t position_ = -1;         // of the frame that was grabbed last
  bool ended_ = false;
  bool end_reported_ = false;
};

}  // namespace

std::unique_ptr<FrameSource> open_video_with_opencv(const std::filesystem::path& path) {
  return std::make_unique<VideoSource>(path);
}

}  // namespace dic
