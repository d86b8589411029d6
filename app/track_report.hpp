#pragma once

#include <dic/track_files.hpp>

/// What `dic track` shows people: a progress line while it runs, a summary at the end.
namespace dic::app {

/// One line on stderr that renews itself: frames, points per second, time left. Silent where stderr is no
/// terminal, so that nothing but messages reaches log files.
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

/// What was measured and where it is, on stdout. `all_frames`: a line for every frame, not the first few
/// only.
void print_summary(const TrackJob& job, const TrackSummary& summary, bool all_frames);

/// Frames that were skipped, and a run without a single measured point, on stderr.
void print_warnings(const TrackJob& job, const TrackSummary& summary);

}  // namespace dic::app
