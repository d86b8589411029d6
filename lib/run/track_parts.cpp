#include <algorithm>
#include <cmath>
#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/image_io.hpp>
#include <dic/memory.hpp>
#include <dic/result.hpp>
#include <dic/track_parts.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "run/frame_summary.hpp"
#include "run/parts.hpp"
#include "run/results.hpp"
#include "run/run_json.hpp"
#include "run/run_log.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// The images of a job, in order.
struct Sequence {
  std::vector<std::string> files;
  std::size_t first_current = 0;  ///< 1 where the first file is the reference

  explicit Sequence(const TrackJob& job) : first_current(job.reference.empty() ? 1 : 0) {
    files = files_to_share(job.frames);
    if (files.size() <= first_current)
      throw UsageError("Only one frame was given: give the reference and at least one frame more.");
  }
  std::size_t current() const { return files.size() - first_current; }
};

/// Number of rows that a band measures beyond its own, so that all rules see their neighbours: islands of
/// wrong points are recognized within 13 rows, and groups of points that predict each other are large by
/// then.
int halo_of(const TrackJob& job) { return 24 + job.options.strain.window / 2; }

Grid whole_grid(const TrackJob& job, Size image) {
  return grid_around(make_grid(rasterize(job.roi, image), job.options.step), job.roi.points);
}

/// Divides the grid into bands of rows if there are few frames and bands are larger than the rows that they
/// measure twice. Empty if one band holds the whole grid.
std::vector<int> divide_rows(const TrackJob& job, const Sequence& sequence, int processes) {
  if (sequence.current() >= static_cast<std::size_t>(processes)) return {};
  const Image reference = read_image(job.reference.empty() ? sequence.files.front() : job.reference);
  const int all = whole_grid(job, reference.size()).ny;
  const int bands = std::min(processes, all / (2 * halo_of(job)));
  if (bands <= static_cast<int>(sequence.current())) return {};
  std::vector<int> rows;
  for (int k = 0; k <= bands; ++k)
    rows.push_back(static_cast<int>(static_cast<std::int64_t>(k) * all / bands));
  return rows;
}

Plan divide(const TrackJob& job, const Sequence& sequence, int processes) {
  const std::vector<int> rows = divide_rows(job, sequence, processes);
  if (!rows.empty()) return {{0}, rows};
  return {divide_frames(sequence.current(), processes)};
}

/// Times of the frames in seconds, if the job has them.
std::vector<double> times_of(const TrackJob& job, const Sequence& sequence) {
  if (!job.times.empty() || job.fps <= 0) return job.times;
  std::vector<double> times;
  for (std::size_t k = 0; k < sequence.files.size(); ++k) times.push_back(static_cast<double>(k) / job.fps);
  return times;
}

/// Rows that a band measures; none if it is the whole grid.
std::optional<GridRows> measured_rows(const TrackJob& job, const Plan& plan, std::size_t band) {
  if (plan.bands() == 1) return {};
  const int halo = halo_of(job), first = std::max(0, plan.rows[band] - halo),
            end = std::min(plan.rows.back(), plan.rows[band + 1] + halo);
  return GridRows{first, end - first};
}

std::vector<TrackJob> jobs_of(const TrackJob& job, const Sequence& sequence, const Plan& plan) {
  const std::vector<double> times = times_of(job, sequence);
  std::vector<TrackJob> jobs;
  for (std::size_t k = 0; k < plan.parts(); ++k) {
    const std::size_t run = k / plan.bands();
    const std::size_t end = plan.end(run, sequence.current());
    const auto from = static_cast<std::ptrdiff_t>(sequence.first_current + plan.first[run]),
               to = static_cast<std::ptrdiff_t>(sequence.first_current + end);
    TrackJob part = job;
    part.reference = job.reference.empty() ? sequence.files.front() : job.reference;
    part.frames.assign(sequence.files.begin() + from, sequence.files.begin() + to);
    part.fps = 0;
    if (!times.empty()) {
      if (std::ssize(times) < to) throw UsageError("There are fewer times than frames.");
      part.times.assign(times.begin() + from, times.begin() + to);
    }
    part.output = parts_folder(job.output) / part_name(k);
    part.resume = true;
    part.pictures = Pictures::none;
    part.options.rows = measured_rows(job, plan, k % plan.bands());
    part.csv = job.csv && plan.bands() == 1;
    jobs.push_back(std::move(part));
  }
  return jobs;
}

RunLog::Contents log_of(const TrackJob& part) {
  const auto contents = RunLog::read(part.output / OutputFolder::kFramesName);
  if (!contents || !is_complete(part.output))
    throw FileError("The part of the result in " + part.output.string() +
                    " is not complete: continue it with --resume.");
  return *contents;
}

/// Joins the results of the parts.
class Join {
 public:
  explicit Join(const TrackJob& job)
      : job_(job),
        sequence_(job),
        plan_(read_plan(job.output, sequence_.current())),
        parts_(jobs_of(job, sequence_, plan_)) {}

  TrackSummary run() {
    const track::Stopwatch watch;
    for (std::size_t run = 0; run < plan_.first.size(); ++run) add_frames(run);
    summary_.frames_given = static_cast<std::int64_t>(sequence_.current());
    summary_.reference = parts_.front().reference;
    summary_.output = job_.output;
    summary_.points = grid_.points();
    Results results(job_);
    info_.command = job_.command;
    info_.settings_json = settings_json(job_);
    done_.settings = resume_settings(job_);
    results.join(grid_, info_, static_cast<std::int64_t>(sequence_.first_current),
                 static_cast<std::int64_t>(sequence_.files.size()), joined_);
    if (plan_.bands() > 1) summarize_bands(results.joined());
    for (const RunLog::Done& frame : done_.frames) summary_.frames.push_back(frame.summary);
    results.take_joined(done_, tables_);
    summary_.seconds.total += watch.seconds();
    const auto source = open_frames(job_.frames);
    results.finish(summary_, *source);
    return std::move(summary_);
  }

 private:
  /// Adds the parts of a run of frames.
  void add_frames(std::size_t run) {
    Grid grid;
    const auto before = std::ssize(done_.frames);
    for (std::size_t band = 0; band < plan_.bands(); ++band) {
      const TrackJob& part = parts_[run * plan_.bands() + band];
      const Result result(part.output);
      ResultPart joined = rows_of(part, result.grid(), band);
      append_rows(grid, result.grid(), joined);
      if (band == 0 && (joined_.empty() || info_.image.width == 0)) info_ = result.info();
      add_run(part.output);
      const RunLog::Contents log = log_of(part);
      if (band == 0)
        add_frames(log, run, part);
      else
        add_band(log, before, part);
      describe(joined, result, before);
      if (!joined.names.empty()) joined_.push_back(std::move(joined));
    }
    if (run > 0 && grid != grid_)
      throw FileError("The parts in " + parts_folder(job_.output).string() + " are of different grids.");
    grid_ = std::move(grid);
  }

  ResultPart rows_of(const TrackJob& part, const Grid& grid, std::size_t band) const {
    ResultPart joined;
    joined.file = fs::path("parts") / part.output.filename() / "result.vtkhdf";
    joined.rows = joined.use = grid.ny;
    if (!part.options.rows) return joined;
    joined.first_row = part.options.rows->first;
    joined.skip = plan_.rows[band] - joined.first_row;
    joined.use = plan_.rows[band + 1] - plan_.rows[band];
    return joined;
  }

  static void append_rows(Grid& grid, const Grid& part, const ResultPart& joined) {
    if (grid.ny == 0) {
      grid = part;
      grid.ny = 0;
      grid.y0 = part.y(joined.skip);
      grid.inside.clear();
    }
    const auto first = part.inside.begin() + std::int64_t{joined.skip} * part.nx;
    grid.inside.insert(grid.inside.end(), first, first + std::int64_t{joined.use} * part.nx);
    grid.ny += joined.use;
  }

  void add_frames(const RunLog::Contents& log, std::size_t run, const TrackJob& part) {
    done_.version = log.version;
    done_.reference = log.reference;
    UniqueStems stems;
    for (const RunLog::Done& frame : log.frames) {
      RunLog::Done moved = frame;
      moved.index += static_cast<std::int64_t>(sequence_.first_current + plan_.first[run]);
      done_.frames.push_back(std::move(moved));
      if (!frame.summary.error.empty() || !part.csv) continue;
      const std::string stem = stems.unique(fs::path(frame.summary.file).stem().string());
      tables_.push_back(part.output / "csv" / (stem + ".csv"));
    }
  }

  /// Adds a further band of the frames from index `before` on.
  void add_band(const RunLog::Contents& log, std::ptrdiff_t before, const TrackJob& part) {
    const std::span<RunLog::Done> frames(done_.frames.begin() + before, done_.frames.end());
    const bool is_same = std::ranges::equal(frames, log.frames, [](const auto& a, const auto& b) {
      return a.stamp == b.stamp && a.summary.error.empty() == b.summary.error.empty();
    });
    if (!is_same)
      throw FileError("The part of the result in " + part.output.string() +
                      " has other frames than those beside it: they changed meanwhile. Measure into another "
                      "folder with -o.");
    for (std::size_t k = 0; k < frames.size(); ++k) {
      frames[k].summary.noise += log.frames[k].summary.noise;
      frames[k].summary.seconds += log.frames[k].summary.seconds;
    }
  }

  void describe(ResultPart& joined, const Result& result, std::ptrdiff_t before) const {
    joined.positions = result.positions();
    if (joined.positions && plan_.bands() > 1)
      joined.positions = std::make_shared<NodePositions>(corrected_nodes(whole_grid(), *job_.options.camera));
    for (const FieldArray& array : kFieldArrays)
      if (array.is_optional() && result.has(array.name)) joined.optional_arrays.emplace_back(array.name);
    for (auto frame = done_.frames.begin() + before; frame != done_.frames.end(); ++frame) {
      if (!frame->summary.error.empty()) continue;
      const std::int64_t number = frame->index - static_cast<std::int64_t>(sequence_.first_current) + 1;
      const bool in_seconds = info_.time_unit == "s";
      joined.times.push_back(in_seconds ? frame->summary.time.value_or(NAN) : static_cast<double>(number));
      joined.numbers.push_back(number);
      joined.names.push_back(frame->summary.file);
    }
  }

  Grid whole_grid() const { return run::whole_grid(job_, info_.image); }

  /// Summarizes whole fields from the summaries of their bands.
  void summarize_bands(const Result& result) {
    int k = 0;
    for (RunLog::Done& frame : done_.frames) {
      FrameSummary& of_bands = frame.summary;
      if (!of_bands.error.empty()) continue;
      FrameSummary summary = summarize(result.field(k++), info_.length_factor());
      summary.file = of_bands.file;
      summary.time = of_bands.time;
      summary.noise = of_bands.noise / static_cast<double>(plan_.bands());
      summary.seconds = of_bands.seconds;
      of_bands = std::move(summary);
    }
  }

  /// Adds the times and devices from run.json of a part.
  void add_run(const fs::path& folder) {
    std::ifstream stream(folder / "run.json");
    const Json run = Json::parse(stream);
    add_origin(run, summary_.host, summary_.date);
    summary_.image = {run.at("image").at("width"), run.at("image").at("height")};
    summary_.gauge = run.at("gauge_px");
    summary_.device = run.at("device");
    summary_.device_reason = run.at("device_reason");
    summary_.kernels = run.at("kernels");
    summary_.options = job_.options;
    summary_.options.prefilter = run.at("chosen").at("prefilter").get<double>();
    summary_.options.refine.subset = run.at("chosen").at("subset");
    add_seconds(run, summary_.seconds);
  }

  const TrackJob& job_;
  Sequence sequence_;
  Plan plan_;
  std::vector<TrackJob> parts_;
  Grid grid_;
  ResultInfo info_;
  TrackSummary summary_;
  RunLog::Contents done_;
  std::vector<ResultPart> joined_;
  std::vector<fs::path> tables_;  ///< one table for each measured frame, if there are any
};

std::vector<TrackJob> plan(const TrackJob& job, int processes) {
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  check_can_be_divided(job);
  const Sequence sequence(job);
  const bool was_planned = is_planned(job.output);
  if (was_planned && job.resume && is_complete(job.output)) return {};
  if (was_planned && !job.resume)
    throw UsageError(
        job.output.string() +
        " holds parts of a run that was ended early, or its result: continue it with --resume, or "
        "choose another folder with -o.");
  if (!was_planned) {
    const OutputFolder check(job.output, OutputFolder::Earlier::refuse);
    const MemoryLimit limit(job.max_memory, job.output);  // covers the reference, which may be large
    write_plan(job.output, sequence.current(), divide(job, sequence, processes));
  }
  return jobs_of(job, sequence, read_plan(job.output, sequence.current()));
}

}  // namespace
}  // namespace dic::run

namespace dic {

std::vector<TrackJob> plan_parts(const TrackJob& job, int processes) { return run::plan(job, processes); }

std::vector<TrackJob> planned_parts(const TrackJob& job) {
  const run::Sequence sequence(job);
  return run::jobs_of(job, sequence, run::read_plan(job.output, sequence.current()));
}

TrackSummary join_parts(const TrackJob& job) { return run::Join(job).run(); }

}  // namespace dic
