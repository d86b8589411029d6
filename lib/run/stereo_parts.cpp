#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/result.hpp>
#include <dic/stereo_parts.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "run/image_pairs.hpp"
#include "run/parts.hpp"
#include "run/run_log.hpp"
#include "run/stereo_json.hpp"
#include "run/stereo_results.hpp"
#include "track/stopwatch.hpp"

namespace dic::run {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// The images of a job, in order; the first pair are the references.
struct PairFiles {
  std::vector<std::string> left, right;

  explicit PairFiles(const StereoJob& job)
      : left(files_to_share(job.track.frames)), right(files_to_share(job.right)) {
    // Tells which camera has more images than the other.
    ImagePairs(open_frames(job.track.frames), open_frames(job.right), Pairing::by_order).count();
    if (left.size() < 2)
      throw UsageError("Only the references were given: several processes share the pairs after them.");
  }
  /// Number of pairs after the references.
  std::size_t current() const { return left.size() - 1; }
};

/// The run.json in a folder. Throws FileError.
Json run_of(const fs::path& folder) {
  std::ifstream stream(folder / "run.json");
  Json run = Json::parse(stream, nullptr, false);
  if (!run.is_object()) throw FileError((folder / "run.json").string() + " is missing or damaged.");
  return run;
}

/// Times of the pairs in seconds, if the job has them.
std::vector<double> times_of(const StereoJob& job, std::size_t pairs) {
  if (!job.track.times.empty() || job.track.fps <= 0) return job.track.times;
  std::vector<double> times;
  for (std::size_t k = 0; k < pairs; ++k) times.push_back(static_cast<double>(k) / job.track.fps);
  return times;
}

/// The first element, and those from `first` + 1 to `end`.
template <typename T>
std::vector<T> with_first(const std::vector<T>& all, std::size_t first, std::size_t end) {
  std::vector<T> some = {all.front()};
  some.insert(some.end(), all.begin() + static_cast<std::ptrdiff_t>(first) + 1,
              all.begin() + static_cast<std::ptrdiff_t>(end) + 1);
  return some;
}

std::vector<StereoJob> jobs_of(const StereoJob& job, const PairFiles& files, const Plan& plan) {
  const std::vector<double> times = times_of(job, files.left.size());
  if (!times.empty() && times.size() < files.left.size())
    throw UsageError("There are fewer times than pairs.");
  std::vector<StereoJob> jobs;
  for (std::size_t k = 0; k < plan.parts(); ++k) {
    const std::size_t first = plan.first[k], end = plan.end(k, files.current());
    StereoJob part = job;
    part.track.frames = with_first(files.left, first, end);
    part.right = with_first(files.right, first, end);
    part.track.fps = 0;
    if (!times.empty()) part.track.times = with_first(times, first, end);
    part.track.output = parts_folder(job.track.output) / part_name(k);
    part.track.resume = true;
    part.track.pictures = Pictures::none;
    part.track.csv = false;
    jobs.push_back(std::move(part));
  }
  return jobs;
}

std::vector<StereoJob> plan(const StereoJob& job, int processes) {
  for (const std::string& problem : job.validate()) throw UsageError(problem);
  check_can_be_divided(job.track);
  const PairFiles files(job);
  const fs::path& output = job.track.output;
  if (job.track.resume && is_complete(output)) {
    if (run_of(output).at("frames_given") == files.left.size()) return {};
    throw UsageError(
        "Cannot continue the result in " + output.string() +
        ": it is complete, and one of another number of pairs; one process can add pairs to it.");
  }
  const bool was_planned = is_planned(output);
  if (was_planned && !job.track.resume)
    throw UsageError(output.string() +
                     " holds parts of a run that was ended early: continue it with --resume, or choose "
                     "another folder with -o.");
  if (!was_planned) {
    const OutputFolder check(output, OutputFolder::Earlier::refuse);
    write_plan(output, files.current(), {divide_frames(files.current(), processes)});
  }
  return jobs_of(job, files, read_plan(output, files.current()));
}

/// The correction of the rig that a part found; none if it found none.
std::optional<RigCorrection> correction_of(const Json& json, const CameraRig& rig) {
  if (json.is_null()) return {};
  RigCorrection correction;
  correction.rig = rig;
  json.at("rotation_deg").get_to(correction.rotation_deg);
  json.at("sigma_rotation_deg").get_to(correction.sigma_rotation_deg);
  json.at("direction_deg").get_to(correction.direction_deg);
  json.at("sigma_direction_deg").get_to(correction.sigma_direction_deg);
  json.at("epipolar_before_px").get_to(correction.epipolar_before_px);
  json.at("epipolar_after_px").get_to(correction.epipolar_after_px);
  json.at("points").get_to(correction.points);
  return correction;
}

/// The job whose files the joined result has. One that was begun before is written anew.
StereoJob joined_job(StereoJob job) {
  job.track.resume = false;
  job.track.force = true;
  return job;
}

/// Joins the results of the parts.
class StereoJoin {
 public:
  explicit StereoJoin(const StereoJob& job)
      : job_(joined_job(job)),
        files_(job),
        plan_(read_plan(job.track.output, files_.current())),
        parts_(jobs_of(job, files_, plan_)),
        images_(open_frames(job.track.frames), open_frames(job.right), Pairing::by_order),
        results_(job_) {}

  StereoSummary run() {
    for (std::size_t k = 0; k < parts_.size(); ++k) add(k);
    for (std::int64_t k = 0; images_.reach(k);) ++k;
    summary_.pairing = images_.mismatch();
    summary_.seconds.total += total_.seconds();
    results_.finish(summary_, images_);
    std::error_code ignored;  // what remains harms nothing
    fs::remove_all(parts_folder(job_.track.output), ignored);
    return std::move(summary_);
  }

 private:
  void add(std::size_t k) {
    const StereoJob& part = parts_[k];
    const fs::path& folder = part.track.output;
    const auto log = StereoLog::read(folder / OutputFolder::kFramesName);
    if (!log || !is_complete(folder))
      throw FileError("The part of the result in " + folder.string() +
                      " is not complete: continue it with --resume.");
    const Result result(folder);
    const Json run = run_of(folder);
    add_origin(run, summary_.host, summary_.date);
    add_seconds(run, summary_.seconds);
    if (k == 0)
      begin(*log, result, run);
    else if (result.grid() != grid_ || log->reference != reference_)
      throw FileError(
          "The part of the result in " + folder.string() +
          " has other references than the first one: they changed meanwhile. Measure into another "
          "folder with -o.");
    int measured = 0;
    for (const StereoLog::Done& frame : log->frames) {
      const int at = frame.was_measured() ? measured++ : -1;
      if (k == 0 || frame.index > 0) add(result, at, moved(frame, k));
    }
  }

  /// A pair of a part, with its number in the whole sequence.
  StereoLog::Done moved(StereoLog::Done frame, std::size_t part) const {
    if (frame.index > 0) frame.index += static_cast<std::int64_t>(plan_.first[part]);
    return frame;
  }

  void begin(const StereoLog::Contents& log, const Result& result, const Json& run) {
    const StereoJob& part = parts_.front();
    grid_ = result.grid(), reference_ = log.reference;
    ResultInfo info = result.info();
    info.command = job_.track.command;
    info.settings_json = stereo_settings_json(job_);
    in_seconds_ = info.time_unit == "s";
    describe(info, run);
    StereoLog::Contents done;
    done.version = log.version, done.reference = log.reference;
    const CameraRig rig = job_.rig.cameras.empty() ? read_camera_rig(job_.calibration, info.image) : job_.rig;
    done.settings = stereo_resume_settings(job_, rig);
    summary_.rig = job_.options.correct_rig ? read_camera_rig(part.track.output / "stereo.json") : rig;
    summary_.rig_correction = correction_of(run.at("rig_correction"), summary_.rig);
    results_.begin(grid_, info, done, summary_);
  }

  /// Describes the run by that of the first part.
  void describe(const ResultInfo& info, const Json& run) {
    summary_.image = info.image;
    summary_.points = grid_.points();
    summary_.frames_given = std::ssize(files_.left);
    summary_.output = job_.track.output;
    summary_.gauge = run.at("gauge_px");
    summary_.gauge_mm = run.at("gauge_mm").is_null() ? NAN : run.at("gauge_mm").get<double>();
    summary_.device = run.at("device");
    summary_.device_reason = run.at("device_reason");
    summary_.kernels = run.at("kernels");
    summary_.options = job_.track.options;
    const Json& chosen = run.at("chosen");
    summary_.options.prefilter = chosen.at("prefilter").get<double>();
    summary_.options.refine.subset = chosen.at("subset");
    summary_.order_between_cameras = chosen.at("order_between_cameras");
  }

  /// at: number of the pair in the result; -1 if it was not measured.
  void add(const Result& result, int at, StereoLog::Done frame) {
    summary_.frames.push_back(frame.summary);
    if (at >= 0) {
      const double time = in_seconds_ ? frame.summary.time.value_or(NAN) : static_cast<double>(frame.index);
      results_.add(result.field(at), {frame.index, time, frame.summary.left}, {});
    }
    results_.note(std::move(frame), summary_);
  }

  track::Stopwatch total_;
  StereoJob job_;
  PairFiles files_;
  Plan plan_;
  std::vector<StereoJob> parts_;
  ImagePairs images_;
  StereoResults results_;
  StereoSummary summary_;
  Grid grid_;
  std::string reference_;  ///< stamp of the references' files
  bool in_seconds_ = false;
};

}  // namespace
}  // namespace dic::run

namespace dic {

std::vector<StereoJob> plan_stereo_parts(const StereoJob& job, int processes) {
  return run::plan(job, processes);
}

std::vector<StereoJob> planned_stereo_parts(const StereoJob& job) {
  const run::PairFiles files(job);
  return run::jobs_of(job, files, run::read_plan(job.track.output, files.current()));
}

StereoSummary join_stereo_parts(const StereoJob& job) { return run::StereoJoin(job).run(); }

}  // namespace dic
