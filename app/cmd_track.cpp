#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/track.hpp>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "commands.hpp"
#include "config_file.hpp"
#include "interruption.hpp"
#include "track_report.hpp"

namespace dic::app {

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  dic track frames/*.png                              everything by default, into dic_out/\n"
    "  dic track clip.avi --subset 21 --step 3 --csv       finer, with tables\n"
    "  dic track loaded.tif --reference start.tif --roi-rect 100,80,400,300 --scale 0.02 -o result\n"
    "\n";

struct TrackFlags {
  TrackJob job;
  std::string roi_mask, camera, config, save_config;
  bool no_pictures = false, no_outliers = false, no_split = false, quiet = false, verbose = false;
};

[[noreturn]] void refuse(const std::string& option, const std::string& what, const std::string& text) {
  throw CLI::ValidationError(option, "needs " + what + ", got \"" + text + "\"");
}

// Numbers separated by commas; empty where the text is anything else.
std::vector<double> numbers(const std::string& text) {
  std::vector<double> values;
  for (const std::string& part : CLI::detail::split(text, ',')) {
    double value = 0;
    if (!CLI::detail::lexical_cast(part, value)) return {};
    values.push_back(value);
  }
  return values;
}

Roi::Rect parse_rect(const std::string& text) {
  Roi::Rect rect;
  char more = 0;
  if (std::sscanf(text.c_str(), "%d,%d,%d,%d%c", &rect.x, &rect.y, &rect.width, &rect.height, &more) != 4)
    refuse("--roi-rect", "four whole numbers x,y,width,height", text);
  return rect;
}

Roi::Polygon parse_polygon(const std::string& option, const std::string& text) {
  Roi::Polygon polygon;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::vector<double> xy = numbers(word);
    if (xy.size() != 2) refuse(option, "corners as \"x,y x,y ...\"", text);
    polygon.push_back({xy[0], xy[1]});
  }
  return polygon;
}

void add_polygons(CLI::App& command, const std::string& name, std::vector<Roi::Polygon>& polygons,
                  const std::string& description) {
  const auto set = [name, &polygons](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) polygons.push_back(parse_polygon(name, text));
  };
  command.add_option_function<std::vector<std::string>>(name, set, description)
      ->type_name("\"x,y x,y ...\"")
      ->allow_extra_args(false);
}

void add_input(CLI::App& command, TrackFlags& flags) {
  TrackJob& job = flags.job;
  command.option_defaults()->group("Input");
  command
      .add_option("FRAMES", job.frames,
                  "Images, quoted globs, folders, or one video; the first is the reference")
      ->type_name("")
      ->default_str("")
      ->configurable(false);
  command.add_option("--reference", job.reference, "Reference image, instead of the first frame")
      ->type_name("FILE");
  command
      .add_option("--camera", flags.camera,
                  "Camera file of dic calibrate: results without lens distortion and perspective")
      ->type_name("FILE");
  command
      .add_option("--roi", flags.roi_mask,
                  "Region of interest: image of the reference's size, inside where not 0")
      ->type_name("FILE");
  command
      .add_option_function<std::string>(
          "--roi-rect", [&job](const std::string& text) { job.roi.rect = parse_rect(text); },
          "Region of interest: rectangle in px")
      ->type_name("x,y,width,height");
  add_polygons(command, "--roi-polygon", job.roi.polygons,
               "Region of interest: corners in px; may be repeated");
  add_polygons(command, "--roi-hole", job.roi.holes, "Polygon that is left out; may be repeated");
}

/// A number, or "none".
void add_number_or_none(CLI::App& command, const std::string& name, const std::string& unit,
                        std::optional<double>& target, const std::string& description) {
  const auto set = [name, unit, &target](const std::string& text) {
    target.reset();
    if (text == "none") return;
    target = 0;
    if (!CLI::detail::lexical_cast(text, *target)) refuse(name, "none or a number of " + unit, text);
  };
  command.add_option_function<std::string>(name, set, description)
      ->type_name(unit + "|none")
      ->default_str("none");
}

void add_prefilter(CLI::App& command, std::optional<double>& prefilter) {
  const auto set = [&prefilter](const std::string& text) {
    prefilter.reset();
    if (text == "auto") return;
    prefilter = 0;
    if (text != "none" && !CLI::detail::lexical_cast(text, *prefilter))
      refuse("--prefilter", "auto, none or a number of px", text);
  };
  command
      .add_option_function<std::string>(
          "--prefilter", set,
          "Gaussian low-pass of all images, px; auto: where it lowers the predicted sigma")
      ->type_name("SIGMA|auto|none")
      ->default_str("auto");
}

void add_measurement(CLI::App& command, TrackFlags& flags) {
  TrackOptions& options = flags.job.options;
  RefineOptions& refine = options.refine;
  command.option_defaults()->group("Measurement");
  command.add_option("--subset", refine.subset, "Side of the square around a point, px, odd, 7 to 255");
  add_number_or_none(
      command, "--sigma-target", "PX", options.sigma_target,
      "The smallest subset, 11 to 101 px, whose predicted sigma is below this; then --subset is not used");
  command.add_option("--step", options.step, "Distance between points, px");
  const auto set_order = [&options](const std::string& text) {
    options.automatic_order = text == "auto";
    if (!options.automatic_order) options.refine.order = text.front() - '0';
  };
  command
      .add_option_function<std::string>(
          "--order", set_order,
          "Shape function: 0 translation, 1 affine, 2 quadratic; auto: 1 or 2, point by point")
      ->check(CLI::IsMember({"0", "1", "2", "auto"}))
      ->default_str("1");
  add_number_or_auto(command, "--search", "PX", options.search, "Search range in px around the prediction");
  add_choice(command, "--interpolation", refine.interpolation, {Interpolation::cubic, Interpolation::quintic},
             "B-spline of the current image");
  add_choice(command, "--weights", refine.weights, {SubsetWeights::uniform, SubsetWeights::gaussian},
             "How much a pixel of the subset counts: all the same, or less towards the edge");
  add_prefilter(command, options.prefilter);
  command.add_flag("--anti-bias", options.anti_bias,
                   "Subtract the bias of the interpolation, as the reference's spectrum predicts it");
  add_choice(command, "--reference-strategy", options.reference_strategy,
             {ReferenceStrategy::first, ReferenceStrategy::previous, ReferenceStrategy::automatic},
             "Compare with the first frame, with the previous one, or change over when points get lost");
  command.add_option("--max-iterations", refine.max_iterations,
                     "Gauss-Newton iterations before a point is given up");
  command.add_option("--tolerance", refine.tolerance, "Largest change in px at which the refinement stops");
  command.add_option("--min-zncc", refine.min_zncc, "Correlation below which a point is low_correlation");
  add_number_or_auto(command, "--noise", "GREY", options.noise,
                     "Noise of the images in grey levels, for sigma_u and sigma_v");
  command.add_flag("--no-split", flags.no_split,
                   "Do not measure points at cracks, edges and borders with a part of their subset");
  command.add_flag("--no-outliers", flags.no_outliers, "Do not mark points that contradict their neighbours");
  command.add_flag("--global", options.global.enabled,
                   "Fit one field to all subsets together (augmented Lagrangian DIC): less noise");
  add_number_or_auto(
      command, "--global-resolution", "PX", options.global.resolution,
      "Period of which --global keeps nine tenths; auto: what the noise allows, point by point");
  command.add_option("--strain-window", options.strain.window, "Side of the strain window, points, odd");
  add_choice(command, "--strain-measure", options.strain.measure,
             {StrainMeasure::green_lagrange, StrainMeasure::engineering, StrainMeasure::hencky,
              StrainMeasure::almansi},
             "Measure of strain");
}

/// The values of flags that say "no".
void apply_negations(TrackFlags& flags) {
  flags.job.options.outliers.enabled = !flags.no_outliers;
  flags.job.options.split = !flags.no_split;
}

void add_device(CLI::App& command, TrackOptions& options) {
  command.option_defaults()->group("Running");
  command.add_option("--device", options.device, "auto, cpu, cuda, cuda:N, cuda:0,2 (a list) or cuda:all")
      ->type_name("DEVICE");
  command.add_option("--threads", options.threads, "CPU threads; 0 = one per core")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--gpu-memory", options.gpu_memory,
                  "MB that the images may take on a GPU: larger ones are measured in bands; 0 = all")
      ->check(CLI::NonNegativeNumber)
      ->type_name("MB");
}

void add_running(CLI::App& command, TrackFlags& flags) {
  add_device(command, flags.job.options);
  command.add_flag("--quiet", flags.quiet, "Print errors and warnings only");
  command.add_flag("--verbose", flags.verbose, "Print every frame and the kernels that ran");
  command.add_option("--config", flags.config, "TOML file with values for options that are not typed")
      ->type_name("FILE")
      ->configurable(false);
  command
      .add_option("--save-config", flags.save_config,
                  "Write all options to a TOML file (without FRAMES: and end)")
      ->type_name("FILE")
      ->configurable(false);
}

void add_output(CLI::App& command, TrackFlags& flags) {
  TrackJob& job = flags.job;
  command.option_defaults()->group("Output");
  command.add_option("-o,--output", job.output, "Folder of the results")->type_name("DIR");
  command.add_flag("--force", job.force, "Replace an earlier result in that folder")->configurable(false);
  command.add_option("--scale", job.scale_mm_per_px, "mm per px: results in mm; 0 = px");
  command.add_flag("--csv", job.csv, "Write a CSV table per frame");
  add_choice(command, "--csv-style", job.csv_style,
             {CsvStyle::native, CsvStyle::dice, CsvStyle::vic, CsvStyle::opencorr},
             "Columns of the CSV tables");
  command.add_flag("--noise-floor", job.noise_floor,
                   "The frames show a specimen at rest: report the noise that they measure, beside the "
                   "predicted, and the noise of the images over grey");
  command.add_flag("--no-pictures", flags.no_pictures, "Write no pictures of the fields");
}

void run_track(CLI::App& command, TrackFlags& flags) {
  if (!flags.config.empty()) read_config(command, flags.config);
  if (!flags.save_config.empty()) save_config(command, flags.save_config);
  TrackJob& job = flags.job;
  if (!flags.save_config.empty() && job.frames.empty()) return;
  if (!flags.roi_mask.empty()) job.roi.mask = read_image(flags.roi_mask);
  if (!flags.camera.empty()) job.options.camera = read_camera(flags.camera);
  job.pictures = !flags.no_pictures;
  apply_negations(flags);
  job.command = command_line();

  const Interruption interruption;
  const TrackSummary summary = [&] {
    ProgressLine line(!flags.quiet);
    return track_files(
        job, [&](const Progress& progress) { line.show(progress); }, interruption.token());
  }();
  print_warnings(summary, job.noise_floor);
  if (!flags.quiet) print_summary(job, summary, flags.verbose);
  const auto was_skipped = [](const FrameSummary& frame) { return !frame.error.empty(); };
  if (summary.interrupted) throw CLI::RuntimeError(interrupted);
  if (std::any_of(summary.frames.begin(), summary.frames.end(), was_skipped))
    throw CLI::RuntimeError(frames_lost);
}

}  // namespace

std::function<TrackOptions()> add_track_options(CLI::App& command) {
  auto flags = std::make_shared<TrackFlags>();
  add_measurement(command, *flags);
  add_device(command, flags->job.options);
  return [flags] {
    apply_negations(*flags);
    return flags->job.options;
  };
}

void add_track(CLI::App& app) {
  auto flags = std::make_shared<TrackFlags>();
  CLI::App* command = app.add_subcommand("track", "Displacement and strain fields of a sequence of images");
  command->option_defaults()->always_capture_default();
  add_input(*command, *flags);
  add_measurement(*command, *flags);
  add_output(*command, *flags);
  add_running(*command, *flags);
  command->footer(kExamples + guide("user-guide.md") + " says how to choose subset, step and strain window.");
  command->callback([command, flags] { run_track(*command, *flags); });
}

}  // namespace dic::app
