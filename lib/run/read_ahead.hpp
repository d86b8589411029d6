#pragma once

#include <cstdint>
#include <deque>
#include <dic/image_io.hpp>
#include <dic/track.hpp>
#include <functional>
#include <future>
#include <optional>
#include <string>

namespace dic::run {

/// One frame of a source, or the reason why it could not be read.
struct SourceFrame {
  std::int64_t index = 0;
  std::string name;
  Image image;
  std::string error;  ///< one sentence; empty if there is an image
  std::string stamp;  ///< stamp of the file that was read, see FrameSource::stamp
  StageSpan decode;
};

/// An image, and the stamp of the file that it was read from.
struct StampedImage {
  Image image;
  std::string stamp;
};

/// Reads an image file, again if it changes meanwhile: the stamp is the one of what was read. Throws
/// FileError, also if the file keeps changing.
StampedImage read_unchanged(const std::string& name, const std::function<std::string()>& stamp,
                            const std::function<Image()>& read);
/// Reads a frame like this; a video only once.
StampedImage read_unchanged(FrameSource& source, std::int64_t index);

/// Reads the frames of a source in order while the caller works: one at a time, or several at once if the
/// source allows it.
class ReadAhead {
 public:
  /// first: index of the first frame. frames: number of frames that are being read or wait to be taken, at
  /// least 1. The source must outlive this object.
  ReadAhead(FrameSource& source, std::int64_t first, int frames);

  /// Increases the number of frames to read ahead.
  void read_more(int frames);
  /// Waits for the next frame. Returns nothing at the end.
  std::optional<SourceFrame> next();

 private:
  void request();

  FrameSource& source_;
  std::int64_t next_request_;
  std::deque<std::future<std::optional<SourceFrame>>> pending_;
};

/// Number of frames to read ahead on this machine. A quarter of its cores decode (at most 8 images wait), or
/// nearly all cores if they are free (at most 32).
int frames_ahead(const FrameSource& source, bool cores_are_free);

}  // namespace dic::run
