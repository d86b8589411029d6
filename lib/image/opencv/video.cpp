#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

#include "image/codecs.hpp"
#include "image/endings.hpp"
#include "image/opencv/codecs.hpp"
#include "image/opencv/video_container.hpp"
#include "image/opencv/video_decoder.hpp"

namespace dic::image {
namespace {

class VideoSource : public FrameSource {
 public:
  explicit VideoSource(std::filesystem::path path)
      : path_(std::move(path)), container_(inspect_video(path_)), video_(decode_video_with_opencv(path_)) {
    if (!video_) video_ = decode_video_with_ffmpeg(path_);
    if (!video_)
      throw FileError("'" + path_.string() +
                      "' cannot be opened as a video; convert it to a common format such as AVI or MP4, or "
                      "install ffmpeg.");
    advance();
  }

  /// None if the file does not tell: an estimate would end a video too early, or call a whole one cut.
  std::optional<std::int64_t> count() const override {
    if (container_.frames) return container_.frames;
    return container_.counts_frames ? video_->count : std::nullopt;
  }
  std::optional<double> frames_per_second() const override { return video_->frames_per_second; }

  std::optional<double> time(std::int64_t i) const override {
    const std::lock_guard lock(times_mutex_);
    return i < std::ssize(times_) ? times_[static_cast<std::size_t>(i)] : std::nullopt;
  }

  std::filesystem::path file(std::int64_t) const override { return path_; }

  std::string name(std::int64_t i) const override { return frame_name(path_, i); }

  std::string stamp(std::int64_t) const override { return file_stamp(path_); }

  Image read(std::int64_t i) override {
    if (i < position_) throw UsageError("The frames of a video are read in order.");
    while (position_ < i && !ended_) advance();
    if (ended_) report_end(i);
    cv::Mat frame;
    if (!video_->retrieve(frame)) throw unreadable(i, "it cannot be decoded");
    try {
      return oriented(grey_from_bgr(frame), container_.orientation);
    } catch (const Refusal& why) {
      throw unreadable(i, std::string("it ") + why.what());
    }
  }

 private:
  void advance() {
    if (!video_->advance()) {
      ended_ = true;
      return;
    }
    ++position_;
    const std::lock_guard lock(times_mutex_);
    times_.push_back(time_of_current());
  }

  /// Time of the current frame after the first one; none if it is not known.
  std::optional<double> time_of_current() {
    const std::optional<double> shown = video_->time();
    if (position_ == 0) first_time_ = shown.value_or(0);
    std::optional<double> time;
    if (shown && (position_ == 0 || *shown - first_time_ > last_time_)) time = *shown - first_time_;
    if (!time) time = following_time();
    if (time) last_time_ = *time;
    return time;
  }

  /// Time of a frame that comes without one, as the last ones of a video do in OpenCV 4.6: what the file
  /// notes behind the time of the frame before, or a step of the frame rate while that was true so far.
  std::optional<double> following_time() const {
    const auto next = std::ranges::upper_bound(container_.times, last_time_ + 1e-6);
    if (next != container_.times.end()) return *next;
    const double rate = video_->frames_per_second.value_or(0);
    const auto frames = static_cast<double>(position_);
    const bool is_constant = rate > 0 && std::abs(last_time_ * rate - (frames - 1)) < 0.5;
    return is_constant ? std::optional(frames / rate) : std::nullopt;
  }

  /// Throws at the end of the video. Frame counts in files may be off by a few, but far fewer frames than
  /// announced, and a file that is shorter than it says, mean damage, which is reported once.
  [[noreturn]] void report_end(std::int64_t i) {
    const std::int64_t found = position_ + 1;
    const bool was_reported = std::exchange(end_reported_, true);
    if (const auto announced = count();
        !was_reported && announced && *announced - found > std::max<std::int64_t>(2, *announced / 20))
      throw unreadable(i, "the video ends after " + std::to_string(found) + " of " +
                              std::to_string(*announced) + " frames");
    if (!was_reported && container_.is_cut)
      throw unreadable(i, "the video ends after " + std::to_string(found) +
                              " frames, because the file is shorter than it says");
    throw std::out_of_range("The video has no frame " + std::to_string(i) + ".");
  }

  FileError unreadable(std::int64_t i, const std::string& why) const {
    return FileError("Frame " + std::to_string(i) + " of '" + path_.string() + "' cannot be read: " + why +
                     "; convert the video again.");
  }

  std::filesystem::path path_;
  VideoContainer container_;
  std::unique_ptr<VideoDecoder> video_;
  std::int64_t position_ = -1;             // index of the current frame
  double first_time_ = 0, last_time_ = 0;  // of the last frame whose time is known, from the first
  mutable std::mutex times_mutex_;
  std::vector<std::optional<double>> times_;  // of the frames so far
  bool ended_ = false;
  bool end_reported_ = false;
};

}  // namespace

std::unique_ptr<FrameSource> open_video_with_opencv(const std::filesystem::path& path) {
  return std::make_unique<VideoSource>(path);
}

}  // namespace dic::image
