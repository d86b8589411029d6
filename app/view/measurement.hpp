#pragma once

#include <cstdint>
#include <dic/track_files.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "view/json.hpp"

namespace dic::app {

/// The field that was measured last, for the page that looks on.
struct LiveField {
  Field field;
  int number = 0;  ///< number of the frame, from 1
  std::string name;
  double scale = 0;  ///< mm per px, 0 = px
};

/// A run of `dic track` beside the server, one at a time. Calls may overlap.
class Measurement {
 public:
  Measurement() = default;
  /// Cancels and waits.
  ~Measurement() = default;

  /// Throws UsageError where one is under way.
  void start(TrackJob job);
  void cancel();
  bool running() const;
  /// state ("idle", "running", "done", "cancelled", "failed"), stage, frame, frames, counts by status over
  /// all frames, points_per_second, live (number of the frame that `live` has), output, error (also what was
  /// not measured in a run that is done).
  Json progress() const;
  /// Null before the first field, and when nothing runs.
  std::shared_ptr<const LiveField> live() const;
  /// Another test was opened: the last run is not its.
  void forget();
  /// Folder of the last run that wrote a result.
  std::optional<std::filesystem::path> finished() const;

 private:
  void run(const TrackJob& job, const std::stop_token& stop);
  void take(const Field& field, int number, const std::string& name, double scale);
  void end(const std::string& state, const std::string& error = {});

  mutable std::mutex mutex_;  ///< guards all members below except the thread
  std::string state_ = "idle", error_;
  Progress progress_;
  std::array<std::int64_t, kStatusCount> counts_{};
  std::shared_ptr<const LiveField> live_;
  std::optional<std::filesystem::path> finished_;
  std::jthread thread_;  ///< declared last: ends first
};

}  // namespace dic::app
