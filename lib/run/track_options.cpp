#include <algorithm>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/track_options.hpp>
#include <map>
#include <sstream>
#include <utility>

#include "core/number_text.hpp"
#include "run/frame_times.hpp"
#include "run/point_list.hpp"

namespace dic::run {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& what, const std::string& text) {
  throw UsageError(name + " needs " + what + ", got \"" + text + "\"");
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) parts.push_back(part);
  return parts;
}

// Lists the words of a choice: "first, previous or auto".
std::string listed(const std::vector<std::string>& words) {
  std::string text = words.front();
  for (std::size_t i = 1; i < words.size(); ++i) text += (i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

std::string text_of(int value) { return std::to_string(value); }
std::string text_of(double value) { return core::number_text(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }

bool flag_of(const std::string& name, const std::string& text) {
  if (text != "true" && text != "false") refuse(name, "true or false", text);
  return text == "true";
}

// The functions below make the options of each kind. `member` is a generic function from a job, constant or
// not, to the value in it.

template <typename Member>
TrackOption flag(const std::string& name, Member member, const std::string& help) {
  return {.name = name,
          .kind = OptionKind::flag,
          .help = help,
          .set = [=](TrackJob& job, const std::string& text) { member(job) = flag_of(name, text); },
          .get = [=](const TrackJob& job) { return text_of(member(job)); }};
}

/// A flag that is true where the member is false.
template <typename Member>
TrackOption negation(const std::string& name, Member member, const std::string& help) {
  return {.name = name,
          .kind = OptionKind::flag,
          .help = help,
          .set = [=](TrackJob& job, const std::string& text) { member(job) = !flag_of(name, text); },
          .get = [=](const TrackJob& job) { return text_of(!member(job)); }};
}

template <typename Number>
constexpr OptionKind kNumberKind = std::is_same_v<Number, int> ? OptionKind::integer : OptionKind::number;
template <typename Number>
constexpr const char* kNumberWords = std::is_same_v<Number, int> ? "a whole number" : "a number";

template <typename Member>
TrackOption number(const std::string& name, const std::string& placeholder, Member member,
                   const std::string& help) {
  using Number = std::remove_cvref_t<decltype(member(std::declval<TrackJob&>()))>;
  const auto set = [=](TrackJob& job, const std::string& text) {
    const std::optional<Number> value = core::parse_number<Number>(text);
    if (!value) refuse(name, kNumberWords<Number>, text);
    member(job) = *value;
  };
  return {.name = name,
          .kind = kNumberKind<Number>,
          .placeholder = placeholder,
          .help = help,
          .set = set,
          .get = [=](const TrackJob& job) { return text_of(member(job)); }};
}

/// A number of at least 0 in a std::optional, or a word for no value.
template <typename Member>
TrackOption number_or(const std::string& word, const std::string& name, const std::string& placeholder,
                      Member member, const std::string& help) {
  using Number = typename std::remove_cvref_t<decltype(member(std::declval<TrackJob&>()))>::value_type;
  const auto set = [=](TrackJob& job, const std::string& text) {
    const std::optional<Number> value = core::parse_number<Number>(text);
    if (text != word && !(value && *value >= 0))
      refuse(name, word + " or " + kNumberWords<Number> + " of at least 0", text);
    member(job) = value;
  };
  const auto get = [=](const TrackJob& job) { return member(job) ? text_of(*member(job)) : word; };
  return {.name = name,
          .kind = kNumberKind<Number>,
          .placeholder = placeholder,
          .choices = {word},
          .help = help,
          .set = set,
          .get = get};
}

template <typename Enum, typename Member>
TrackOption choice(const std::string& name, Member member, const std::string& help) {
  const std::vector<std::string> names = names_of<Enum>();
  const auto set = [=](TrackJob& job, const std::string& text) {
    const std::optional<Enum> value = from_name<Enum>(text);
    if (!value) refuse(name, listed(names), text);
    member(job) = *value;
  };
  return {.name = name,
          .kind = OptionKind::choice,
          .choices = names,
          .help = help,
          .set = set,
          .get = [=](const TrackJob& job) { return std::string(to_string(member(job))); }};
}

template <typename Member>
TrackOption text(const std::string& name, const std::string& placeholder, Member member,
                 const std::string& help, OptionKind kind = OptionKind::text) {
  return {.name = name,
          .kind = kind,
          .placeholder = placeholder,
          .help = help,
          .set = [=](TrackJob& job, const std::string& value) { member(job) = value; },
          .get = [=](const TrackJob& job) { return std::string(member(job)); }};
}

Roi::Rect rect_of(const std::string& name, const std::string& text) {
  std::vector<int> values;
  for (const std::string& part : split(text, ','))
    if (const auto value = core::parse_number<int>(part)) values.push_back(*value);
  if (values.size() != 4 || std::ranges::count(text, ',') != 3)
    refuse(name, "four whole numbers x,y,width,height", text);
  return {values[0], values[1], values[2], values[3]};
}

std::string rect_text(const std::optional<Roi::Rect>& rect) {
  if (!rect) return "";
  return text_of(rect->x) + "," + text_of(rect->y) + "," + text_of(rect->width) + "," + text_of(rect->height);
}

Roi::Polygon polygon_of(const std::string& name, const std::string& text) {
  Roi::Polygon polygon;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t comma = word.find(',');
    const auto x = core::parse_number<double>(word.substr(0, comma));
    const auto y =
        comma == std::string::npos ? std::nullopt : core::parse_number<double>(word.substr(comma + 1));
    if (!x || !y) refuse(name, "corners as \"x,y x,y ...\"", text);
    polygon.push_back({*x, *y});
  }
  return polygon;
}

std::string polygons_text(const std::vector<Roi::Polygon>& polygons) {
  std::string text;
  for (const Roi::Polygon& polygon : polygons) {
    if (&polygon != &polygons.front()) text += "; ";
    for (const Roi::Vertex& corner : polygon) {
      if (&corner != &polygon.front()) text += ' ';
      text.append(text_of(corner.x)).append(",").append(text_of(corner.y));
    }
  }
  return text;
}

template <typename Member>
TrackOption polygons(const std::string& name, Member member, const std::string& help) {
  const auto set = [=](TrackJob& job, const std::string& text) {
    std::vector<Roi::Polygon> read;
    for (const std::string& part : split(text, ';')) read.push_back(polygon_of(name, part));
    member(job) = read;
  };
  return {.name = name,
          .kind = OptionKind::polygons,
          .placeholder = "\"x,y x,y ...\"",
          .help = help,
          .set = set,
          .get = [=](const TrackJob& job) { return polygons_text(member(job)); }};
}

// Options whose values are of none of the kinds above.

TrackOption camera() {
  const auto set = [](TrackJob& job, const std::string& file) {
    job.options.camera.reset();
    if (!file.empty()) job.options.camera = read_camera(file);
    job.camera_file = file;
  };
  return {.name = "camera",
          .kind = OptionKind::file,
          .placeholder = "FILE",
          .help = "Camera file of dic calibrate: results without lens distortion and perspective",
          .set = set,
          .get = [](const TrackJob& job) { return job.camera_file; }};
}

/// Memory as "4G" or "800M": bytes, in whole MB.
TrackOption max_memory() {
  constexpr std::int64_t kMega = 1 << 20, kGiga = 1 << 30, kMost = std::int64_t{1} << 24;
  const auto set = [](TrackJob& job, const std::string& text) {
    const std::int64_t unit = text.ends_with('G') ? kGiga : text.ends_with('M') ? kMega : 0;
    const auto value = core::parse_number<int>(unit ? text.substr(0, text.size() - 1) : text);
    if (!value || *value < 0 || (unit == 0 && *value != 0) || *value > kMost)
      refuse("max-memory", "a size as 800M or 16G, or 0", text);
    job.max_memory = *value * unit;
  };
  const auto get = [](const TrackJob& job) -> std::string {
    const std::int64_t bytes = job.max_memory;
    if (bytes == 0) return "0";
    return bytes % kGiga == 0 ? std::to_string(bytes / kGiga) + "G" : std::to_string(bytes / kMega) + "M";
  };
  return {
      .name = "max-memory",
      .kind = OptionKind::text,
      .placeholder = "SIZE",
      .help =
          "Memory of the computer that the run may take, as 800M or 16G: images then lie in files beside the "
          "result and are read piece by piece; 0 = all",
      .set = set,
      .get = get};
}

TrackOption roi_mask() {
  const auto set = [](TrackJob& job, const std::string& file) {
    job.roi.mask = file.empty() ? Image() : read_mask(file);
    job.roi_file = file;
  };
  return {.name = "roi",
          .kind = OptionKind::file,
          .placeholder = "FILE",
          .help = "Region of interest: image of the reference's size, inside where not 0 and not transparent",
          .set = set,
          .get = [](const TrackJob& job) { return job.roi_file; }};
}

TrackOption roi_rect() {
  const auto set = [](TrackJob& job, const std::string& text) {
    job.roi.rect.reset();
    if (!text.empty()) job.roi.rect = rect_of("roi-rect", text);
  };
  return {.name = "roi-rect",
          .kind = OptionKind::rect,
          .placeholder = "x,y,width,height",
          .help = "Region of interest: rectangle in px",
          .set = set,
          .get = [](const TrackJob& job) { return rect_text(job.roi.rect); }};
}

TrackOption points() {
  return {
      .name = "points",
      .kind = OptionKind::file,
      .placeholder = "FILE",
      .help = "Measure only at the positions of a table with columns x and y, px: as few points as they need",
      .set =
          [](TrackJob& job, const std::string& file) {
            job.roi.points = file.empty() ? std::vector<Roi::Vertex>() : read_points(file);
            job.points_file = file;
          },
      .get = [](const TrackJob& job) { return job.points_file; }};
}

TrackOption order() {
  const std::vector<std::string> choices = {"0", "1", "2", "auto"};
  const auto set = [=](TrackJob& job, const std::string& text) {
    if (std::ranges::find(choices, text) == choices.end()) refuse("order", listed(choices), text);
    job.options.automatic_order = text == "auto";
    if (text != "auto") job.options.refine.order = text.front() - '0';
  };
  const auto get = [](const TrackJob& job) {
    return job.options.automatic_order ? "auto" : text_of(job.options.refine.order);
  };
  return {.name = "order",
          .kind = OptionKind::choice,
          .choices = choices,
          .help = "Shape function: 0 translation, 1 affine, 2 quadratic; auto: 1 or 2, chosen at each point",
          .set = set,
          .get = get};
}

TrackOption prefilter() {
  const auto set = [](TrackJob& job, const std::string& text) {
    std::optional<double> sigma = text == "none" ? 0 : core::parse_number<double>(text);
    if (!sigma && text != "auto") refuse("prefilter", "auto, none or a number of px", text);
    job.options.prefilter = sigma;
  };
  const auto get = [](const TrackJob& job) -> std::string {
    const std::optional<double>& sigma = job.options.prefilter;
    return !sigma ? "auto" : *sigma == 0 ? "none" : text_of(*sigma);
  };
  return {.name = "prefilter",
          .kind = OptionKind::number,
          .placeholder = "SIGMA",
          .choices = {"auto", "none"},
          .help = "Gaussian low-pass of all images, px; auto: where it lowers the predicted sigma",
          .set = set,
          .get = get};
}

TrackOption times() {
  return {.name = "times",
          .kind = OptionKind::file,
          .placeholder = "FILE",
          .help = "Text file with the time of each frame: s, or in the unit of its heading",
          .set =
              [](TrackJob& job, const std::string& file) {
                job.times = file.empty() ? std::vector<double>() : read_times(file);
                job.times_file = file;
              },
          .get = [](const TrackJob& job) { return job.times_file; }};
}

std::vector<TrackOption> input_options() {
  return {
      text(
          "reference", "FILE", [](auto& job) -> auto& { return job.reference; },
          "Reference image, instead of the first frame", OptionKind::file),
      camera(),
      roi_mask(),
      roi_rect(),
      polygons(
          "roi-polygon", [](auto& job) -> auto& { return job.roi.polygons; },
          "Region of interest: corners in px; may be repeated"),
      polygons(
          "roi-hole", [](auto& job) -> auto& { return job.roi.holes; },
          "Region of interest: polygon that is left out, corners in px; may be repeated"),
      points(),
      number(
          "fps", "FLOAT", [](auto& job) -> auto& { return job.fps; },
          "Frames per second, for times in seconds; 0 = frame rate of the video"),
      times(),
  };
}

/// Grid of points, subsets and search.
std::vector<TrackOption> subset_options() {
  return {
      number(
          "subset", "INT", [](auto& job) -> auto& { return job.options.refine.subset; },
          "Side of the square around a point, px, odd, 7 to 255"),
      number_or(
          "none", "sigma-target", "PX", [](auto& job) -> auto& { return job.options.sigma_target; },
          "Choose the smallest subset, 11 to 101 px, whose predicted sigma is below this, instead of "
          "--subset"),
      number(
          "step", "INT", [](auto& job) -> auto& { return job.options.step; }, "Distance between points, px"),
      order(),
      number_or(
          "auto", "search", "PX", [](auto& job) -> auto& { return job.options.search; },
          "Search range in px around the prediction"),
  };
}

/// Parts of the algorithm that refines a point and judges it.
std::vector<TrackOption> refinement_options() {
  return {
      choice<Interpolation>(
          "interpolation", [](auto& job) -> auto& { return job.options.refine.interpolation; },
          "B-spline of the current image"),
      choice<SubsetWeights>(
          "weights", [](auto& job) -> auto& { return job.options.refine.weights; },
          "Weights of the pixels of a subset: equal, or decreasing towards its edge"),
      prefilter(),
      flag(
          "anti-bias", [](auto& job) -> auto& { return job.options.anti_bias; },
          "Subtract the bias of the interpolation, as the reference's spectrum predicts it"),
      choice<ReferenceStrategy>(
          "reference-strategy", [](auto& job) -> auto& { return job.options.reference_strategy; },
          "Compare with the first frame, with the previous one, or with a later reference as soon as points "
          "get lost"),
      number(
          "max-iterations", "INT", [](auto& job) -> auto& { return job.options.refine.max_iterations; },
          "Largest number of Gauss-Newton iterations per point"),
      number(
          "tolerance", "FLOAT", [](auto& job) -> auto& { return job.options.refine.tolerance; },
          "Stop the refinement when no pixel of the subset is likely to move further than this, px"),
      number(
          "min-zncc", "FLOAT", [](auto& job) -> auto& { return job.options.refine.min_zncc; },
          "Correlation (ZNCC) below which a point gets the status low_correlation"),
      number_or(
          "auto", "noise", "GREY", [](auto& job) -> auto& { return job.options.noise; },
          "Noise of the images in grey levels, for sigma_u and sigma_v"),
      negation(
          "no-split", [](auto& job) -> auto& { return job.options.split; },
          "Do not measure points at cracks, edges and image borders with part of their subset"),
      negation(
          "no-outliers", [](auto& job) -> auto& { return job.options.outliers.enabled; },
          "Do not mark points that contradict their neighbours"),
  };
}

/// Steps after the refinement of the points: the common field and strain.
std::vector<TrackOption> field_options() {
  return {
      flag(
          "global", [](auto& job) -> auto& { return job.options.global.enabled; },
          "Fit one field to all subsets together (augmented Lagrangian DIC): less noise"),
      number_or(
          "auto", "global-resolution", "PX", [](auto& job) -> auto& { return job.options.global.resolution; },
          "Period of displacement of which --global keeps 90 % of the amplitude; auto: chosen from the noise "
          "at each point"),
      number(
          "strain-window", "INT", [](auto& job) -> auto& { return job.options.strain.window; },
          "Side of the strain window, points, odd"),
      choice<StrainMeasure>(
          "strain-measure", [](auto& job) -> auto& { return job.options.strain.measure; },
          "Measure of strain"),
  };
}

/// Older name of --pictures none.
TrackOption no_pictures() {
  const std::string name = "no-pictures";
  return {.name = name,
          .kind = OptionKind::flag,
          .help = "Draw no pictures",
          .set =
              [=](TrackJob& job, const std::string& text) {
                if (flag_of(name, text))
                  job.pictures = Pictures::none;
                else if (job.pictures == Pictures::none)
                  job.pictures = Pictures::some;
              },
          .get = [](const TrackJob& job) { return text_of(job.pictures == Pictures::none); }};
}

std::vector<TrackOption> output_options() {
  TrackOption output = text(
      "output", "DIR", [](auto& job) -> auto& { return job.output; }, "Folder of the results");
  return {
      output,
      flag(
          "force", [](auto& job) -> auto& { return job.force; }, "Replace an earlier result in that folder"),
      flag(
          "resume", [](auto& job) -> auto& { return job.resume; },
          "Continue a run that was stopped, with the result in that folder; start if there is none"),
      number(
          "scale", "FLOAT", [](auto& job) -> auto& { return job.scale_mm_per_px; },
          "mm per px: results in mm; 0 = px"),
      flag(
          "csv", [](auto& job) -> auto& { return job.csv; }, "Write a CSV table per frame"),
      choice<CsvStyle>(
          "csv-style", [](auto& job) -> auto& { return job.csv_style; },
          "Columns of the CSV tables; implies --csv"),
      flag(
          "noise-floor", [](auto& job) -> auto& { return job.noise_floor; },
          "For frames of a specimen at rest: report the measured noise beside the predicted one, and the "
          "noise of the "
          "images over grey level"),
      choice<Pictures>(
          "pictures", [](auto& job) -> auto& { return job.pictures; },
          "Draw the fields over some frames (every fifth, at most ten, and the last), over all, or over "
          "none"),
      no_pictures(),
  };
}

std::vector<TrackOption> running_options() {
  return {
      text(
          "device", "DEVICE", [](auto& job) -> auto& { return job.options.device; },
          "auto, cpu, cuda, cuda:N, cuda:0,2 (a list) or cuda:all"),
      number(
          "threads", "INT", [](auto& job) -> auto& { return job.options.threads; },
          "CPU threads; 0 = one per core"),
      number(
          "gpu-memory", "MB", [](auto& job) -> auto& { return job.options.gpu_memory; },
          "MB that images may take on a GPU, which measures larger ones in bands of rows; 0 = all memory"),
      max_memory(),
  };
}

/// The level of the options that are not `usual`.
OptionLevel level_of(const std::string& name) {
  static const std::map<std::string, OptionLevel> levels = [] {
    std::map<std::string, OptionLevel> all;
    for (const char* common : {"reference", "roi", "roi-rect", "subset", "step", "strain-window", "scale",
                               "output", "force", "csv", "device"})
      all[common] = OptionLevel::common;
    for (const char* advanced :
         {"interpolation", "weights", "prefilter", "anti-bias", "noise", "min-zncc", "max-iterations",
          "tolerance", "no-split", "no-outliers", "global-resolution", "gpu-memory", "max-memory"})
      all[advanced] = OptionLevel::advanced;
    all["no-pictures"] = OptionLevel::hidden;
    return all;
  }();
  const auto found = levels.find(name);
  return found == levels.end() ? OptionLevel::usual : found->second;
}

std::vector<TrackOption> all_options() {
  std::vector<TrackOption> all;
  const auto add = [&all](const std::string& group, std::vector<TrackOption> options) {
    for (TrackOption& option : options) {
      option.group = group;
      option.level = level_of(option.name);
      all.push_back(std::move(option));
    }
  };
  add("Input", input_options());
  add("Measurement", subset_options());
  add("Measurement", refinement_options());
  add("Measurement", field_options());
  add("Output", output_options());
  add("Running", running_options());
  return all;
}

}  // namespace
}  // namespace dic::run

namespace dic {

const std::vector<TrackOption>& track_options() {
  static const std::vector<TrackOption> options = run::all_options();
  return options;
}

const TrackOption& track_option(std::string_view name) {
  const std::vector<TrackOption>& options = track_options();
  const auto found = std::ranges::find(options, name, &TrackOption::name);
  if (found == options.end())
    throw UsageError("There is no option \"" + std::string(name) + "\": dic track --help lists all");
  return *found;
}

}  // namespace dic
