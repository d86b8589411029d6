#include <cstdio>
#include <dic/error.hpp>
#include <dic/live.hpp>
#include <dic/track_options.hpp>
#include <dic/visible_gpus.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "commands.hpp"
#include "interruption.hpp"
#include "output_lines.hpp"
#include "stereo_flags.hpp"
#include "track_flags.hpp"

namespace dic::app {
namespace {

constexpr const char* kLiveExamples =
    "Examples:\n"
    "  dic live --list                                        the cameras\n"
    "  dic live --camera 192.168.0.7 --exposure 800 --fps 50 --extensometer 100,40,100,360 --udp "
    "127.0.0.1:5005\n"
    "  dic live --camera fake --step 10 --until 20s --record frames -o run1\n"
    "\n";

struct LiveFlags {
  TrackFlags track;
  LiveOptions live;
  bool lists = false;
};

/// Adds an option that set_live_option() reads. `options` and `name` must outlive the command.
CLI::Option* add(CLI::App& command, LiveOptions& options, const char* name, const std::string& placeholder,
                 const std::string& help) {
  const auto set = [&options, name](const std::vector<std::string>& values) {
    try {
      for (const std::string& value : values) set_live_option(options, name, value);
    } catch (const UsageError& e) {
      throw CLI::ValidationError(std::string("--") + e.what());
    }
  };
  const std::string_view name_text = name;
  const bool may_be_repeated = name_text == "set" || name_text == "extensometer";
  CLI::Option* option =
      command.add_option_function<std::vector<std::string>>(std::string("--") + name, set, help)
          ->type_name(placeholder)
          ->allow_extra_args(false);
  return may_be_repeated ? option : option->multi_option_policy(CLI::MultiOptionPolicy::Throw)->expected(1);
}

void print_cameras() {
  const CameraList list = list_cameras();
  for (const CameraInfo& camera : list.cameras)
    std::printf("%-24s %-16s %-12s %s %s %s\n", printable(camera.id).c_str(),
                printable(camera.address).c_str(), camera.protocol.c_str(), printable(camera.vendor).c_str(),
                printable(camera.model).c_str(), printable(camera.serial).c_str());
  for (const std::string& problem : list.problems) std::cerr << "dic: " << problem << '\n';
  if (list.cameras.empty() && list.problems.empty()) std::cerr << "dic: No camera was found.\n";
}

/// Measures only at the ends of the extensometers unless the user has asked for a field.
void choose_points(CLI::App& command, LiveFlags& flags) {
  flags.live.only_extensometers =
      !flags.live.extensometers.empty() && command.get_option("--step")->count() == 0;
}

LiveSummary measure(const TrackJob& job, const LiveOptions& options, OutputLines& lines) {
  const Interruption interruption;
  LiveStream stream(job, options);
  if (options.tcp) std::cerr << "dic: Programs connect to port " << stream.tcp_port() << ".\n";
  const std::stop_callback interrupt(interruption.token(), [&] { stream.stop(); });
  while (const std::optional<LiveFrame> frame = stream.next()) {
    lines.print(frame->line);
    if (!frame->text.empty()) std::cerr << "dic: " << printable(frame->text) << '\n';
  }
  LiveSummary summary = stream.finish();
  lines.print(summary.line);
  return summary;
}

void run_live(CLI::App& command, LiveFlags& flags) {
  if (flags.lists) return print_cameras();
  apply_run_options(command, flags.track);
  TrackJob& job = flags.track.job;
  if (!flags.track.save_config.empty() && flags.live.camera.empty()) return;
  if (job.reference == "first") job.reference.clear();
  choose_points(command, flags);
  hide_unused_gpus(job.options.device);
  OutputLines lines(job.output);
  const LiveSummary summary = measure(job, flags.live, lines);
  if (!summary.problem.empty()) std::cerr << "dic: " << printable(summary.problem) << '\n';
  if (!summary.problem.empty() || lines.are_lost()) throw CLI::RuntimeError(failed);
}

void add_camera_options(CLI::App& command, LiveFlags& flags) {
  command.option_defaults()->group("Camera");
  command.add_flag("--list", flags.lists, "List the cameras, and exit")->configurable(false);
  add(command, flags.live, "camera", "CAMERA",
      "Name, serial number or address of a GenICam camera; webcam:0; or fake, which is moving speckle")
      ->configurable(false);
  add(command, flags.live, "right-camera", "CAMERA",
      "Right camera of two that share a trigger, which measure in 3-D as dic stereo; --camera is the left "
      "one")
      ->configurable(false);
  add(command, flags.live, "calibration", "FILE",
      "Calibration of both cameras: a file of dic calibrate or of another program");
  add_stereo_options(command, flags.live.stereo, "Camera");
  add(command, flags.live, "set", "Feature=Value", "Set a feature by its GenICam name; may be repeated");
  add(command, flags.live, "region", "x,y,width,height", "Part of the sensor, px");
  add(command, flags.live, "format", "FORMAT", "Pixel format, as Mono8 or Mono16");
  add(command, flags.live, "fps", "FLOAT", "Frames per second; 0 = as the camera is set");
  add(command, flags.live, "exposure", "US", "Exposure, us");
  add(command, flags.live, "gain", "GAIN", "Gain, in the unit of the camera");
  add(command, flags.live, "trigger", "free|software|Line0",
      "free: the camera runs by itself; software: a frame when the last one was measured; or an input of the "
      "camera")
      ->default_str("free");
  add(command, flags.live, "buffers", "INT",
      "Frames that may wait in the driver of the camera and, with --drop stop, in memory")
      ->default_str("16");
}

/// The option `camera` of dic track, whose name is that of the camera that takes the frames here.
void add_lens(CLI::App& command, TrackJob& job) {
  const TrackOption& lens = track_option("camera");
  command
      .add_option_function<std::string>(
          "--lens", [&job, &lens](const std::string& file) { lens.set(job, file); }, lens.help)
      ->type_name(lens.placeholder);
}

void add_live_options(CLI::App& command, LiveOptions& options) {
  command.option_defaults()->group("Measuring live");
  add(command, options, "until", "N|Ns",
      "End after this number of results, or after seconds; without it, Ctrl-C ends");
  add(command, options, "extensometer", "x1,y1,x2,y2",
      "Print the change of the distance between two points, px; without --step, nothing else is measured; "
      "may "
      "be repeated");
  add(command, options, "drop", "newest|never|stop",
      "Frames that come too fast: measure the newest; never drop one while memory lasts; or stop at the "
      "first "
      "loss")
      ->default_str("newest");
  add(command, options, "record", "DIR", "Write all frames that arrive, and a table of their times, there");
  add(command, options, "lost", "stop|wait=S", "When the camera vanishes: end, or wait for it, s")
      ->default_str("stop");
  add(command, options, "udp", "HOST:PORT", "Send every line there, too");
  add(command, options, "tcp", "PORT",
      "Send every line to programs that connect to this port; 0 = a free one");
}

}  // namespace

void add_live(CLI::App& app) {
  auto flags = std::make_shared<LiveFlags>();
  flags->track.job.pictures = Pictures::none;  // what a picture takes is missing for the frames
  CLI::App* command = app.add_subcommand("live", "Measure the frames of a camera while they arrive");
  command->option_defaults()->always_capture_default();
  add_camera_options(*command, *flags);
  add_live_options(*command, flags->live);
  add_lens(*command, flags->track.job);
  add_run_options(*command, flags->track, {"camera", "fps", "times", "resume", "noise-floor", "max-memory"});
  command->footer(kLiveExamples + guide("live.md") +
                  " says what is printed, and how other programs read it.");
  command->callback([command, flags] { run_live(*command, *flags); });
}

}  // namespace dic::app
