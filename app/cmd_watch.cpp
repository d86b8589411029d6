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
    "\n";

struct WatchFlags {
  TrackFlags track;
  WatchOptions watch;
  std::vector<std::array<Position, 2>> extensometers;
};

/// JSON of a number; null if it is NaN or infinite.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json extensometer_json(const Field& field, const std::array<Position, 2>& ends, double length_factor) {
  const ExtensometerValues values = probe_extensometer(field, ends[0], ends[1]);
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

/// Prints one line of JSON.
void print_line(OutputLines& lines, const WatchFlags& flags, const FrameSummary& frame, const Field& field,
                int frame_number) {
  Json json;
  json["frame"] = frame_number;
  json["file"] = frame.file;
  json["time"] = frame.time ? Json(*frame.time) : Json(nullptr);
  json["error"] = frame.error.empty() ? Json(nullptr) : Json(frame.error);
  if (frame.error.empty()) {
    Json& counts = json["counts"];
    for (int status = 0; status < kStatusCount; ++status)
      counts[std::string(to_string(static_cast<Status>(status)))] = frame.counts[status];
    json["mean_u"] = number(frame.mean_u);
    json["mean_v"] = number(frame.mean_v);
    for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
      json["mean_" + std::string(kStrainComponents[k].name)] = number(frame.strain[k].mean);
      json[std::string(sigma_of(kStrainComponents[k])->name)] = number(frame.strain[k].sigma);
    }
    const double scale = flags.track.job.scale();
    json["extensometers"] = Json::array();
    for (const auto& ends : flags.extensometers)
      json["extensometers"].push_back(extensometer_json(field, ends, scale > 0 ? scale : 1));
  }
  json["latency"] = latency_of(flags.watch.folder / frame.file);
  lines.print(json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

void run_watch(CLI::App& command, WatchFlags& flags) {
  apply_run_options(command, flags.track);
  TrackJob& job = flags.track.job;
  if (!flags.track.save_config.empty() && flags.watch.folder.empty()) return;
  std::error_code unknown;
  if (std::filesystem::weakly_canonical(flags.watch.folder, unknown) ==
      std::filesystem::weakly_canonical(job.output, unknown))
    throw UsageError("The results cannot go into the folder that is watched: choose another one with -o.");
  hide_unused_gpus(job.options.device);
  const Interruption interruption;
  OutputLines lines(job.output);
  const auto print = [&](const FrameSummary& frame, const Field& field, int number) {
    print_line(lines, flags, frame, field, number);
  };
  const TrackSummary summary = watch_folder(job, flags.watch, print, interruption.token());
  if (summary.was_complete) return;
  print_warnings(job, summary);
  const auto was_skipped = [](const FrameSummary& frame) { return !frame.error.empty(); };
  if (std::ranges::any_of(summary.frames, was_skipped)) throw CLI::RuntimeError(frames_lost);
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
      ->add_option("DIR", flags->watch.folder,
                   "Folder into which the images arrive; the first is the reference")
      ->type_name("")
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
  command->footer(kWatchExamples + guide("live.md") + " says what is printed.");
  command->callback([command, flags] { run_watch(*command, *flags); });
}

}  // namespace dic::app
