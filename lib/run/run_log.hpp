#pragma once

#include <cstdint>
#include <dic/stereo_files.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dic::run {

/// Log of a run: a file of JSON lines, one for each frame, each written as soon as the frame is in the
/// result. A later run reads it to continue, however the run ended. Summary: of one camera, or of two.
template <typename Summary>
class FrameLog {
 public:
  /// A frame that was processed, or skipped with an error.
  struct Done {
    std::int64_t index = 0;  ///< index in the source
    std::string stamp;       ///< stamp of its file, see FrameSource::stamp
    Summary summary;

    bool was_measured() const { return summary.error.empty(); }
  };
  struct Contents {
    std::string version,
        settings;           ///< version and settings of the run: settings_json, and the style of its tables
    std::string reference;  ///< stamp of the reference's file
    std::vector<Done> frames;
  };

  /// Reads a log; nothing if there is none that can be understood. Leaves out what follows a damaged line,
  /// and what may not have reached the disk before the machine was restarted.
  static std::optional<Contents> read(const std::filesystem::path& path);

  /// Begins or continues a log with these contents. Throws FileError.
  FrameLog(std::filesystem::path path, const Contents& contents);
  ~FrameLog();
  FrameLog(const FrameLog&) = delete;
  FrameLog& operator=(const FrameLog&) = delete;

  /// Adds all frames, or none if the process is killed: a state is kept for the last one. Throws FileError.
  void add(std::span<const Done> done);
  std::int64_t frames() const { return frames_; }
  /// Notes that the first `frames` frames are on the disk with all that belongs to them, and waits until
  /// this note is on the disk, too. May be called while another thread adds frames. Throws FileError.
  void mark_on_disk(std::int64_t frames);

 private:
  void write(const std::string& lines);

  std::filesystem::path path_;
  int file_ = -1;
  std::int64_t frames_ = 0;
};

using RunLog = FrameLog<FrameSummary>;
using StereoLog = FrameLog<StereoFrameSummary>;
extern template class FrameLog<FrameSummary>;
extern template class FrameLog<StereoFrameSummary>;

/// Waits until the contents of a file are on the disk. Throws FileError.
void sync_to_disk(const std::filesystem::path& path);

}  // namespace dic::run
