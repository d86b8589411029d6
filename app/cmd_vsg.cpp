#include <cstdio>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/vsg.hpp>
#include <filesystem>
#include <memory>

#include "commands.hpp"
#include "interruption.hpp"
#include "track_report.hpp"

namespace dic::app {
namespace {

constexpr const char* kVsgExamples =
    "Examples:\n"
    "  dic vsg start.tif loaded.tif                          predicted noise\n"
    "  dic vsg start.tif loaded.tif --at-rest start2.tif     also measured noise, from a second image at "
    "rest\n"
    "\n";

struct VsgFlags {
  VsgOptions options;
  std::string reference, loaded, at_rest, roi_mask, output = "dic_vsg";
  bool force = false, quiet = false;
};

void print_sweep(const std::vector<VsgResult>& results) {
  const std::string component(kStrainComponents.front().name);
  std::printf("%6s %6s %9s %15s %11s %11s %11s\n", "subset", "window", "VSG [px]", "resolution [px]",
              ("sigma " + component).c_str(), "at rest", ("peak " + component).c_str());
  for (const VsgResult& r : results) {
    std::printf("%6d %6d %9.0f %15.1f %11.2e ", r.subset, r.window, r.gauge, r.resolution, r.strain[0].sigma);
    if (r.strain[0].at_rest)
      std::printf("%11.2e ", *r.strain[0].at_rest);
    else
      std::printf("%11s ", "-");
    std::printf("%11.2e\n", r.strain[0].peak);
  }
}

void run_vsg(VsgFlags& flags) {
  const std::filesystem::path folder = flags.output;
  if (!flags.force && std::filesystem::exists(folder / "vsg.csv"))
    throw FileError("There is a result in " + flags.output + ": give another folder with -o, or --force.");
  const Interruption interruption;
  const Image reference = read_image(flags.reference), loaded = read_image(flags.loaded);
  const Image at_rest = flags.at_rest.empty() ? Image() : read_image(flags.at_rest);
  Roi roi;
  if (!flags.roi_mask.empty()) roi.mask = read_mask(flags.roi_mask);
  const std::vector<VsgResult> results = [&] {
    ProgressLine line(!flags.quiet);
    return sweep_vsg(
        flags.options, reference, loaded, at_rest, roi,
        [&](const Progress& progress) { line.show(progress); }, interruption.token());
  }();
  write_vsg(folder, results);
  if (flags.quiet) return;
  print_sweep(results);
  std::printf("\nvsg.csv, vsg.json, vsg_resolution.png and vsg_peak.png are in %s\n",
              printable(flags.output).c_str());
}

}  // namespace

void add_vsg(CLI::App& app) {
  auto flags = std::make_shared<VsgFlags>();
  CLI::App* command = app.add_subcommand(
      "vsg", "Compare strain resolution and spatial resolution over subsets and strain windows");
  command->option_defaults()->always_capture_default();
  TrackOptions& track = flags->options.track;
  command->add_option("REFERENCE", flags->reference, "Image of the specimen at rest")
      ->required()
      ->type_name("");
  command
      ->add_option(
          "LOADED", flags->loaded,
          "Image with the strain of interest, preferably the frame with the largest strain gradients")
      ->required()
      ->type_name("");
  command->add_option("--at-rest", flags->at_rest, "Second image at rest, from which noise is measured")
      ->type_name("FILE");
  command->add_option("--subsets", flags->options.subsets, "Sides of the subsets, px, odd")->delimiter(',');
  command->add_option("--windows", flags->options.windows, "Sides of the strain windows, points, odd")
      ->delimiter(',');
  command->add_option("--step", track.step, "Distance between points, px");
  command->add_option("--order", track.refine.order, "Shape function: 0 translation, 1 affine, 2 quadratic")
      ->check(CLI::IsMember({0, 1, 2}));
  add_choice(*command, "--strain-measure", track.strain.measure, "Measure of strain");
  command->add_option("--roi", flags->roi_mask, "Region of interest: image, inside where not 0")
      ->type_name("FILE");
  command->add_option("-o,--output", flags->output, "Folder of the results")->type_name("DIR");
  command->add_flag("--force", flags->force, "Replace an earlier sweep in that folder");
  command->add_option("--device", track.device, "auto, cpu, cuda, cuda:N")->type_name("DEVICE");
  command->add_option("--threads", track.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--quiet", flags->quiet, "Print errors and warnings only");
  command->footer(kVsgExamples + guide("user-guide.md") + " says how to choose subset and strain window.");
  command->callback([flags] { run_vsg(*flags); });
}

}  // namespace dic::app
