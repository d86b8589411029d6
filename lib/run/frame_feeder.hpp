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

/// Pushes frames into a stream as they are read, on a thread of its own, a few frames ahead of the results.
class FrameFeeder {
 public:
  static constexpr int kAhead = 3;  ///< number of frames that are pushed and not yet taken by next()
  static constexpr int kStreamCapacity =
      kAhead + 2;  ///< one more frame is pushed and one is waited for, so that push never waits

  /// Reader, reference and stream must outlive this object. keeps_images: frames from next() still have
  /// their pixels. ahead: see kAhead.
  FrameFeeder(ReadAhead& reader, bool keeps_images, ImageView reference, TrackStream& stream,
              int ahead = kAhead);

  /// Waits for the next frame, which was pushed or has an error. Returns nothing at the end. Throws an
  /// exception that ended the reading after the frames before it were returned.
  std::optional<SourceFrame> next();
  /// Stops taking frames, and cancels the stream.
  void stop();
  /// Seconds spent waiting for frames to be read.
  double waited_seconds() const;

 private:
  void feed(const std::stop_token& stop);
  bool feed_next(const std::stop_token& stop);

  bool keeps_images_;
  int ahead_;
  ImageView reference_;
  TrackStream& stream_;
  ReadAhead& reader_;

  mutable std::mutex mutex_;  ///< guards all members below
  std::condition_variable_any changed_;
  std::deque<SourceFrame> frames_;
  double waited_seconds_ = 0;
  bool ended_ = false;
  std::exception_ptr failure_;

  std::jthread thread_;  ///< declared last, so that it ends before the members it uses are destroyed
};

}  // namespace dic::run
