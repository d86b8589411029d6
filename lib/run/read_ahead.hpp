#pragma once

#include <cstdint>
#include <deque>
#include <dic/image_io.hpp>
#include <dic/track.hpp>
#include <future>
#include <optional>
#include <string>

namespace dic::run {

/// One frame of a source, or why it could not be read.
struct SourceFrame {
  std::int64_t index = 0;
  std::string name;
  Image image;
  std::string error;  ///< one sentence; empty where there is an image
  StageSpan decode;
};

/// The frames of a source in order, from one on. The next ones are read while the caller works: one, or
/// several at once where the source allows it.
class ReadAhead {
 public:
  /// frames: how many are being read or wait to be taken, at least 1. The source must outlive this object.
  ReadAhead(FrameSource& source, std::int64_t first, int frames);

  /// Changes `frames`; only to more.
  void read_more(int frames);
  /// Waits for the next frame; nothing at the end.
  std::optional<SourceFrame> next();

 private:
  void request();

  FrameSource& source_;
  std::int64_t next_request_;
  std::deque<std::future<std::optional<SourceFrame>>> pending_;
};

/// Frames to read ahead on this machine. A quarter of its cores decode (at most 8 images wait), or nearly
/// all cores where they are free (at most 32).
int frames_ahead(const FrameSource& source, bool cores_are_free);

}  // namespace dic::run
