#include "run/frame_feeder.hpp"

#include <optional>
#include <string>
#include <utility>

#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

std::string size_and_type(ImageView image) {
  return std::to_string(image.width) + "x" + std::to_string(image.height) + " px of type " +
         std::string(to_string(image.type));
}

// Returns why the frame cannot be compared with the reference; empty if it can.
std::string mismatch(const SourceFrame& frame, ImageView reference) {
  if (!frame.error.empty()) return frame.error;
  const ImageView current = frame.image;
  if (current.size() == reference.size() && current.type == reference.type) return "";
  return frame.name + " is " + size_and_type(current) + ", the reference " + size_and_type(reference) +
         ": frames of one run share size and bit depth; leave it out or convert it.";
}

}  // namespace

FrameFeeder::FrameFeeder(ReadAhead& reader, bool keeps_images, ImageView reference, TrackStream& stream,
                         int ahead)
    : keeps_images_(keeps_images),
      ahead_(ahead),
      reference_(reference),
      stream_(stream),
      reader_(reader),
      thread_([this](const std::stop_token& stop) { feed(stop); }) {}

std::optional<SourceFrame> FrameFeeder::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !frames_.empty() || ended_; });
  if (frames_.empty() && failure_) std::rethrow_exception(failure_);
  if (frames_.empty()) return std::nullopt;
  SourceFrame frame = std::move(frames_.front());
  frames_.pop_front();
  changed_.notify_all();
  return frame;
}

void FrameFeeder::stop() {
  thread_.request_stop();
  stream_.cancel();
}

double FrameFeeder::waited_seconds() const {
  const std::lock_guard lock(mutex_);
  return waited_seconds_;
}

void FrameFeeder::feed(const std::stop_token& stop) {
  std::exception_ptr failure;
  try {
    while (feed_next(stop)) {
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  failure_ = failure;
  ended_ = true;
  changed_.notify_all();
}

/// Pushes one frame. Returns false if there is no further frame.
bool FrameFeeder::feed_next(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [this] { return std::ssize(frames_) < ahead_; });
  if (stop.stop_requested()) return false;
  lock.unlock();
  const track::Stopwatch waiting;
  std::optional<SourceFrame> frame = reader_.next();
  const double waited = waiting.seconds();
  if (!frame) return false;
  frame->error = mismatch(*frame, reference_);
  if (frame->error.empty()) stream_.push(frame->image);
  if (!keeps_images_) frame->image = {};
  if (stop.stop_requested()) stream_.cancel();
  lock.lock();
  waited_seconds_ += waited;
  frames_.push_back(std::move(*frame));
  changed_.notify_all();
  return true;
}

}  // namespace dic::run
