#include <cstdio>
#include <dic/calibrate.hpp>
#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "commands.hpp"

namespace dic::app {
namespace {

constexpr const char* kCalibrateExamples =
    "Examples:\n"
    "  dic calibrate lens/*.png --pattern checkerboard --columns 11 --rows 8 --square 5     lens\n"
    "  dic calibrate lens/*.png --plane flat.png --columns 11 --rows 8 --square 5           lens and "
    "specimen\n"
    "  dic calibrate --plane flat.png --columns 11 --rows 8 --square 5                      perspective, "
    "scale\n"
    "  dic calibrate --camera camera.json --plane flat.png --columns 11 --rows 8 --square 5 known lens\n"
    "  dic track frames/*.png --camera camera.json\n"
    "\n";

struct CalibrateFlags {
  CalibrationJob job;
  std::string camera, output = "camera.json", picture;
  bool force = false, quiet = false;
};

void add_options(CLI::App& command, CalibrateFlags& flags) {
  Target& target = flags.job.target;
  command
      .add_option("IMAGES", flags.job.images,
                  "Images of the tilted target for the lens: at least 3, better 15, which together cover the "
                  "image to its corners")
      ->type_name("")
      ->default_str("");
  add_choice(command, "--pattern", target.pattern,
             "Pattern of the target; acircles: every second row of circles is shifted");
  command
      .add_option("--columns", target.columns,
                  "Inner corners of a checkerboard, circles, or squares of a ChArUco board, in a row")
      ->required();
  command.add_option("--rows", target.rows, "Inner corners, circles or squares in a column")->required();
  command
      .add_option("--square", target.square_mm,
                  "Side of a square; circles: distance between neighbours; acircles: distance between rows")
      ->type_name("MM")
      ->required();
  command.add_option("--marker", target.marker_mm, "charuco: side of a marker")->type_name("MM");
  command.add_option("--dictionary", target.dictionary, "charuco: dictionary of the markers")
      ->type_name("NAME");
  add_choice(command, "--model", flags.job.model,
             "Parameters of the distortion; brown: k1, k2, k3, p1, p2; rational: for wide angles");
  command.add_option("--plane", flags.job.plane, "Image of the target on the surface of the specimen")
      ->type_name("FILE");
  command.add_option("--camera", flags.camera, "Camera file with the lens, instead of IMAGES")
      ->type_name("FILE");
  command.add_option("-o,--output", flags.output, "Camera file to write")->type_name("FILE");
  command
      .add_option("--picture", flags.picture,
                  "PNG of the residuals to write; by default it has the name of the camera file")
      ->type_name("FILE");
  command.add_flag("--force", flags.force, "Replace the camera file");
  command.add_flag("--quiet", flags.quiet, "Print errors and warnings only");
  command.add_option("--threads", flags.job.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
}

void print_image(const CalibrationImage& image) {
  if (image.problem.empty())
    std::printf("  %8.4f px  %4zu points  %s\n", image.rms, image.points.size(),
                printable(image.file).c_str());
  else
    std::printf("  not used  %s: %s\n", printable(image.file).c_str(), printable(image.problem).c_str());
}

void print_lens(const Calibration& c) {
  const Lens &lens = *c.camera.lens, &sd = *c.deviations;
  std::printf("Residuals of the lens (root mean square), model %s:\n",
              std::string(to_string(c.model)).c_str());
  for (const CalibrationImage& image : c.images) print_image(image);
  std::printf("  %8.4f px  all; the targets cover %.0f %% of the image\n", c.rms, 100 * c.coverage);
  const auto row = [](const char* name, double value, double deviation) {
    if (value != 0 || deviation != 0) std::printf("  %-3s %14.6g +- %.2g\n", name, value, deviation);
  };
  std::printf("Lens (focal lengths and principal point in px) and standard deviations:\n");
  row("fx", lens.fx, sd.fx), row("fy", lens.fy, sd.fy), row("cx", lens.cx, sd.cx), row("cy", lens.cy, sd.cy);
  row("k1", lens.k1, sd.k1), row("k2", lens.k2, sd.k2), row("k3", lens.k3, sd.k3);
  row("p1", lens.p1, sd.p1), row("p2", lens.p2, sd.p2);
  row("k4", lens.k4, sd.k4), row("k5", lens.k5, sd.k5), row("k6", lens.k6, sd.k6);
}

void print_plane(const Calibration& c) {
  std::printf("Plane of the specimen: %.6g mm per px in the middle, residuals %.4f px = %.4f mm",
              Camera(c.camera).scale_mm_per_px(), c.plane->image.rms, c.plane->rms_mm);
  if (c.camera.lens)
    std::printf(", tilted by %.2f degrees, %.1f mm away", c.plane->tilt_deg, c.plane->distance_mm);
  std::printf("\n");
}

void run_calibrate(CalibrateFlags& flags) {
  namespace fs = std::filesystem;
  if (!flags.force && fs::exists(flags.output))
    throw UsageError(flags.output + " exists already: choose another name with -o, or --force.");
  if (!flags.camera.empty()) flags.job.camera = read_camera(flags.camera).parameters();
  const Calibration calibration = calibrate(flags.job);
  const std::string picture =
      flags.picture.empty() ? fs::path(flags.output).replace_extension("png").string() : flags.picture;
  write_camera(flags.output, calibration.camera, calibration_json(calibration, command_line()));
  write_residual_picture(picture, calibration);
  for (const std::string& warning : calibration.warnings) std::cerr << "dic: " << printable(warning) << '\n';
  if (flags.quiet) return;
  if (calibration.deviations) print_lens(calibration);
  if (calibration.plane) print_plane(calibration);
  std::printf("Wrote %s and %s.\n", printable(flags.output).c_str(), printable(picture).c_str());
}

}  // namespace

void add_calibrate(CLI::App& app) {
  auto flags = std::make_shared<CalibrateFlags>();
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Find lens distortion, perspective and scale from images of a target, for dic track --camera");
  command->option_defaults()->always_capture_default();
  add_options(*command, *flags);
  command->footer(kCalibrateExamples + guide("user-guide.md") + " says how to take the images.");
  command->callback([flags] { run_calibrate(*flags); });
}

}  // namespace dic::app
