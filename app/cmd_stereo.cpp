#include <cstdio>
#include <dic/stereo_files.hpp>
#include <dic/visible_gpus.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands.hpp"
#include "interruption.hpp"
#include "mpi/process_group.hpp"
#include "stereo_flags.hpp"
#include "stereo_report.hpp"
#include "track_flags.hpp"
#include "track_report.hpp"

namespace dic::app {

namespace {

constexpr const char* kStereoExamples =
    "Examples:\n"
    "  dic stereo --left L/*.tif --right R/*.tif --calibration stereo.json     into dic_out/\n"
    "  dic stereo --left cam0 --right cam1 --calibration rig.xml --subset 31 --step 8 --csv -o result\n"
    "\n";

struct StereoRunFlags {
  TrackFlags track;
  StereoFlags stereo;
  std::vector<std::string> right;
};

void add_images(CLI::App& command, StereoRunFlags& flags) {
  command.option_defaults()->group("Common options");
  const auto add = [&](const char* name, std::vector<std::string>& target, const char* help) {
    command.add_option(name, target, help)->type_name("IMAGES")->default_str("")->configurable(false);
  };
  add("--left", flags.track.job.frames,
      "Images of the left camera: files, quoted globs, folders, or one video; the first is the reference");
  add("--right", flags.right, "Images of the right camera, in the same order");
  add_calibration(command, flags.stereo);
}

void run_stereo(CLI::App& command, StereoRunFlags& flags) {
  apply_run_options(command, flags.track);
  if (!flags.track.save_config.empty() && flags.track.job.frames.empty()) return;
  StereoJob job = stereo_job(flags.track.job, flags.stereo);
  job.right = flags.right;
  const Interruption interruption;
  const std::unique_ptr<ProcessGroup> group = ProcessGroup::join();
  if (group)
    group->share_machine(job.track.options);
  else
    hide_unused_gpus(job.track.options.device);
  const bool speaks = !group || group->leads();
  const StereoSummary summary = [&] {
    ProgressLine line(!flags.track.quiet && speaks);
    const auto show = [&](const Progress& progress) { line.show(progress); };
    return group ? stereo_together(job, *group, show, interruption.token())
                 : stereo_files(job, show, interruption.token());
  }();
  if (!speaks) return;
  if (group && summary.interrupted) {
    std::fprintf(stderr, "dic: Interrupted: continue with --resume, with any number of processes.\n");
    throw CLI::RuntimeError(interrupted);
  }
  if (!summary.was_complete) print_warnings(summary);
  if (!flags.track.quiet) print_summary(job, summary, flags.track.verbose);
  if (summary.interrupted) throw CLI::RuntimeError(interrupted);
  if (!all_were_processed(summary)) throw CLI::RuntimeError(frames_lost);
}

}  // namespace

void add_stereo(CLI::App& app) {
  auto flags = std::make_shared<StereoRunFlags>();
  CLI::App* command =
      app.add_subcommand("stereo", "Measure shape, displacement and strain in 3-D with two cameras");
  command->option_defaults()->always_capture_default();
  add_images(*command, *flags);
  add_stereo_run_options(*command, flags->track);
  add_stereo_options(*command, flags->stereo.options, "Measurement");
  command->footer(kStereoExamples + guide("stereo.md") +
                  " leads from the calibration to the strain of a surface.");
  command->callback([command, flags] { run_stereo(*command, *flags); });
}

}  // namespace dic::app
