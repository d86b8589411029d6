#pragma once

#include <dic/track_files.hpp>

/// Output of `dic track`: a progress line while it runs, and a summary at the end.
namespace dic::app {

/// One line on stderr that is overwritten: frames, points per second, time left. Silent if stderr is not a
/// terminal, so that log files contain messages only.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void show(const Progress& progress);

 private:
  bool enabled_;
  std::string pace_;
};

/// Prints what was measured and where the files are, on stdout. `all_frames`: prints a line for every frame
/// instead of the first few and the last.
void print_summary(const TrackJob& job, const TrackSummary& summary, bool all_frames);

/// Prints on stderr which frames were skipped, and why frames have no measured point.
void print_warnings(const TrackJob& job, const TrackSummary& summary);

}  // namespace dic::app
