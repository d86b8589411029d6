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
#include "run/output_folder.hpp"
#include "run/run_json.hpp"
#include "run/run_log.hpp"
#include "run/state_file.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {

/// Which frames some pictures show: counted back from the last of `count`, every fifth, or fewer so that they
/// are ten.
std::set<std::int64_t> frames_to_draw(std::int64_t count);

/// The files of one run: result.vtkhdf, csv/, pictures/, noise_curve.csv and .png, run.json, and what a later
/// run needs to go on. Nothing is written before `begin`.
class Results {
 public:
  struct Frame {
    std::int64_t index = 0;  ///< of the source
    double time = 0;         ///< on the time axis
    std::string name;
  };

  /// Throws FileError by the rules of OutputFolder.
  explicit Results(const TrackJob& job);

  /// With TrackJob::resume, what an earlier run has done that is to be gone on with.
  std::optional<RunLog::Contents> earlier() const;
  /// It did all that it was to do.
  bool earlier_is_complete() const { return folder_.resumed_is_complete(); }
  /// The result of that run. Throws FileError.
  Result earlier_result() const;
  /// From which the frame after this one of the source was measured; empty where nobody knows.
  std::vector<std::byte> state_after(std::int64_t index) const;

  bool begun() const { return is_begun_; }
  /// first, count: of the current frames of the source; the count may be unknown. done: what was processed so
  /// far. Where earlier() has measured frames, they stay, as many as `done` has.
  void begin(const Grid& grid, ResultInfo info, std::int64_t first, std::optional<std::int64_t> count,
             const RunLog::Contents& done);
  /// All frames were measured by other runs, into `parts`: result.vtkhdf becomes a file that shows them.
  void join(const Grid& grid, ResultInfo info, std::int64_t first, std::int64_t count,
            std::span<const ResultPart> parts);
  Result joined() const { return Result(result_path_); }
  /// After `join`; only `finish` may follow. tables: the files of the parts' tables, one for each measured
  /// frame, which move; empty where there are none.
  void take_joined(const RunLog::Contents& done, std::span<const std::filesystem::path> tables);
  /// Adds a measured frame. current: its pixels, empty where no pictures are drawn. state: of its
  /// FrameResult.
  void add(const Field& field, const Frame& frame, Image current, std::vector<std::byte> state);
  /// The last frame is processed: it will not be done again, from now on or, where frames come fast, from
  /// very soon on, when the file was handed to the system.
  void note(RunLog::Done done, const TrackSummary& summary);
  /// From now on no frame that was noted will be done again.
  void publish(const TrackSummary& summary);
  /// Draws pictures, counts them in the summary, adds the time that this takes to it, and writes the rest.
  void finish(TrackSummary& summary, FrameSource& source);
  /// After a failure to write: what is there stays, for a later run to go on with. Returns where it is.
  std::filesystem::path keep(const TrackSummary& summary);

 private:
  struct Drawn {
    int index = 0;  ///< of the result
    Frame frame;
    std::string stem;
  };

  void resume(const RunLog::Contents& done, const Grid& grid);
  void open_writer();
  void place_tables(const std::vector<std::string>& stems, std::span<const std::filesystem::path> tables);
  std::vector<std::string> add_earlier_frames(const RunLog::Contents& done);
  void add_picture(const Field& field, const Frame& frame, const std::string& stem);
  void find_ranges(const Field& field);
  void write_run(const TrackSummary& summary, RunState state);
  void sync_now_and_then();
  void keep_image(const Frame& frame, Image current);
  CanvasFactory canvases() const;
  std::vector<draw::Quantity> quantities() const;
  draw::ResultPictures::Frame picture_of(const Drawn& drawn);
  void draw(const draw::DrawnFields& fields, std::span<const draw::ResultPictures::Frame> pictures,
            bool parallel_images);
  void begin_last_picture(const Field& field, Image current);
  void draw_pictures(FrameSource& source);

  const TrackJob& job_;
  OutputFolder folder_;
  ThreadPool threads_;  ///< that draw pictures
  ResultInfo info_;
  std::filesystem::path result_path_;
  Grid grid_;
  std::optional<VtkHdfWriter> writer_;
  bool is_begun_ = false;
  std::set<std::int64_t> planned_;             ///< frames of the source to draw
  std::int64_t last_frame_ = -1;               ///< of the source, if it is known
  std::vector<Drawn> frames_;                  ///< that may be drawn at the end: planned ones, and the last
  std::map<std::int64_t, Image> images_;       ///< of planned frames, reduced
  std::pair<std::int64_t, Image> last_image_;  ///< of a frame of the source that may be drawn
  std::array<RangeFinder, kDrawnArrays.size()> ranges_;
  int count_ = 0;             ///< frames that were added
  bool is_resumed_ = false;   ///< some of them by an earlier run
  bool is_reported_ = false;  ///< in run.json
  std::filesystem::path run_path_;
  track::Stopwatch since_report_, since_sync_, since_publish_;
  std::vector<RunLog::Done> noted_;   ///< since the last `publish`
  std::int64_t state_frame_ = 0;      ///< the last one of them that has a state
  std::vector<std::byte> new_state_;  ///< of it
  std::optional<RunLog> log_;
  std::optional<StateFile> state_;
  std::future<void> syncing_;  ///< uses log_: ends before it
  std::future<void> finding_fonts_, drawing_last_;
};

}  // namespace dic::run
