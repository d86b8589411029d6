#pragma once

#include <array>
#include <dic/draw.hpp>
#include <dic/io.hpp>
#include <dic/track.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/parallel.hpp"
#include "track/output_folder.hpp"

namespace dic {

/// Which frames some pictures show: counted back from the last of `count`, every fifth, or fewer so that they
/// are ten.
std::set<std::int64_t> frames_to_draw(std::int64_t count);

/// The files of one run: result.vtkhdf, csv/, pictures/, noise_curve.csv and .png, run.json. Nothing is
/// written before `begin`.
class Results {
 public:
  struct Frame {
    std::int64_t index = 0;  ///< of the source
    double time = 0;         ///< on the time axis
    std::string name;
  };

  /// Throws FileError by the rules of OutputFolder.
  explicit Results(const TrackJob& job)
      : job_(job), folder_(job.output, job.force), threads_(job.options.threads) {}

  bool begun() const { return writer_.has_value(); }
  /// first, count: of the current frames of the source; the count may be unknown.
  void begin(const Grid& grid, ResultInfo info, std::int64_t first, std::optional<std::int64_t> count);
  /// Adds a measured frame. current: its pixels, empty where no pictures are drawn.
  void add(const Field& field, const Frame& frame, Image current);
  /// Draws pictures, counts them in the summary and writes the rest.
  void finish(TrackSummary& summary);

 private:
  static constexpr std::array kDrawn = {"u", "v", "exx", "eyy", "exy"};

  struct Drawn {
    int index = 0;  ///< of the result
    Frame frame;
    std::string stem;
  };

  void find_ranges(const Field& field);
  void keep_image(const Frame& frame, Image current);
  void draw_pictures(const std::filesystem::path& result);

  const TrackJob& job_;
  OutputFolder folder_;
  ThreadPool threads_;  ///< that draw pictures
  ResultInfo info_;
  std::filesystem::path result_path_;
  std::optional<VtkHdfWriter> writer_;
  std::set<std::int64_t> planned_;        ///< frames of the source to draw
  std::vector<Drawn> frames_;             ///< that may be drawn: planned ones, and the last
  std::map<std::int64_t, Image> images_;  ///< of planned frames, reduced
  Image last_image_;
  int count_ = 0;  ///< frames that were added
  std::array<RangeFinder, kDrawn.size()> ranges_;
};

}  // namespace dic
