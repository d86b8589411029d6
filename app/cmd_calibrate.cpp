#include <charconv>
#include <cmath>
#include <cstdio>
#include <dic/calibrate.hpp>
#include <dic/camera.hpp>
#include <dic/camera_rig.hpp>
#include <dic/error.hpp>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string_view>

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
    "  dic calibrate --left l/*.png --right r/*.png --pattern rings --square 3.5            two cameras\n"
    "  dic calibrate --import vic3d.xml --image-size 2448x2048 -o stereo.json               of another "
    "program\n"
    "\n";

struct CalibrateFlags {
  CalibrationJob job;
  StereoCalibrationJob stereo;
  std::string camera, output, picture, imported, image_size;
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
  command
      .add_option("--left", flags.stereo.left,
                  "Images of the left of two cameras: at least 3, better 15, in which both see the target")
      ->type_name("FILE")
      ->default_str("");
  command.add_option("--right", flags.stereo.right, "Images of the right camera, in the same order")
      ->type_name("FILE")
      ->default_str("");
  add_choice(command, "--pattern", target.pattern,
             "Pattern of the target; acircles: every second row of circles is shifted; rings: dots, three of "
             "them with holes");
  command
      .add_option("--columns", target.columns,
                  "Inner corners of a checkerboard, circles, or squares of a ChArUco board, in a row; rings: "
                  "not needed")
      ->default_str("");
  command.add_option("--rows", target.rows, "Inner corners, circles or squares in a column")->default_str("");
  command
      .add_option("--square", target.square_mm,
                  "Side of a square; circles, rings: distance between neighbours; acircles: distance between "
                  "rows")
      ->type_name("MM")
      ->default_str("");
  command.add_option("--marker", target.marker_mm, "charuco: side of a marker")
      ->type_name("MM")
      ->default_str("");
  command.add_option("--dictionary", target.dictionary, "charuco: dictionary of the markers")
      ->type_name("NAME");
  add_choice(command, "--model", flags.job.model,
             "Parameters of the distortion; brown: k1, k2, k3, p1, p2; rational: for wide angles");
  command.add_option("--plane", flags.job.plane, "Image of the target on the surface of the specimen")
      ->type_name("FILE");
  command.add_option("--camera", flags.camera, "Camera file with the lens, instead of IMAGES")
      ->type_name("FILE");
  command
      .add_option(
          "--check-distance", flags.stereo.check_distance_mm,
          "Two cameras: measured distance of the outermost corners or circles of a row, to check --square")
      ->type_name("MM")
      ->default_str("");
  command
      .add_option(
          "--import", flags.imported,
          "Calibration of two cameras to convert: OpenCV, DICe, VIC-3D, MatchID, OpenCorr, pyvale, MATLAB")
      ->type_name("FILE");
  command
      .add_option("--image-size", flags.image_size,
                  "Size of the images, for --import of files that do not say it, such as 2448x2048")
      ->type_name("WxH");
  command
      .add_option("-o,--output", flags.output,
                  "File to write; by default camera.json, or stereo.json for two cameras")
      ->type_name("FILE");
  command
      .add_option("--picture", flags.picture,
                  "PNG of the residuals, or of epipolar lines, to write; by default it has the name of the "
                  "written file")
      ->type_name("FILE");
  command.add_flag("--force", flags.force, "Replace the written file");
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

void print_pair(const CalibrationPair& pair) {
  if (pair.problem.empty())
    std::printf("  %8.4f %8.4f %8.4f px  %4zu %4zu points  %s  %s\n", pair.left.rms, pair.right.rms,
                pair.epipolar_px, pair.left.points.size(), pair.right.points.size(),
                printable(pair.left.file).c_str(), printable(pair.right.file).c_str());
  else
    std::printf("  not used  %s, %s: %s\n", printable(pair.left.file).c_str(),
                printable(pair.right.file).c_str(), printable(pair.problem).c_str());
}

void print_rig(const CameraRig& rig) {
  const auto& [t, r] = std::pair(rig.cameras[1].translation_mm, rig.cameras[1].rotation);
  for (std::size_t k = 0; k < 2; ++k) {
    const Lens& lens = *rig.cameras[k].camera.lens;
    std::printf("%s camera: %dx%d px, fx %.6g, fy %.6g, cx %.6g, cy %.6g\n", k == 0 ? "Left" : "Right",
                rig.cameras[k].camera.image.width, rig.cameras[k].camera.image.height, lens.fx, lens.fy,
                lens.cx, lens.cy);
  }
  std::printf("Right from left: baseline %.6g mm, angle between the optical axes %.4f degrees\n",
              std::hypot(t[0], t[1], t[2]), std::acos(std::min(1.0, r[8])) * 180 / 3.14159265358979323846);
}

void print_stereo(const StereoCalibration& c) {
  std::printf("Residuals (root mean square) left, right, from epipolar lines; model %s:\n",
              std::string(to_string(c.model)).c_str());
  for (const CalibrationPair& pair : c.pairs) print_pair(pair);
  std::printf(
      "  %8.4f px  all; epipolar distance %.4f px; the targets cover %.0f %% and %.0f %% of the images\n",
      c.rms, c.rig.epipolar_px, 100 * c.coverage[0], 100 * c.coverage[1]);
  print_rig(c.rig);
  if (c.check_distance_mm > 0)
    std::printf("Checked distance: %.4f mm, measured %.4f mm\n", c.found_distance_mm, c.check_distance_mm);
}

void refuse_existing(const CalibrateFlags& flags) {
  if (!flags.force && std::filesystem::exists(flags.output))
    throw UsageError(flags.output + " exists already: choose another name with -o, or --force.");
}

/// "2448x2048"; nothing given is {0, 0}.
Size parse_image_size(const std::string& text) {
  const auto refuse = [&] { return UsageError("\"" + text + "\" is no size such as 2448x2048."); };
  if (text.empty()) return {};
  Size size;
  const char* const end = text.data() + text.size();
  const auto width = std::from_chars(text.data(), end, size.width);
  if (width.ec != std::errc() || width.ptr == end || *width.ptr != 'x') throw refuse();
  const auto height = std::from_chars(width.ptr + 1, end, size.height);
  const bool is_size = height.ec == std::errc() && height.ptr == end && size.width > 0 && size.height > 0;
  if (!is_size) throw refuse();
  return size;
}

void run_import(CalibrateFlags& flags) {
  if (flags.output.empty()) flags.output = "stereo.json";
  refuse_existing(flags);
  const CameraRig rig = read_camera_rig(flags.imported, parse_image_size(flags.image_size));
  write_camera_rig(flags.output, rig);
  if (flags.quiet) return;
  print_rig(rig);
  std::printf("Wrote %s.\n", printable(flags.output).c_str());
}

void calibrate_two_cameras(CalibrateFlags& flags) {
  if (flags.output.empty()) flags.output = "stereo.json";
  refuse_existing(flags);
  const bool is_mixed = !flags.job.images.empty() || !flags.job.plane.empty() || !flags.camera.empty();
  if (is_mixed)
    throw UsageError("--left and --right name all images: IMAGES, --plane and --camera are for one camera.");
  StereoCalibrationJob& job = flags.stereo;
  job.target = flags.job.target, job.model = flags.job.model, job.threads = flags.job.threads;
  const StereoCalibration calibration = calibrate_stereo(job);
  const std::string picture = flags.picture.empty()
                                  ? std::filesystem::path(flags.output).replace_extension("png").string()
                                  : flags.picture;
  write_camera_rig(flags.output, calibration.rig, calibration_json(calibration, command_line()));
  write_epipolar_picture(picture, calibration);
  for (const std::string& warning : calibration.warnings) std::cerr << "dic: " << printable(warning) << '\n';
  if (flags.quiet) return;
  print_stereo(calibration);
  std::printf("Wrote %s and %s.\n", printable(flags.output).c_str(), printable(picture).c_str());
}

/// Options that a target needs, named as the user would give them.
void require_target(const Target& target) {
  const bool is_counted = target.pattern == TargetPattern::rings;
  for (const auto& [name, is_missing] :
       {std::pair("--columns", target.columns == 0 && !is_counted),
        std::pair("--rows", target.rows == 0 && !is_counted), std::pair("--square", target.square_mm == 0)})
    if (is_missing) throw UsageError(std::string(name) + " is required: it describes the target.");
}

void run_calibrate(CalibrateFlags& flags) {
  namespace fs = std::filesystem;
  if (!flags.imported.empty()) return run_import(flags);
  require_target(flags.job.target);
  if (!flags.stereo.left.empty() || !flags.stereo.right.empty()) return calibrate_two_cameras(flags);
  if (flags.output.empty()) flags.output = "camera.json";
  refuse_existing(flags);
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
  CLI::App* command = app.add_subcommand("calibrate",
                                         "Find lens distortion, perspective and scale from images of a "
                                         "target, for dic track --camera, or the pose of "
                                         "two cameras");
  command->option_defaults()->always_capture_default();
  add_options(*command, *flags);
  command->footer(kCalibrateExamples + guide("user-guide.md") + " says how to take the images.");
  command->callback([flags] { run_calibrate(*flags); });
}

}  // namespace dic::app
