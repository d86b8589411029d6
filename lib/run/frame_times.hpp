#pragma once

#include <dic/image_io.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <optional>
#include <vector>

namespace dic::run {

/// Reads times in s from a text file: a number per line, or a table with a column of times, see
/// io::TextTable. Its heading may name another unit. Throws FileError.
std::vector<double> read_times(const std::filesystem::path& file);

/// Times at which the frames of a source were taken, in seconds. The source must outlive this object.
class FrameTimes {
 public:
  /// Throws UsageError if the job has a different number of times than the source has frames.
  FrameTimes(const TrackJob& job, const FrameSource& source);

  bool in_seconds() const { return fps_ > 0 || !times_.empty() || (source_ && source_->time(0)); }
  /// Time of frame i of the source; none without seconds, or beyond the known times. The time that a file
  /// notes for a frame, which the frame rate would contradict if the rate varies, is known once the frame was
  /// read.
  std::optional<double> at(std::int64_t i) const;

 private:
  double fps_;
  std::vector<double> times_;
  const FrameSource* source_;  ///< null if the job says the times
};

}  // namespace dic::run
