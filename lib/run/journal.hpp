#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "run/output_folder.hpp"
#include "run/run_log.hpp"
#include "run/state_file.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {

/// Files that a later run needs to continue a result: the log of the frames in it, and the state from which
/// the next one is measured. Summary: as of FrameLog.
template <typename Summary>
class Journal {
 public:
  using Log = FrameLog<Summary>;

  /// Opens the log. folder: outlives this object. result: the file that is kept on the disk. keeps_log:
  /// without it nothing is noted, and the run cannot be continued. Throws FileError.
  Journal(OutputFolder& folder, std::filesystem::path result, const Log::Contents& done, bool keeps_log);

  /// Sets the state after a frame; written with the next `write`. An empty one leaves the state before.
  void set_state(std::int64_t frame, std::vector<std::byte> state);
  /// Notes a frame for the next `write`.
  void note(Log::Done done) {
    if (log_) noted_.push_back(std::move(done));
  }
  /// Hands state and noted frames to the system, once these are in the result; now and then starts a sync of
  /// the files in the background, since a disk may be slow. Throws FileError.
  void write();
  /// Waits for the sync; removes the state unless the run goes on later. Throws FileError.
  void finish(bool goes_on);

  /// Reads what a run noted. Throws FileError if its log cannot be read.
  static Log::Contents read(const std::filesystem::path& folder);
  /// State from which the frame after this one is measured; empty if it is unknown.
  static std::vector<std::byte> state_after(const std::filesystem::path& folder, std::int64_t frame);

 private:
  void sync_now_and_then();

  OutputFolder& folder_;
  std::filesystem::path result_;
  std::vector<typename Log::Done> noted_;  ///< frames noted since the last `write`
  std::int64_t state_frame_ = 0;           ///< frame of new_state_
  std::vector<std::byte> new_state_;
  std::optional<Log> log_;  ///< empty if the run cannot be continued
  std::optional<StateFile> state_;
  track::Stopwatch since_sync_;
  std::future<void> syncing_;  ///< uses log_, and so ends before it
};

extern template class Journal<FrameSummary>;
extern template class Journal<StereoFrameSummary>;

}  // namespace dic::run
