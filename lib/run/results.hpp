#pragma once

#include <array>
#include <dic/draw.hpp>
#include <dic/image_io.hpp>
#include <dic/io.hpp>
#include <dic/result.hpp>
#include <dic/track_files.hpp>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/parallel.hpp"
#include "draw/result_pictures.hpp"
#include "run/journal.hpp"
#include "run/output_folder.hpp"
#include "run/run_json.hpp"
#include "run/run_log.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {

/// Returns what happens to an earlier result in the folder of a job.
OutputFolder::Earlier earlier_of(const TrackJob& job);

/// Chooses the frames of `Pictures::some`: counted back from the last of `count` frames, every fifth, or
/// fewer so that there are at most ten.
std::set<std::int64_t> frames_to_draw(std::int64_t count);

/// Writes the files of one run: result.vtkhdf, csv/, pictures/, noise_curve.csv and .png, run.json, and what
/// a later run needs to continue. Nothing is written before `begin`.
class Results {
 public:
  struct Frame {
    std::int64_t index = 0;  ///< index in the source
    double time = 0;         ///< position on the time axis
    std::string name;
    std::int64_t number = 0;  ///< counted after the reference, frames without a result too
  };

  /// can_be_continued: keeps what a later run needs to continue. Throws FileError under the conditions of
  /// OutputFolder.
  explicit Results(const TrackJob& job, bool can_be_continued = true);

  /// Returns what an earlier run has done, if TrackJob::resume asks to continue one.
  std::optional<RunLog::Contents> earlier() const;
  /// True if the earlier run was complete.
  bool earlier_is_complete() const { return folder_.resumed_is_complete(); }
  /// Does what is left when all frames are measured: puts a result that was collected in its place, and
  /// draws the pictures that this run asks for and the earlier one did not. Returns the number of frames
  /// drawn. first: as for `begin`.
  std::int64_t complete_earlier(const RunLog::Contents& done, std::int64_t first, FrameSource& source);
  /// Opens the result of the earlier run. Throws FileError.
  Result earlier_result() const;
  /// State from which the frame after `index` is measured; empty if it is unknown.
  std::vector<std::byte> state_after(std::int64_t index) const;

  bool begun() const { return is_begun_; }
  /// Begins the result. first, count: index of the first current frame in the source and number of current
  /// frames, if it is known. done: frames processed so far. If earlier() has measured frames, as many of
  /// them stay as `done` has.
  void begin(const Grid& grid, ResultInfo info, std::int64_t first, std::optional<std::int64_t> count,
             const RunLog::Contents& done);
  /// Joins `parts`, in which other runs measured all frames: result.vtkhdf becomes a file that shows them as
  /// one sequence.
  void join(const Grid& grid, ResultInfo info, std::int64_t first, std::int64_t count,
            std::span<const ResultPart> parts);
  Result joined() const { return Result(result_path_); }
  /// Takes the joined frames; to be called after `join` and before `finish` only. tables: the table of each
  /// measured frame in the parts, which are moved; empty if there are none.
  void take_joined(const RunLog::Contents& done, std::span<const std::filesystem::path> tables);
  /// The path of a further file of the result, after `begin`.
  std::filesystem::path claim(const std::filesystem::path& name) { return folder_.claim(name); }
  /// Adds a measured frame. current: its pixels, empty if no pictures are drawn. state: state of its
  /// FrameResult.
  void add(const Field& field, const Frame& frame, Image current, std::vector<std::byte> state);
  /// Notes that the last frame is processed. It will not be processed again once the file is handed to the
  /// system: at once, or very soon if frames come fast.
  void note(RunLog::Done done, const TrackSummary& summary);
  /// Hands all noted frames to the system, so that none of them will be processed again.
  void publish(const TrackSummary& summary);
  /// Draws the pictures, adds their number and time to the summary, and writes the remaining files.
  void finish(TrackSummary& summary, FrameSource& source);
  /// Keeps the files after a failed write, so that a later run can continue. Returns their folder.
  std::filesystem::path keep(const TrackSummary& summary);

 private:
  struct Drawn {
    int index = 0;  ///< index in the result
    Frame frame;
    std::string stem;
  };

  void resume(const RunLog::Contents& done, const Grid& grid);
  void open_writer();
  void place_tables(const std::vector<std::string>& stems, std::span<const std::filesystem::path> tables);
  std::vector<std::string> add_earlier_frames(const RunLog::Contents& done);
  void write_table(const std::filesystem::path& path, const Field& field) const;
  void add_picture(const Field& field, const Frame& frame, const std::string& stem);
  void find_ranges(const Field& field);
  void write_run(const TrackSummary& summary, RunState state);
  void keep_image(const Frame& frame, Image current);
  CanvasFactory canvases() const;
  std::vector<draw::Quantity> quantities() const;
  static std::filesystem::path picture_name(const Drawn& drawn, const FieldArray& array);
  draw::ResultPictures::Frame picture_of(const Drawn& drawn);
  void draw(const draw::DrawnFields& fields, std::span<const draw::ResultPictures::Frame> pictures,
            bool parallel_images);
  void begin_last_picture(const Field& field, Image current);
  void draw_pictures(FrameSource& source);
  void plan_pictures(std::int64_t first, std::optional<std::int64_t> count);
  bool lacks_pictures() const;

  const TrackJob& job_;
  bool can_be_continued_;
  OutputFolder folder_;
  core::ThreadPool threads_;  ///< threads that draw pictures
  ResultInfo info_;
  std::filesystem::path result_path_;
  Grid grid_;
  std::optional<VtkHdfWriter> writer_;
  bool is_begun_ = false;
  std::set<std::int64_t> planned_;        ///< indices of the frames to draw, in the source
  std::int64_t last_frame_ = -1;          ///< index in the source, if it is known
  std::vector<Drawn> frames_;             ///< frames that may be drawn at the end: planned ones and the last
  std::map<std::int64_t, Image> images_;  ///< reduced images of planned frames
  std::pair<std::int64_t, Image>
      last_image_;  ///< index in the source, and image, of a frame that may be drawn
  std::array<RangeFinder, kDrawnArrays.size()> ranges_;
  int count_ = 0;             ///< number of frames that were added
  bool is_resumed_ = false;   ///< an earlier run has added some of them
  bool is_reported_ = false;  ///< run.json has been written
  std::filesystem::path run_path_;
  track::Stopwatch since_report_, since_publish_;
  std::optional<Journal<FrameSummary>> journal_;  ///< exists once the results are begun
  std::future<void> finding_fonts_, drawing_last_;
};

}  // namespace dic::run
