#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "live/camera.hpp"

namespace dic::live {

/// Writes frames into a folder, on a thread of its own, with a bounded queue: NAME.pgm for each frame, in
/// left/ and right/ for a pair, and frames.csv with their ids and times.
class Recorder {
 public:
  static constexpr std::size_t kMostWaiting = 64;

  /// Makes the folder. Throws FileError if it exists and is not empty.
  Recorder(std::filesystem::path folder, bool of_pairs);
  /// Writes what waits.
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Takes a frame; returns false if too many wait, or nothing can be written any more. time: s after the
  /// reference.
  bool add(const CameraFrame& frame, double time);
  /// Waits until everything is written, and returns the number of frames.
  std::int64_t finish();
  /// Why nothing can be written any more, one sentence; empty if it can.
  std::string problem() const;

  /// Name of the file of a frame.
  static std::string name_of(std::int64_t id);

 private:
  struct Waiting {
    CameraFrame frame;
    double time = 0;
  };

  void write_all();
  void write(const Waiting& waiting);

  std::filesystem::path folder_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> table_;
  mutable std::mutex mutex_;  ///< guards all members below
  std::condition_variable changed_;
  std::deque<Waiting> frames_;
  bool is_ended_ = false;
  std::int64_t written_ = 0;
  std::string problem_;
  std::jthread thread_;  ///< declared last, so that it ends before the members it uses are destroyed
};

}  // namespace dic::live
