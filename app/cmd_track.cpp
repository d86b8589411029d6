#include <algorithm>
#include <cstdio>
#include <dic/error.hpp>
#include <dic/stereo_files.hpp>
#include <dic/track_files.hpp>
#include <dic/track_options.hpp>
#include <dic/visible_gpus.hpp>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "commands.hpp"
#include "config_file.hpp"
#include "figures/cairo_canvas.hpp"
#include "interruption.hpp"
#include "mpi/process_group.hpp"
#include "track_flags.hpp"
#include "track_report.hpp"

namespace dic::app {

namespace {

constexpr const char* kTrackExamples =
    "Examples:\n"
    "  dic track frames/*.png                              default settings, into dic_out/\n"
    "  dic track clip.avi --subset 21 --step 3 --csv       finer, with tables\n"
    "  dic track loaded.tif --reference start.tif --roi-rect 100,80,400,300 --scale 0.02 -o result\n"
    "\n";

constexpr const char* kCommonOptions = "Common options";

/// Gives a value of the command line or a configuration file to the job.
void set(TrackJob& job, const TrackOption& option, const std::string& value) {
  if (value.empty()) throw CLI::ValidationError("--" + option.name, "needs a value");
  try {
    option.set(job, value);
  } catch (const UsageError& e) {
    throw CLI::ValidationError(std::string("--") + e.what());
  }
}

/// Problem with the value of a flag, as in --csv=maybe; empty if there is none.
std::string flag_problem(const std::string& value) {
  try {
    CLI::detail::to_flag_value(value);
    return {};
  } catch (const std::invalid_argument&) {
    return "needs true or false, got \"" + value + "\"";
  }
}

void add_flag(CLI::App& command, TrackJob& job, const TrackOption& option) {
  const auto set_flag = [&job, &option](std::int64_t count) {
    set(job, option, count > 0 ? "true" : "false");
  };
  command.add_flag_function("--" + option.name, set_flag, option.help)
      ->check(CLI::Validator([](const std::string& value) { return flag_problem(value); }, ""));
}

/// Adds an option that may be repeated, one polygon each time.
void add_polygons(CLI::App& command, TrackJob& job, const TrackOption& option) {
  const auto set_all = [&job, &option](const std::vector<std::string>& values) {
    std::string all;
    for (const std::string& value : values) all += (all.empty() ? "" : ";") + value;
    set(job, option, all);
  };
  command.add_option_function<std::vector<std::string>>("--" + option.name, set_all, option.help)
      ->type_name(option.placeholder)
      ->allow_extra_args(false);
}

void add_value(CLI::App& command, TrackJob& job, const TrackOption& option) {
  const auto set_value = [&job, &option](const std::string& value) { set(job, option, value); };
  const std::string letter = option.name == "output" ? "-o," : "";
  CLI::Option* added =
      command.add_option_function<std::string>(letter + "--" + option.name, set_value, option.help)
          ->default_str(option.get(job))
          ->run_callback_for_default();  // makes --save-config write options that have no value
  if (option.kind == OptionKind::choice) {
    added->check(CLI::IsMember(option.choices));
  } else {
    std::string type = option.placeholder;
    for (const std::string& word : option.choices) type += "|" + word;
    added->type_name(type);
  }
}

/// The heading under which help texts show an option; empty for one that they do not show.
std::string heading_of(const TrackOption& option) {
  switch (option.level) {
    case OptionLevel::common:
      return kCommonOptions;
    case OptionLevel::advanced:
      return "Advanced";
    case OptionLevel::hidden:
      return "";
    case OptionLevel::usual:
      break;
  }
  return option.group;
}

void add_option(CLI::App& command, TrackJob& job, const TrackOption& option) {
  command.option_defaults()->group(heading_of(option));
  if (option.kind == OptionKind::flag)
    add_flag(command, job, option);
  else if (option.kind == OptionKind::polygons)
    add_polygons(command, job, option);
  else
    add_value(command, job, option);
}

/// Adds the options of some groups, except those named by `without`, in the order of the table.
void add_groups(CLI::App& command, TrackJob& job, const std::vector<std::string>& groups, OptionLevel level,
                const std::vector<std::string>& without = {}) {
  for (const TrackOption& option : track_options())
    if (option.level == level && std::ranges::find(groups, option.group) != groups.end() &&
        std::ranges::find(without, option.name) == without.end())
      add_option(command, job, option);
}

void add_frames(CLI::App& command, TrackFlags& flags) {
  command.option_defaults()->group(kCommonOptions);
  command
      .add_option("FRAMES", flags.job.frames,
                  "Images, stacks, recordings (.cine, .mraw), quoted globs, folders, or one video; the first "
                  "is the reference")
      ->type_name("")
      ->default_str("")
      ->configurable(false);
}

void add_program(CLI::App& command, TrackFlags& flags) {
  command.option_defaults()->group("Running");
  command.add_flag("--quiet", flags.quiet, "Print errors and warnings only");
  command.add_flag("--verbose", flags.verbose, "Print every frame and the kernels that ran");
  command
      .add_option("--config", flags.config,
                  "TOML file with values for options that are not given on the command line")
      ->type_name("FILE")
      ->configurable(false);
  command
      .add_option("--save-config", flags.save_config,
                  "Write all options to a TOML file; without FRAMES, then exit")
      ->type_name("FILE")
      ->configurable(false);
}

/// Turns tables on if a style of tables is given. A saved configuration has both keys; then `csv` decides.
void apply_csv_style(CLI::App& command, TrackFlags& flags) {
  const auto given = [&](const char* name) {
    const CLI::Option* option = command.get_option_no_throw(name);
    return option != nullptr && option->count() > 0;
  };
  const bool typed = given("--csv-style");
  if (!flags.config.empty()) read_config(command, flags.config);
  if (typed || (given("--csv-style") && !given("--csv"))) flags.job.csv = true;
}

/// Makes --save-config write the values of the job under the names that help texts show: an older name that
/// was given, --no-pictures, sets the value of another option.
void save_under_shown_names(CLI::App& command, const TrackJob& job) {
  for (const TrackOption& option : track_options()) {
    CLI::Option* const typed = command.get_option_no_throw("--" + option.name);
    if (typed == nullptr) continue;
    if (typed->get_group().empty())  // an older name, or one that is refused
      typed->configurable(false);
    else if (option.kind == OptionKind::choice && typed->count() == 0)
      typed->default_str(option.get(job));
  }
}

void print_was_complete(const TrackJob& job, const TrackSummary& summary) {
  const std::string number = summary.frames.empty() ? "" : std::to_string(summary.frames.size()) + " ";
  std::printf("%s holds all %sframes: ", printable(job.output.string()).c_str(), number.c_str());
  if (summary.frames_drawn == 0)
    std::printf("nothing is left to do.\n");
  else
    std::printf("pictures of %lld of them were drawn.\n", static_cast<long long>(summary.frames_drawn));
}

void run_track(CLI::App& command, TrackFlags& flags) {
  apply_run_options(command, flags);
  TrackJob& job = flags.job;
  if (!flags.save_config.empty() && job.frames.empty()) return;
  const Interruption interruption;
  const std::unique_ptr<ProcessGroup> group = ProcessGroup::join();
  if (group)
    group->share_machine(job.options);
  else
    hide_unused_gpus(job.options.device);
  const bool speaks = !group || group->leads();
  const TrackSummary summary = [&] {
    ProgressLine line(!flags.quiet && speaks);
    const auto show = [&](const Progress& progress) { line.show(progress); };
    return group ? track_together(job, *group, show, interruption.token())
                 : track_files(job, show, interruption.token());
  }();
  if (!speaks) return;
  if (summary.was_complete) {
    if (!flags.quiet) print_was_complete(job, summary);
    return;
  }
  if (group && summary.interrupted) {
    std::fprintf(stderr, "dic: Interrupted: continue with --resume, with any number of processes.\n");
    throw CLI::RuntimeError(interrupted);
  }
  print_warnings(job, summary);
  if (!flags.quiet) print_summary(job, summary, flags.verbose);
  const auto was_skipped = [](const FrameSummary& frame) { return !frame.error.empty(); };
  if (summary.interrupted) throw CLI::RuntimeError(interrupted);
  if (std::any_of(summary.frames.begin(), summary.frames.end(), was_skipped))
    throw CLI::RuntimeError(frames_lost);
}

}  // namespace

void add_run_options(CLI::App& command, TrackFlags& flags, const std::vector<std::string>& without) {
  const std::vector<std::string> groups = {"Input", "Measurement", "Output", "Running"};
  add_groups(command, flags.job, groups, OptionLevel::common, without);
  add_groups(command, flags.job, groups, OptionLevel::usual, without);
  add_program(command, flags);
  add_groups(command, flags.job, groups, OptionLevel::advanced, without);
  add_groups(command, flags.job, groups, OptionLevel::hidden, without);
  for (const char* name : {"--force", "--resume"})
    if (CLI::Option* option = command.get_option_no_throw(name)) option->configurable(false);
}

namespace {

/// Adds an option that is not shown, and whose values other than the default end with a reason.
void add_refused(CLI::App& command, const OneCameraOption& refused) {
  const TrackOption& option = track_option(refused.name);
  const auto refuse = [&refused, usual = option.get(TrackJob())](const std::string& value) {
    if (value != usual) throw CLI::ValidationError("--" + refused.name, refused.why);
  };
  command.option_defaults()->group("");
  if (option.kind == OptionKind::flag)
    command.add_flag_function(
        "--" + refused.name, [refuse](std::int64_t count) { refuse(count > 0 ? "true" : "false"); },
        option.help);
  else
    command.add_option_function<std::string>("--" + refused.name, refuse, option.help);
  command.get_option("--" + refused.name)->default_str("");
}

}  // namespace

void add_stereo_run_options(CLI::App& command, TrackFlags& flags) {
  std::vector<std::string> without;
  for (const OneCameraOption& option : one_camera_options()) without.push_back(option.name);
  add_run_options(command, flags, without);
  for (const OneCameraOption& option : one_camera_options()) add_refused(command, option);
}

void apply_run_options(CLI::App& command, TrackFlags& flags) {
  apply_csv_style(command, flags);
  TrackJob& job = flags.job;
  if (!flags.save_config.empty()) {
    refuse_input("--save-config", flags.save_config, {job.frames.begin(), job.frames.end()});
    save_under_shown_names(command, job);
    save_config(command, flags.save_config);
  }
  job.command = command_line();
  job.canvases = figures::canvases(figures::Format::png);
}

std::function<TrackOptions()> add_track_options(CLI::App& command) {
  auto job = std::make_shared<TrackJob>();
  for (const auto level : {OptionLevel::common, OptionLevel::usual, OptionLevel::advanced})
    add_groups(command, *job, {"Measurement", "Running"}, level);
  return [job] { return job->options; };
}

void add_track(CLI::App& app) {
  auto flags = std::make_shared<TrackFlags>();
  CLI::App* command =
      app.add_subcommand("track", "Measure displacement and strain fields in a sequence of images");
  command->option_defaults()->always_capture_default();
  add_frames(*command, *flags);
  add_run_options(*command, *flags);
  command->footer(kTrackExamples + guide("user-guide.md") +
                  " says how to choose subset, step and strain window.");
  command->callback([command, flags] { run_track(*command, *flags); });
}

}  // namespace dic::app
