#include <algorithm>
#include <chrono>
#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <dic/visible_gpus.hpp>
#include <dic/watch.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "commands.hpp"
#include "interruption.hpp"
#include "output_lines.hpp"
#include "stereo_flags.hpp"
#include "stereo_report.hpp"
#include "track_flags.hpp"
#include "track_report.hpp"

namespace dic::app {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kWatchExamples =
    "Examples:\n"
    "  dic watch camera/ -o run1                              until Ctrl-C; the first image is the "
    "reference\n"
    "  dic watch camera/ --until 500 --csv                    500 frames after the reference\n"
    "  dic watch camera/ --idle 60 --extensometer 100,40,100,360 | lab_software\n"
    "  dic watch left/ right/ --calibration stereo.json       pairs of two cameras, in 3-D\n"
    "\n";

struct WatchFlags {
  TrackFlags track;
  WatchOptions watch;
  std::vector<std::array<Position, 2>> extensometers;
  StereoFlags stereo;
  std::vector<std::filesystem::path> folders;  ///< one, or those of the left and the right camera
  bool has_two_cameras() const { return folders.size() == 2; }
};

/// JSON of a number; null if it is NaN or infinite.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json extensometer_json(const ExtensometerValues& values, double length_factor = 1) {
  Json json;
  json["gauge_length"] = number(values.gauge_length * length_factor);
  json["change"] = number(values.change * length_factor);
  json["strain"] = number(values.strain);
  json["sigma_strain"] = number(values.sigma_strain);
  json["problem"] = values.problem.empty() ? Json(nullptr) : Json(values.problem);
  return json;
}

/// Seconds since the file was written; null if that time lies in the future, as on a machine with another
/// clock.
Json latency_of(const std::filesystem::path& file) {
  std::error_code unknown;
  const auto written = std::filesystem::last_write_time(file, unknown);
  if (unknown) return nullptr;
  const std::chrono::duration<double> since = std::filesystem::file_time_type::clock::now() - written;
  return since.count() >= 0 ? Json(since.count()) : Json(nullptr);
}

Json counts_json(const std::array<std::int64_t, kStatusCount>& of_status) {
  Json counts;
  for (int status = 0; status < kStatusCount; ++status)
    counts[std::string(to_string(static_cast<Status>(status)))] = of_status[status];
  return counts;
}

void print_json(OutputLines& lines, const Json& json) {
  lines.print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

/// Prints one line of JSON.
void print_line(OutputLines& lines, const WatchFlags& flags, const FrameSummary& frame, const Field& field,
                int frame_number) {
  Json json;
  json["frame"] = frame_number;
  json["file"] = frame.file;
  json["time"] = frame.time ? Json(*frame.time) : Json(nullptr);
  json["error"] = frame.error.empty() ? Json(nullptr) : Json(frame.error);
  if (frame.error.empty()) {
    json["counts"] = counts_json(frame.counts);
    json["mean_u"] = number(frame.mean_u);
    json["mean_v"] = number(frame.mean_v);
    for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
      json["mean_" + std::string(kStrainComponents[k].name)] = number(frame.strain[k].mean);
      json[std::string(sigma_of(kStrainComponents[k])->name)] = number(frame.strain[k].sigma);
    }
    const double scale = flags.track.job.scale();
    json["extensometers"] = Json::array();
    for (const auto& ends : flags.extensometers)
      json["extensometers"].push_back(
          extensometer_json(probe_extensometer(field, ends[0], ends[1]), scale > 0 ? scale : 1));
  }
  json["latency"] = latency_of(flags.watch.folder / frame.file);
  print_json(lines, json);
}

/// Prints one line of JSON of a pair.
void print_line(OutputLines& lines, const WatchFlags& flags, const StereoFrameSummary& frame,
                const Field& field, int pair_number) {
  Json json;
  json["frame"] = pair_number;
  json["file"] = frame.left;
  json["right_file"] = frame.right;
  json["time"] = frame.time ? Json(*frame.time) : Json(nullptr);
  json["error"] = frame.error.empty() ? Json(nullptr) : Json(frame.error);
  if (frame.error.empty()) {
    json["counts"] = counts_json(frame.counts);
    for (std::size_t k = 0; k < kStereoSummary.size(); ++k) {
      const std::string name(kStereoSummary[k]);
      json["mean_" + name] = number(frame.statistics[k].mean);
      json["sigma_" + name] = number(frame.statistics[k].sigma);
    }
    json["epipolar_median"] = number(frame.epipolar_median);
    json["epipolar_sd"] = number(frame.epipolar_sd);
    json["extensometers"] = Json::array();
    for (const auto& ends : flags.extensometers)
      json["extensometers"].push_back(extensometer_json(probe_surface_extensometer(field, ends[0], ends[1])));
  }
  const bool ends_left = frame.right.empty();
  json["latency"] = latency_of(ends_left ? flags.folders[0] / frame.left : flags.folders[1] / frame.right);
  print_json(lines, json);
}

/// Watches the folders of two cameras. Returns the exit code.
int watch_pairs(const WatchFlags& flags, OutputLines& lines, const std::stop_token& stop) {
  const auto print = [&](const StereoFrameSummary& frame, const Field& field, int number) {
    print_line(lines, flags, frame, field, number);
  };
  const StereoSummary summary =
      watch_folders(stereo_job(flags.track.job, flags.stereo), flags.watch, flags.folders[1], print, stop);
  if (summary.was_complete) return 0;
  print_warnings(summary);
  return all_were_processed(summary) ? 0 : frames_lost;
}

/// Watches the folder of one camera. Returns the exit code.
int watch_frames(const WatchFlags& flags, OutputLines& lines, const std::stop_token& stop) {
  if (!flags.stereo.calibration.empty())
    throw UsageError(
        "A calibration of two cameras needs two folders: name that of the left and that of the right one.");
  const TrackJob& job = flags.track.job;
  const auto print = [&](const FrameSummary& frame, const Field& field, int number) {
    print_line(lines, flags, frame, field, number);
  };
  const TrackSummary summary = watch_folder(job, flags.watch, print, stop);
  if (summary.was_complete) return 0;
  print_warnings(job, summary);
  const auto was_skipped = [](const FrameSummary& frame) { return !frame.error.empty(); };
  return std::ranges::any_of(summary.frames, was_skipped) ? frames_lost : 0;
}

void run_watch(CLI::App& command, WatchFlags& flags) {
  apply_run_options(command, flags.track);
  const TrackJob& job = flags.track.job;
  if (!flags.track.save_config.empty() && flags.folders.empty()) return;
  if (!flags.folders.empty()) flags.watch.folder = flags.folders.front();
  std::error_code unknown;
  for (const std::filesystem::path& folder : flags.folders)
    if (std::filesystem::weakly_canonical(folder, unknown) ==
        std::filesystem::weakly_canonical(job.output, unknown))
      throw UsageError("The results cannot go into the folder that is watched: choose another one with -o.");
  hide_unused_gpus(job.options.device);
  const Interruption interruption;
  OutputLines lines(job.output);
  const auto watch = flags.has_two_cameras() ? watch_pairs : watch_frames;
  if (const int code = watch(flags, lines, interruption.token()); code != 0) throw CLI::RuntimeError(code);
  if (lines.are_lost()) throw CLI::RuntimeError(failed);
}

}  // namespace

void add_watch(CLI::App& app) {
  auto flags = std::make_shared<WatchFlags>();
  CLI::App* command = app.add_subcommand(
      "watch", "Measure the images that another program writes into a folder, while they arrive");
  command->option_defaults()->always_capture_default();
  command->option_defaults()->group("Watching");
  command
      ->add_option("DIR", flags->folders,
                   "Folder into which the images arrive; the first is the reference. Two folders: those of "
                   "the left and the right camera")
      ->type_name("")
      ->expected(1, 2)
      ->default_str("")
      ->configurable(false);
  command
      ->add_option("--until", flags->watch.until,
                   "End after this number of frames after the reference; 0 = never")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--idle", flags->watch.idle, "End after this many seconds without a new image; 0 = never")
      ->check(CLI::NonNegativeNumber);
  command
      ->add_option("--patience", flags->watch.patience,
                   "Skip an incomplete image that has not grown for this many seconds")
      ->check(CLI::NonNegativeNumber);
  add_choice(*command, "--sort", flags->watch.order,
             "Order of several new images: by name, or complete ones by the time at which they were written");
  const auto add_extensometers = [flags](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) flags->extensometers.push_back(ends_of("--extensometer", text));
  };
  command
      ->add_option_function<std::vector<std::string>>(
          "--extensometer", add_extensometers,
          "Print the change of the distance between two points, px of the reference; may be repeated")
      ->type_name("x1,y1,x2,y2")
      ->allow_extra_args(false);
  add_run_options(*command, flags->track);
  command->option_defaults()->group("Two cameras");
  add_calibration(*command, flags->stereo);
  add_stereo_options(*command, flags->stereo.options, "Two cameras");
  command->footer(kWatchExamples + guide("live.md") + " says what is printed.");
  command->callback([command, flags] { run_watch(*command, *flags); });
}

}  // namespace dic::app
