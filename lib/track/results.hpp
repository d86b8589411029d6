#pragma once

#include <dic/io.hpp>
#include <dic/track.hpp>
#include <optional>
#include <string>

#include "core/parallel.hpp"
#include "track/output_folder.hpp"

namespace dic {

/// The files of one run: result.vtkhdf, csv/, pictures/, noise_curve.csv and .png, run.json. Nothing is
/// written before `begin`.
class Results {
 public:
  /// Throws FileError by the rules of OutputFolder.
  explicit Results(const TrackJob& job)
      : job_(job), folder_(job.output, job.force), threads_(job.options.threads) {}

  bool begun() const { return writer_.has_value(); }
  void begin(const Grid& grid, ResultInfo info);
  /// Adds a measured frame. `number`: its place on the time axis, 1 for the first current frame.
  void add(const Field& field, ImageView current, int number, const std::string& name);
  void finish(const TrackSummary& summary);

 private:
  void add_pictures(const Field& field, ImageView current, const std::string& stem);

  const TrackJob& job_;
  OutputFolder folder_;
  ThreadPool threads_;  ///< that draw pictures
  ResultInfo info_;
  std::optional<VtkHdfWriter> writer_;
};

}  // namespace dic
