#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <dic/live.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "live/camera.hpp"

namespace dic::live {

/// Frames between the camera and the measurement, as DropPolicy says.
class WaitingFrames {
 public:
  enum class Added : std::uint8_t { waits, replaced_another, overflows };

  /// most: number of frames that may wait; `newest` holds one.
  WaitingFrames(DropPolicy policy, std::size_t most)
      : policy_(policy), most_(policy == DropPolicy::newest ? 1 : most) {}

  /// Takes a frame, unless it overflows.
  Added add(CameraFrame frame) {
    const std::lock_guard lock(mutex_);
    Added added = Added::waits;
    if (frames_.size() >= most_) {
      if (policy_ != DropPolicy::newest) return Added::overflows;
      frames_.pop_front();
      added = Added::replaced_another;
    }
    frames_.push_back(std::move(frame));
    changed_.notify_all();
    return added;
  }
  /// Waits for the next frame; none after close(). The frame taken before is done.
  std::optional<CameraFrame> take() {
    std::unique_lock lock(mutex_);
    is_busy_ = false;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !frames_.empty() || is_closed_; });
    if (frames_.empty()) return {};
    CameraFrame frame = std::move(frames_.front());
    frames_.pop_front();
    is_busy_ = true;
    return frame;
  }
  /// Waits until no frame waits and none is measured, at most for the given time.
  bool wait_until_idle(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, longest, [&] { return frames_.empty() && !is_busy_; });
  }
  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    changed_.notify_all();
  }
  /// Forgets the frames that wait and returns their number.
  std::int64_t clear() {
    const std::lock_guard lock(mutex_);
    const auto count = static_cast<std::int64_t>(frames_.size());
    frames_.clear();
    return count;
  }

 private:
  DropPolicy policy_;
  std::size_t most_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<CameraFrame> frames_;
  bool is_busy_ = false, is_closed_ = false;
};

}  // namespace dic::live
