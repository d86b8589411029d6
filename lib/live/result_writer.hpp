#pragma once

#include <condition_variable>
#include <deque>
#include <dic/stereo.hpp>
#include <dic/track_files.hpp>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "io/surface_file.hpp"
#include "run/results.hpp"

namespace dic::live {

/// Writes the results of a measurement on a thread of its own.
class ResultWriter {
 public:
  /// Number of frames that run.json describes one by one, so that memory does not grow for days.
  static constexpr std::int64_t kMostDescribed = 1000;

  struct Entry {
    std::shared_ptr<const Field> field;  ///< null after an error
    std::shared_ptr<const Image> image;  ///< null if no pictures are drawn
    FrameSummary summary;
    StageSeconds seconds;  ///< spent on the frame, added to those of the run
  };

  /// Files that measurements with two cameras have beside the others: the surface and, if it is known, the
  /// corrected calibration.
  struct PairFiles {
    std::optional<CameraRig> corrected_rig;
  };

  /// pairs: no value with one camera. Throws FileError as run::Results does. job and summary must outlive
  /// this object; the thread alone uses the summary until close() has returned.
  ResultWriter(const TrackJob& job, const Grid& grid, ResultInfo info, TrackSummary& summary,
               std::optional<PairFiles> pairs = {});
  ~ResultWriter();
  ResultWriter(const ResultWriter&) = delete;
  ResultWriter& operator=(const ResultWriter&) = delete;

  /// Hands a frame over; waits while many wait to be written. Returns false if nothing can be written any
  /// more.
  bool add(Entry entry);
  /// Writes what waits, and ends the thread.
  void close();
  /// Closes, and completes the result. Throws FileError; what was written is kept.
  void finish();

 private:
  static constexpr std::size_t kMostWaiting = 64;

  void begin();
  void write_all();
  void write(Entry entry);
  void complete();

  Grid grid_;
  ResultInfo info_;
  TrackSummary& summary_;
  std::optional<PairFiles> pairs_;
  run::Results results_;
  std::optional<io::SurfaceFile> surface_;
  std::int64_t written_ = 0;
  std::mutex mutex_;  ///< guards all members below
  std::condition_variable changed_;
  std::deque<Entry> entries_;
  bool is_ended_ = false;
  std::exception_ptr failure_;
  std::jthread thread_;  ///< declared last, so that it ends before the members it uses are destroyed
};

}  // namespace dic::live
