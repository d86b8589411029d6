#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/io.hpp>
#include <dic/result.hpp>
#include <dic/stereo_files.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "io/surface_file.hpp"
#include "run/image_pairs.hpp"
#include "run/journal.hpp"
#include "run/output_folder.hpp"
#include "run/run_json.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {

/// Writes the files of one run with two cameras: result.vtkhdf, surface.vtkhdf, stereo.json, csv/, pictures/,
/// run.json, and what a later run needs to continue. Nothing is written before `begin`.
class StereoResults {
 public:
  /// A measured pair.
  struct Pair {
    std::int64_t number = 0;  ///< 0 for the references
    double time = 0;          ///< position on the time axis
    std::string name;
  };

  /// Throws FileError under the conditions of OutputFolder.
  explicit StereoResults(const StereoJob& job);

  /// Returns what an earlier run has done, if TrackJob::resume asks to continue one. Throws FileError.
  std::optional<StereoLog::Contents> earlier() const;
  /// True if the earlier run was complete.
  bool earlier_is_complete() const { return folder_.resumed_is_complete(); }
  Result earlier_result() const { return Result(folder_.resumed() / "result.vtkhdf"); }
  /// State from which the pair after this one is measured; empty if it is unknown.
  std::vector<std::byte> state_after(std::int64_t number) const {
    return Journal<StereoFrameSummary>::state_after(folder_.resumed(), number);
  }
  /// Draws the pictures that this run asks for and a complete earlier one did not, and puts a result that was
  /// collected in its place. Returns the number of pairs drawn.
  std::int64_t complete_earlier(const StereoLog::Contents& done, ImagePairs& images);

  bool begun() const { return result_.has_value(); }
  /// Begins the result, or continues the earlier one with the pairs of `done`.
  void begin(const Grid& grid, const ResultInfo& info, const StereoLog::Contents& done,
             const StereoSummary& summary);
  /// Adds a measured pair. state: of its StereoFrame.
  void add(const Field& field, Pair pair, std::vector<std::byte> state);
  /// Notes that a pair is processed, and hands it to the system: it will not be processed again.
  void note(StereoLog::Done done, const StereoSummary& summary);
  /// Draws the pictures, adds their number and time to the summary, and writes the remaining files.
  void finish(StereoSummary& summary, ImagePairs& images);
  /// Keeps the files after a failed write, so that a later run can continue. Returns their folder.
  std::filesystem::path keep(const StereoSummary& summary);

 private:
  /// A pair in the result, with the stem of its files.
  struct Written {
    Pair pair;
    std::string stem;
  };

  void add_earlier(const StereoLog::Contents& done);
  void take(Pair pair);
  std::vector<std::size_t> pairs_to_draw(std::int64_t count) const;
  std::int64_t draw_pictures(ImagePairs& images, std::int64_t count);
  void draw(const Field& field, ImageView left, const Written& written);
  bool lacks_pictures(std::int64_t count) const;
  static std::vector<std::string_view> drawn_arrays(const Pair& pair);
  static std::filesystem::path picture_name(const std::string& stem, std::string_view array);
  void write_run(const StereoSummary& summary, RunState state);

  const StereoJob& job_;
  OutputFolder folder_;
  std::filesystem::path result_path_, run_path_;
  std::vector<Written> written_;
  std::optional<VtkHdfWriter> result_;
  std::optional<io::SurfaceFile> surface_;
  std::optional<Journal<StereoFrameSummary>> journal_;
  bool in_seconds_ = false;
  bool is_reported_ = false;  ///< run.json has been written
  track::Stopwatch since_report_;
};

}  // namespace dic::run
