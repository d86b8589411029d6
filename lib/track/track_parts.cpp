#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/result.hpp>
#include <dic/track_parts.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "track/results.hpp"
#include "track/run_json.hpp"
#include "track/run_log.hpp"
#include "track/stopwatch.hpp"

namespace dic {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

fs::path parts_folder(const TrackJob& job) { return job.output / "parts"; }
fs::path plan_file(const TrackJob& job) { return parts_folder(job) / "plan.json"; }

/// The images of a job, in order.
struct Sequence {
  std::vector<std::string> files;
  std::size_t first_current = 0;  ///< 1 where the first file is the reference

  explicit Sequence(const TrackJob& job) : first_current(job.reference.empty() ? 1 : 0) {
    if (!open_frames(job.frames)->reads_in_parallel())
      throw UsageError(
          "A video is decoded in order: several processes cannot share it; extract its frames first.");
    for (const fs::path& file : expand_frames(job.frames)) files.push_back(file);
    if (files.size() <= first_current)
      throw UsageError("Only one frame was given: give the reference and at least one frame more.");
  }
  std::size_t current() const { return files.size() - first_current; }
};

void check_can_be_divided(const TrackJob& job) {
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  if (job.options.reference_strategy != ReferenceStrategy::first)
    throw UsageError(
        "Several processes share a sequence only with the reference strategy first: with the others a frame "
        "needs "
        "those before.");
  if (job.noise_floor) throw UsageError("A noise floor is measured by one process.");
  if (job.force)
    throw UsageError("Several processes do not replace a result: choose another folder with -o.");
}

/// Numbers of the first current frame of each part. The first frame of a part is searched for from nothing,
/// which costs as much as some frames more.
std::vector<std::size_t> divide(std::size_t frames, int processes) {
  constexpr std::size_t kFramesOfPart = 16, kPartsOfProcess = 4;
  const std::size_t least = std::max(processes, 1);
  const std::size_t parts =
      std::min(std::clamp(frames / kFramesOfPart, least, kPartsOfProcess * least), frames);
  std::vector<std::size_t> first;
  for (std::size_t k = 0; k < parts; ++k) first.push_back(k * frames / parts);
  return first;
}

std::vector<std::size_t> read_plan(const TrackJob& job, const Sequence& sequence) {
  std::ifstream stream(plan_file(job));
  const Json json = Json::parse(stream, nullptr, false);
  if (!json.is_object() || !json.contains("frames") || !json.contains("first"))
    throw FileError(plan_file(job).string() + " is damaged: measure into another folder with -o.");
  if (json["frames"] != sequence.current())
    throw UsageError("Cannot go on with the parts in " + parts_folder(job).string() + ": they are of " +
                     json["frames"].dump() + " frames, now there are " + std::to_string(sequence.current()) +
                     "; measure into another folder with -o.");
  return json["first"];
}

void write_plan(const TrackJob& job, const Sequence& sequence, const std::vector<std::size_t>& first) {
  std::error_code error;
  fs::create_directories(parts_folder(job), error);
  if (error) throw FileError("Cannot write " + parts_folder(job).string() + ": " + error.message() + ".");
  write_text_file(plan_file(job), Json{{"frames", sequence.current()}, {"first", first}}.dump() + "\n");
}

/// In seconds, where the job has them.
std::vector<double> times_of(const TrackJob& job, const Sequence& sequence) {
  if (!job.times.empty() || job.fps <= 0) return job.times;
  std::vector<double> times;
  for (std::size_t k = 0; k < sequence.files.size(); ++k) times.push_back(static_cast<double>(k) / job.fps);
  return times;
}

std::vector<TrackJob> jobs_of(const TrackJob& job, const Sequence& sequence,
                              const std::vector<std::size_t>& first) {
  const std::vector<double> times = times_of(job, sequence);
  std::vector<TrackJob> jobs;
  for (std::size_t k = 0; k < first.size(); ++k) {
    const std::size_t end = k + 1 < first.size() ? first[k + 1] : sequence.current();
    const auto from = static_cast<std::ptrdiff_t>(sequence.first_current + first[k]),
               to = static_cast<std::ptrdiff_t>(sequence.first_current + end);
    const std::string number = std::to_string(k),
                      name = std::string(number.size() < 4 ? 4 - number.size() : 0, '0') + number;
    TrackJob part = job;
    part.reference = job.reference.empty() ? sequence.files.front() : job.reference;
    part.frames.assign(sequence.files.begin() + from, sequence.files.begin() + to);
    part.fps = 0;
    if (!times.empty()) {
      if (std::ssize(times) < to) throw UsageError("There are fewer times than frames.");
      part.times.assign(times.begin() + from, times.begin() + to);
    }
    part.output = parts_folder(job) / name;
    part.resume = true;
    part.pictures = Pictures::none;
    jobs.push_back(std::move(part));
  }
  return jobs;
}

bool is_complete(const fs::path& folder) {
  std::ifstream stream(folder / "run.json");
  const Json run = Json::parse(stream, nullptr, false);
  return run.is_object() && run.value("state", "") == "complete";
}

RunLog::Contents log_of(const TrackJob& part) {
  const auto contents = RunLog::read(part.output / OutputFolder::kFramesName);
  if (!contents || !is_complete(part.output))
    throw FileError("The part of the result in " + part.output.string() +
                    " is not complete: go on with it with --resume.");
  return *contents;
}

/// Joins what the parts have.
class Join {
 public:
  explicit Join(const TrackJob& job) : job_(job), sequence_(job), parts_(planned_parts(job)) {}

  TrackSummary run() {
    const track::Stopwatch watch;
    const auto first = read_plan(job_, sequence_);
    for (std::size_t k = 0; k < parts_.size(); ++k) add(parts_[k], first[k]);
    summary_.frames_given = static_cast<std::int64_t>(sequence_.current());
    summary_.reference = parts_.front().reference;
    summary_.output = job_.output;
    Results results(job_);
    info_.command = job_.command;
    info_.settings_json = settings_json(job_);
    done_.settings = resume_settings(job_);
    results.begin_joined(grid_, info_, static_cast<std::int64_t>(sequence_.first_current),
                         static_cast<std::int64_t>(sequence_.files.size()), done_, joined_, tables_);
    summary_.seconds.total += watch.seconds();
    const auto source = open_frames(job_.frames);
    results.finish(summary_, *source);
    return std::move(summary_);
  }

 private:
  void add(const TrackJob& part, std::size_t first) {
    const RunLog::Contents log = log_of(part);
    const Result result(part.output);
    if (joined_.empty() || grid_.nodes() == 0) grid_ = result.grid(), info_ = result.info();
    if (result.grid() != grid_)
      throw FileError(part.output.string() + " has another grid than the parts before.");
    add_run(part.output);
    done_.version = log.version;
    done_.reference = log.reference;
    ResultPart joined;
    joined.file = fs::path("parts") / part.output.filename() / "result.vtkhdf";
    joined.positions = result.positions();
    joined.has_order = result.has("order");
    joined.has_global = result.has("resolution");
    UniqueStems stems;
    for (const RunLog::Done& frame : log.frames) {
      RunLog::Done moved = frame;
      moved.index += static_cast<std::int64_t>(sequence_.first_current + first);
      const auto number = static_cast<std::int64_t>(first) + frame.index + 1;
      if (frame.summary.error.empty()) {
        const std::string stem = stems.unique(fs::path(frame.summary.file).stem().string());
        tables_.push_back(part.output / "csv" / (stem + ".csv"));
        const bool in_seconds = info_.time_unit == "s";
        joined.times.push_back(in_seconds ? frame.summary.time.value_or(NAN) : static_cast<double>(number));
        joined.numbers.push_back(number);
        joined.names.push_back(frame.summary.file);
      }
      summary_.frames.push_back(frame.summary);
      done_.frames.push_back(std::move(moved));
    }
    if (!joined.names.empty()) joined_.push_back(std::move(joined));
  }

  /// What run.json of a part says about its run.
  void add_run(const fs::path& folder) {
    std::ifstream stream(folder / "run.json");
    const Json run = Json::parse(stream);
    const std::string host = run.at("host");
    if (summary_.host.find(host) == std::string::npos)
      summary_.host += (summary_.host.empty() ? "" : ", ") + host;
    summary_.date = summary_.date.empty() ? run.at("date").get<std::string>()
                                          : std::min<std::string>(summary_.date, run.at("date"));
    summary_.image = {run.at("image").at("width"), run.at("image").at("height")};
    summary_.gauge = run.at("gauge_px");
    summary_.points = run.at("points");
    summary_.device = run.at("device");
    summary_.device_reason = run.at("device_reason");
    summary_.kernels = run.at("kernels");
    summary_.options = job_.options;
    summary_.options.prefilter = run.at("chosen").at("prefilter").get<double>();
    summary_.options.refine.subset = run.at("chosen").at("subset");
    const Json& seconds = run.at("seconds");
    StageSeconds& sum = summary_.seconds;
    for (const auto& [name, value] :
         {std::pair("load", &sum.load), std::pair("prepare", &sum.prepare), std::pair("search", &sum.search),
          std::pair("refine", &sum.refine), std::pair("strain", &sum.strain), std::pair("write", &sum.write),
          std::pair("total", &sum.total)})
      *value += seconds.at(name).get<double>();
  }

  const TrackJob& job_;
  Sequence sequence_;
  std::vector<TrackJob> parts_;
  Grid grid_;
  ResultInfo info_;
  TrackSummary summary_;
  RunLog::Contents done_;
  std::vector<ResultPart> joined_;
  std::vector<fs::path> tables_;  ///< one for each measured frame, where there are any
};

}  // namespace

std::vector<TrackJob> plan_parts(const TrackJob& job, int processes) {
  check_can_be_divided(job);
  const Sequence sequence(job);
  std::error_code ignored;
  const bool is_planned = fs::exists(plan_file(job), ignored);
  if (is_planned && job.resume && is_complete(job.output)) return {};
  if (is_planned && !job.resume)
    throw UsageError(
        job.output.string() +
        " holds parts of a run that was ended early, or its result: go on with it with --resume, or "
        "choose another folder with -o.");
  if (!is_planned) {
    const OutputFolder check(job.output, OutputFolder::Earlier::refuse);
    write_plan(job, sequence, divide(sequence.current(), processes));
  }
  return jobs_of(job, sequence, read_plan(job, sequence));
}

std::vector<TrackJob> planned_parts(const TrackJob& job) {
  const Sequence sequence(job);
  return jobs_of(job, sequence, read_plan(job, sequence));
}

TrackSummary join_parts(const TrackJob& job) { return Join(job).run(); }

}  // namespace dic
