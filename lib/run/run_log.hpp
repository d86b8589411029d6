#pragma once

#include <cstdint>
#include <dic/track_files.hpp>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dic::run {

/// What a run has done so far: a file of JSON lines, one for each frame, each written as soon as the frame is
/// in the result. A later run reads it to go on where this one ended, however it ended.
class RunLog {
 public:
  /// A frame that was processed, or skipped with an error.
  struct Done {
    std::int64_t index = 0;  ///< of the source
    std::string stamp;       ///< of its file: FrameSource::stamp
    FrameSummary summary;
  };
  struct Contents {
    std::string version, settings;  ///< of the run: settings_json, and the style of its tables
    std::string reference;          ///< stamp of its file
    std::vector<Done> frames;
  };

  /// Nothing where there is no such log, or none that can be understood. What follows a damaged line is left
  /// out; so is what may not have reached the disk before the machine was started anew.
  static std::optional<Contents> read(const std::filesystem::path& path);

  /// Begins a log, or goes on with one: with these contents. Throws FileError.
  RunLog(std::filesystem::path path, const Contents& contents);
  ~RunLog();
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  /// All of them or, where the process is killed, none: a state is kept for the last one. Throws FileError.
  void add(std::span<const Done> done);
  std::int64_t frames() const { return frames_; }
  /// The first so many frames are on the disk, with all that belongs to them. Waits until this is, too. May
  /// be called while another thread adds frames. Throws FileError.
  void mark_on_disk(std::int64_t frames);

 private:
  void write(const std::string& lines);

  std::filesystem::path path_;
  int file_ = -1;
  std::int64_t frames_ = 0;
};

/// Waits until the contents of a file are on the disk. Throws FileError.
void sync_to_disk(const std::filesystem::path& path);

}  // namespace dic::run
