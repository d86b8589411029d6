#pragma once

#include <dic/image_io.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <optional>
#include <vector>

namespace dic::run {

/// The numbers at the start of the lines of a text file, before a comma, semicolon or space. Empty lines,
/// lines that begin with # and titles before the first number are skipped. Throws FileError.
std::vector<double> read_times(const std::filesystem::path& file);

/// When the frames of a source were taken, in seconds.
class FrameTimes {
 public:
  /// Throws UsageError where the job has another number of times than the source has frames.
  FrameTimes(const TrackJob& job, const FrameSource& source);

  bool in_seconds() const { return fps_ > 0 || !times_.empty(); }
  /// Of frame i of the source; none without seconds, or beyond the times that are known.
  std::optional<double> at(std::int64_t i) const;

 private:
  double fps_;
  std::vector<double> times_;
};

}  // namespace dic::run
