#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/match.hpp>
#include <dic/visible_gpus.hpp>
#include <filesystem>
#include <iostream>
#include <optional>

#include "commands.hpp"
#include "interruption.hpp"
#include "match_images.hpp"
#include "match_report.hpp"

namespace dic::app {
namespace {

constexpr int kMaxPoses = 100000;  ///< largest number of rotations or scales: more is a typing error

constexpr const char* kMatchExamples =
    "Examples:\n"
    "  dic match bolt.png photo.png                              the best match, as a table\n"
    "  dic match bolt.png frames/*.tif --csv > places.csv        in every frame, a row each\n"
    "  dic match bolt.png clip.avi --track                       follow it from frame to frame\n"
    "  dic match frames/*.tif --template-rect 80,100,60,60 --track   cut out of the first frame\n"
    "  dic match bolt.png photo.png --max-matches 20 --draw found.png\n"
    "  dic match bolt.png photo.png --rotation -180:180          at any angle, which is measured\n"
    "  dic match --templates a.png b.png --images *.jpg --json   every template in every image\n"
    "\n";

constexpr const char* kHowToName =
    "Give TEMPLATE IMAGE...: the first is the template, all others are images; several templates go to "
    "--templates";

struct MatchCommand {
  std::vector<std::string> files;  ///< TEMPLATE IMAGE...
  std::vector<std::string> templates, images, masks, rects;
  std::string rotation, scales, draw;
  std::string image_mask;
  bool json = false, csv = false, track = false;
  std::optional<int> search;
  MatchOptions options;
};

/// "MIN:MAX" as a range; none if the text has another form.
std::optional<PoseRange> parse_interval(const std::string& text) {
  PoseRange range;
  int used = 0;
  if (std::sscanf(text.c_str(), "%lf:%lf%n", &range.min, &range.max, &used) != 2) return std::nullopt;
  return used == static_cast<int>(text.size()) ? std::optional(range) : std::nullopt;
}

/// "VALUE" or "MIN:MAX:STEP" as a list that includes both ends where the step meets MAX.
std::vector<double> parse_range(const std::string& name, const std::string& text) {
  double min = 0, max = 0, step = 0;
  int used = 0;
  const auto is_whole = [&] { return used == static_cast<int>(text.size()); };
  if (std::sscanf(text.c_str(), "%lf%n", &min, &used) == 1 && is_whole()) return {min};
  used = 0;
  if (std::sscanf(text.c_str(), "%lf:%lf:%lf%n", &min, &max, &step, &used) != 3 || !is_whole() ||
      !(step > 0) || !(max >= min) || !((max - min) / step < kMaxPoses))
    throw UsageError(name + " takes MIN:MAX, MIN:MAX:STEP with MIN <= MAX and STEP > 0, or one value; \"" +
                     text + "\" is none of them.");
  constexpr double kRounding = 1e-9;
  const int steps = static_cast<int>(std::floor((max - min) / step + kRounding));
  std::vector<double> values;
  for (int k = 0; k <= steps; ++k) values.push_back(min + k * step);
  return values;
}

/// Sorts what was typed without an option: the first is the template and all others are images. If an option
/// names templates, all are images; if an option names images, all are templates.
void sort_files(MatchCommand& command) {
  const bool has_templates = !command.templates.empty() || !command.rects.empty();
  const bool has_images = !command.images.empty();
  if (has_templates && has_images && !command.files.empty())
    throw UsageError(std::string(kHowToName) + ", and then all others are images.");
  if (has_templates && !has_images) {
    command.images = command.files;
  } else if (has_images && !has_templates) {
    command.templates = command.files;
  } else if (!has_templates && command.files.size() > 1) {
    command.templates = {command.files.front()};
    command.images.assign(command.files.begin() + 1, command.files.end());
  }
  if (command.images.empty() || (command.templates.empty() && command.rects.empty()))
    throw UsageError("Give at least one template and one image: dic match TEMPLATE IMAGE...");
}

void check_options(const MatchCommand& command) {
  if (command.json && command.csv) throw UsageError("Give --json or --csv, not both.");
  if (command.search && !command.track) throw UsageError("--search is the range of --track: add that.");
  if (command.track && (!command.image_mask.empty() || command.options.timeout_ms > 0))
    throw UsageError(
        "--track searches whole images without a time limit: leave out --image-mask and --timeout.");
}

/// Templates, and the names by which rows of the report call them.
struct Templates {
  std::vector<std::string> names;
  std::vector<Image> pixels;
};

Image cut(const Image& image, const std::string& text) {
  int x = 0, y = 0, width = 0, height = 0;
  char more = 0;
  if (std::sscanf(text.c_str(), "%d,%d,%d,%d%c", &x, &y, &width, &height, &more) != 4)
    throw UsageError("--template-rect takes four whole numbers x,y,width,height; got \"" + text + "\".");
  return part_of(image, {x, y, width, height}, "--template-rect " + text);
}

Image opaque_mask(Size size) {
  Image mask(size, ScalarType::u8);
  std::memset(mask.row<std::uint8_t>(0), 255, static_cast<std::size_t>(size.width) * size.height);
  return mask;
}

Templates read_templates(const MatchCommand& command, MatchImages& images) {
  Templates templates{command.templates, {}};
  for (const std::string& file : command.templates) templates.pixels.push_back(read_image(file));
  if (command.rects.empty()) return templates;
  const std::optional<Image> first = images.read(0);
  if (!first) throw FileError("'" + images.name(0) + "' has no frames: name another video.");
  for (const std::string& rect : command.rects) {
    templates.names.push_back(std::filesystem::path(images.name(0)).filename().string() + " at " + rect);
    templates.pixels.push_back(cut(*first, rect));
  }
  return templates;
}

/// The masks that were named, or those of the templates' transparent pixels; none if no template has any.
std::vector<Image> read_masks(const MatchCommand& command, const Templates& templates) {
  std::vector<Image> masks;
  for (const std::string& file : command.masks) masks.push_back(read_mask(file));
  if (!masks.empty()) return masks;
  for (const std::string& file : command.templates) masks.push_back(read_opacity(file));
  if (std::ranges::all_of(masks, &Image::empty)) return {};
  masks.resize(templates.pixels.size());
  for (std::size_t t = 0; t < masks.size(); ++t)
    if (masks[t].empty()) masks[t] = opaque_mask(templates.pixels[t].size());
  return masks;
}

std::vector<ImageView> views(const std::vector<Image>& images) { return {images.begin(), images.end()}; }

/// OUT.png for the only image; OUT_1.png, OUT_2.png, ... for several.
std::filesystem::path drawing_path(const MatchCommand& command, const MatchImages& images,
                                   std::size_t image) {
  std::filesystem::path path = command.draw;
  if (images.count() == 1) return path;
  return path.replace_filename(path.stem().string() + "_" + std::to_string(image + 1) +
                               path.extension().string());
}

/// Searches one image after the other; one image is in memory at a time, regardless of their number.
class MatchRun {
 public:
  MatchRun(const MatchCommand& command, MatchImages& images)
      : command_(command),
        images_(images),
        templates_(read_templates(command, images)),
        matcher_(views(templates_.pixels), command.options, views(read_masks(command, templates_))),
        tracker_(matcher_, command.search),
        image_mask_(command.image_mask.empty() ? Image() : read_image(command.image_mask)),
        report_(command.json  ? MatchFormat::json
                : command.csv ? MatchFormat::csv
                              : MatchFormat::table,
                command.track, command.options.rotation_range || command.options.scale_range) {}

  /// Images that cannot be read are named on stderr and skipped; if there is only one image, throws
  /// FileError.
  ExitCode execute(Interruption& interruption) {
    std::int64_t skipped = 0, searched = 0;
    for (std::int64_t k = 0;; ++k) {
      std::optional<Image> image;
      try {
        const Interruption::AtOnce at_once(interruption);
        image = images_.read(k);
      } catch (const FileError& e) {
        if (images_.count() == 1) throw;
        ++skipped;
        std::cerr << "dic: warning: skipped: " << printable(e.what()) << '\n';
        continue;
      }
      if (!image) break;
      search(k, *image, interruption.token());
      ++searched;
    }
    if (searched == 0) throw FileError("None of the images could be read: name other ones.");
    report_.finish(command_.options.threshold);
    return skipped > 0 ? frames_lost : done;
  }

 private:
  void search(std::int64_t k, const Image& image, std::stop_token stop) {
    std::vector<MatchRow> rows = rows_of(k, image, stop);
    std::vector<Match> found;
    for (MatchRow& row : rows) {
      row.frame = k;
      row.image = images_.name(k);
      if (row.match) found.push_back(*row.match);
    }
    if (!command_.draw.empty()) {
      const auto drawing = drawing_path(command_, images_, k);
      refuse_input("--draw", drawing, inputs());
      write_match_picture(drawing, image, found);
    }
    for (const MatchRow& row : rows) report_.add(row);
  }

  std::vector<MatchRow> rows_of(std::int64_t k, const Image& image, std::stop_token stop) {
    try {
      return command_.track ? follow(image, stop) : find(image, stop);
    } catch (const UsageError& e) {
      if (images_.count() == 1) throw;
      throw UsageError("'" + images_.name(k) + "': " + e.what() + " (" + kHowToName + ".)");
    }
  }

  std::vector<MatchRow> find(const Image& image, std::stop_token stop) {
    std::vector<MatchRow> rows;
    const std::vector<MatchResult> results = matcher_.find_each(image, std::move(stop), image_mask_);
    for (std::size_t t = 0; t < results.size(); ++t) {
      const MatchResult& result = results[t];
      if (result.timed_out)
        std::cerr << "dic: warning: the time was over before the search for " << templates_.names[t]
                  << " ended; what was found so far counts.\n";
      for (const Match& match : result.matches)
        rows.push_back({.template_name = templates_.names[t], .match = match, .score = match.score});
      if (result.matches.empty())
        rows.push_back({.template_name = templates_.names[t], .score = result.best_score});
    }
    return rows;
  }

  std::vector<MatchRow> follow(const Image& image, std::stop_token stop) {
    std::vector<MatchRow> rows;
    for (const TrackedMatch& track : tracker_.next(image, stop))
      rows.push_back({.template_name = templates_.names[track.template_index],
                      .match = track.match,
                      .score = track.match ? track.match->score : track.best_score,
                      .track = track});
    return rows;
  }

  std::vector<std::filesystem::path> inputs() const {
    std::vector<std::filesystem::path> files = images_.files();
    files.insert(files.end(), command_.templates.begin(), command_.templates.end());
    files.insert(files.end(), command_.masks.begin(), command_.masks.end());
    return files;
  }

  const MatchCommand& command_;
  MatchImages& images_;
  Templates templates_;
  Matcher matcher_;
  TemplateTracker tracker_;
  Image image_mask_;
  MatchReport report_;
};

/// A processor searches one template in one image of 4 megapixels in 0.05 s; a GPU needs 0.3 s to be ready.
constexpr std::int64_t kSearchesForGpu = 6;

bool is_worth_gpu(const MatchCommand& command, const MatchImages& images) {
  const std::optional<std::int64_t> count = images.count();
  const std::size_t searches = (command.templates.size() + command.rects.size()) *
                               command.options.rotations.size() * command.options.scales.size();
  return !count || *count * static_cast<std::int64_t>(searches) >= kSearchesForGpu;
}

void run_match(MatchCommand& command) {
  sort_files(command);
  check_options(command);
  command.options.rotation_range = parse_interval(command.rotation);
  command.options.scale_range = parse_interval(command.scales);
  if (!command.rotation.empty() && !command.options.rotation_range)
    command.options.rotations = parse_range("--rotation", command.rotation);
  if (!command.scales.empty() && !command.options.scale_range)
    command.options.scales = parse_range("--scales", command.scales);
  Interruption interruption;
  std::optional<Interruption::AtOnce> at_once(interruption);
  MatchImages images(command.images);
  if (command.options.device == "auto" && !is_worth_gpu(command, images)) command.options.device = "cpu";
  hide_unused_gpus(command.options.device);
  MatchRun run(command, images);
  at_once.reset();
  const ExitCode code = run.execute(interruption);
  if (code != done) throw CLI::RuntimeError(code);
}

void add_inputs(CLI::App& match, MatchCommand& command) {
  match.option_defaults()->group("Input");
  match
      .add_option("files", command.files,
                  "The template, then images: files, quoted globs, folders, or one video")
      ->type_name("TEMPLATE IMAGE");
  match
      .add_option("--templates", command.templates,
                  "Templates; files that are typed before this option are then images")
      ->type_name("FILE");
  match
      .add_option("--images", command.images,
                  "Images; files that are typed before this option are then templates")
      ->type_name("FILE");
  match
      .add_option("--template-rect", command.rects,
                  "Use this part of the first image, px, as the template; may be repeated")
      ->allow_extra_args(false)
      ->type_name("x,y,width,height");
  match
      .add_option("--mask", command.masks,
                  "Image of the template's size: pixels where it is zero do not count; repeat for each "
                  "template. Without "
                  "it, transparent pixels of a template do not count")
      ->allow_extra_args(false)
      ->type_name("FILE");
}

void add_search(CLI::App& match, MatchCommand& command) {
  MatchOptions& options = command.options;
  match.option_defaults()->group("Search");
  match.add_option("--max-matches", options.max_matches, "Largest number of matches per template and image")
      ->capture_default_str();
  match.add_option("--threshold", options.threshold, "Lowest score of a match, -1 to 1")
      ->capture_default_str();
  add_choice(
      match, "--method", options.method,
      "Score; zncc ignores brightness and contrast, ncc contrast; ssd compares grey levels as they are",
      {"zncc", "ncc", "ssd"});
  match
      .add_option(
          "--max-overlap", options.max_overlap,
          "Largest overlap of two matches of a template, 0 to 1; of two that overlap more, the better stays")
      ->capture_default_str();
  match
      .add_option(
          "--rotation", command.rotation,
          "Rotations of the template, degrees, positive from x towards y (clockwise on the screen); without "
          "STEP the angle is measured")
      ->type_name("MIN:MAX[:STEP]");
  match
      .add_option("--scales", command.scales,
                  "Scales of the template in the image, 1 = its own size; without STEP the scale is measured")
      ->type_name("MIN:MAX[:STEP]");
  match.add_flag("--affine", options.affine,
                 "With a range without STEP: also fit shear and aspect ratio, for parts seen at an angle");
  match.add_flag("--ignore-polarity", options.ignore_polarity,
                 "With a range without STEP: also find dark on bright for bright on dark");
  match
      .add_option(
          "--image-mask", command.image_mask,
          "With a range without STEP: image of the images' size; pixels where it is zero do not count")
      ->type_name("FILE");
  match
      .add_option(
          "--timeout", options.timeout_ms,
          "With a range without STEP: time to search one template in one image, ms, after which the matches "
          "found so far are printed; 0 = none")
      ->type_name("MS");
  match.add_flag("--track", command.track,
                 "Follow every match through the images, which are a sequence, and print how it moved");
  match
      .add_option(
          "--search", command.search,
          "Search range of --track around the last position, px; default: half a template, at least 16")
      ->type_name("PX");
}

void add_output(CLI::App& match, MatchCommand& command) {
  match.option_defaults()->group("Output");
  match
      .add_option("--draw", command.draw,
                  "Write the image with boxes and scores; for several images, OUT_1.png, OUT_2.png, ...")
      ->type_name("OUT.png");
  match.add_flag("--csv", command.csv, "Print CSV, image by image, instead of a table");
  match.add_flag("--json", command.json, "Print JSON, best score first, instead of a table");
}

void add_running(CLI::App& match, MatchOptions& options) {
  match.option_defaults()->group("Running");
  match.add_option("--device", options.device, "auto, cpu, cuda, cuda:N, opencl or opencl:N")
      ->capture_default_str();
  match.add_option("--threads", options.threads, "CPU threads; 0 = one per core")->capture_default_str();
}

}  // namespace

void add_match(CLI::App& app) {
  auto command = std::make_shared<MatchCommand>();
  CLI::App& match = *app.add_subcommand("match", "Find templates in images, to a fraction of a pixel");
  match.footer(kMatchExamples + guide("template-matching.md") + " says what the scores mean.");
  add_inputs(match, *command);
  add_search(match, *command);
  add_output(match, *command);
  add_running(match, command->options);
  match.callback([command] { run_match(*command); });
}

}  // namespace dic::app
