#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <dic/image.hpp>
#include <dic/track_stream.hpp>
#include <exception>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "run/read_ahead.hpp"

namespace dic::run {

/// Takes frames that are read and pushes them into a stream, on a thread of its own, a few frames ahead of
/// the one that takes the results.
class FrameFeeder {
 public:
  static constexpr int kAhead = 3;  ///< frames that are mostly pushed and not taken by next()
  static constexpr int kStreamCapacity =
      kAhead + 2;  ///< one more is pushed, one is waited for: push never waits

  /// Reader, reference and stream must outlive this object. keeps_images: frames from next() still have their
  /// pixels. ahead: as kAhead.
  FrameFeeder(ReadAhead& reader, bool keeps_images, ImageView reference, TrackStream& stream,
              int ahead = kAhead);

  /// Waits for the next frame: it was pushed, or has an error. Nothing at the end. An exception that ended
  /// the reading is thrown after the frames before it.
  std::optional<SourceFrame> next();
  /// Takes no further frames, and cancels the stream.
  void stop();
  /// Seconds that were spent waiting for frames to be read.
  double waited_seconds() const;

 private:
  void feed(const std::stop_token& stop);
  bool feed_next(const std::stop_token& stop);

  bool keeps_images_;
  int ahead_;
  ImageView reference_;
  TrackStream& stream_;
  ReadAhead& reader_;

  mutable std::mutex mutex_;  ///< of all that follows
  std::condition_variable_any changed_;
  std::deque<SourceFrame> frames_;
  double waited_seconds_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;

  std::jthread thread_;  ///< declared last: ends first
};

}  // namespace dic::run
