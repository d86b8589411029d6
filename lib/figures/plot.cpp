#include "figures/plot.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/image_io.hpp>
#include <dic/result.hpp>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <utility>

#include "core/parallel.hpp"
#include "draw/result_pictures.hpp"

namespace dic::figures {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr double kPointsPerInch = 72, kMmPerInch = 25.4;

Json settings_of(const Result& result) {
  Json settings = Json::parse(result.info().settings_json, nullptr, false);
  return settings.is_object() ? settings : Json::object();
}

std::optional<Camera> camera_of(const Json& settings) {
  const auto found = settings.find("camera");
  if (found == settings.end() || !found->is_object()) return {};
  return parse_camera(found->dump());
}

/// True if the settings have a region of interest; otherwise the only outline is the border of the image.
bool has_roi(const Json& settings) {
  const Json roi = settings.value("roi", Json::object());
  return roi.is_object() && (roi.value("mask", Json()) == true || roi.value("rect", Json()).is_array() ||
                             !roi.value("polygons", Json()).empty() || !roi.value("holes", Json()).empty());
}

/// The images of a result's frames, found by their names.
class FrameImages {
 public:
  FrameImages(const PlotJob& job, const Json& settings) {
    if (!job.background) return;
    try {
      source_ = open_frames(job.images.empty() ? recorded(settings) : job.images);
    } catch (const Error& error) {
      if (!job.images.empty()) throw;
      problem_ = error.what();
    }
  }

  bool reads_in_parallel() const { return !source_ || source_->reads_in_parallel(); }
  const std::string& problem() const { return problem_; }

  /// Indices in the source of the frames with these names, which have the same order; -1 = not found.
  std::vector<std::int64_t> find(const std::vector<std::string>& names) {
    std::vector<std::int64_t> places(names.size(), -1);
    if (!source_ || names.empty()) return places;
    const std::int64_t end = source_->count().value_or(1'000'000) + 1;
    std::size_t next = 0;
    try {
      for (std::int64_t i = 0; i < end && next < names.size(); ++i)
        if (source_->name(i) == names[next]) places[next++] = i;
    } catch (const std::out_of_range&) {  // no more files
    }
    if (next < names.size() && problem_.empty()) problem_ = "There is no image named " + names[next] + ".";
    return places;
  }

  /// Reads an image; empty if place < 0. Throws FileError if it cannot be read or its size differs.
  Image read(std::int64_t place, Size size) const {
    if (place < 0) return {};
    Image image = source_->read(place);
    if (image.width() != size.width || image.height() != size.height)
      throw FileError("The image " + source_->name(place) + " differs in size from those of the result.");
    return image;
  }

 private:
  /// Paths of the images as the run named them, relative to the folder in which it ran.
  static std::vector<std::string> recorded(const Json& settings) {
    const bool has_two_cameras = settings.contains("left");
    const auto frames = settings.find(has_two_cameras ? "left" : "frames"), folder = settings.find("folder");
    if (frames == settings.end() || !frames->is_array())
      throw FileError("The result does not say where its images are: name them with --images.");
    std::vector<std::string> names;
    for (const Json& name : *frames)
      if (name.is_string())
        names.push_back(
            (fs::path(folder != settings.end() && folder->is_string() ? folder->get<std::string>() : "") /
             name.get<std::string>())
                .string());
    return names;
  }

  std::unique_ptr<FrameSource> source_;
  std::string problem_;
};

/// Index of a frame by its number, or counted back from the last one if the number is negative.
int index_of(const Result& result, int number) {
  const std::vector<std::int64_t>& numbers = result.frame_numbers();
  const int count = result.frame_count();
  if (number < 0 && count + number >= 0) return count + number;
  const auto found = std::ranges::find(numbers, number);
  if (number > 0 && found != numbers.end()) return static_cast<int>(found - numbers.begin());
  throw UsageError("There is no frame " + std::to_string(number) + ": the result has " +
                   std::to_string(count) + " of the frames " + std::to_string(numbers.front()) + " to " +
                   std::to_string(numbers.back()) + ".");
}

std::vector<int> chosen_frames(const PlotJob& job, const Result& result) {
  const int count = result.frame_count();
  if (count == 0) throw UsageError("The result has no frame: there is nothing to draw.");
  std::set<int> chosen;
  if (job.all_frames)
    for (int k = 0; k < count; ++k) chosen.insert(k);
  for (const int number : job.frames) chosen.insert(index_of(result, number));
  if (chosen.empty()) chosen.insert(count - 1);
  return {chosen.begin(), chosen.end()};
}

std::string heading_of(const PlotJob& job, const Result& result, int frame) {
  if (job.heading == "none") return "";
  if (job.heading != "auto") return job.heading;
  char text[64];
  if (result.info().time_unit == "s")
    std::snprintf(text, sizeof text, ",  %.4g s", result.times()[frame]);
  else
    std::snprintf(text, sizeof text, ",  frame %lld", static_cast<long long>(result.frame_numbers()[frame]));
  return result.frame_names()[frame] + text;
}

double factor_of(StrainUnit unit) {
  switch (unit) {
    case StrainUnit::one:
      return 1;
    case StrainUnit::percent:
      return 100;
    case StrainUnit::microstrain:
      break;
  }
  return 1e6;
}

/// Unit of a quantity in the legend; empty for numbers without one.
std::string unit_of(const PlotJob& job, const std::string& name, const std::string& stored) {
  const FieldArray* array = find_field_array(name);
  if (!array || !array->is_strain() || job.strain_unit == StrainUnit::one) return stored;
  return job.strain_unit == StrainUnit::percent ? "%" : "µm/m";
}

draw::Quantity quantity(const PlotJob& job, const Result& result, const draw::DrawnFields& fields,
                        const std::string& name) {
  const FigureOptions known = draw::options_for(result, name);
  draw::Quantity quantity{name, job.figure};
  quantity.options.symbol = known.symbol;
  quantity.options.unit = unit_of(job, name, known.unit);
  quantity.options.mm_per_px = known.mm_per_px;
  quantity.options.width = job.width_mm / kMmPerInch * kPointsPerInch;
  quantity.options.font = job.font_pt;
  if (job.own_range) return quantity;
  RangeFinder finder;
  for (int frame = 0; frame < result.frame_count(); ++frame) finder.add(fields.values(name, frame));
  if (!quantity.options.range) quantity.options.range = finder.range();
  quantity.options.extremes = finder.extremes();
  return quantity;
}

bool is_status(const std::string& name) {
  const FieldArray* array = find_field_array(name);
  return array && array->role == ArrayRole::status;
}

void check(const PlotJob& job) {
  if (!job.fields.empty() && std::ranges::all_of(job.fields, is_status))
    throw UsageError("A status is a name, not a number that colours could show: see it with dic view.");
  const auto range = job.figure.range;
  if (range && !(std::isfinite(range->min) && std::isfinite(range->max) && range->min < range->max))
    throw UsageError("The range must be from a smaller to a larger number.");
  const auto in = [](double value, double low, double high) { return value >= low && value <= high; };
  if (!in(job.width_mm, 20, 1000)) throw UsageError("The width of a figure must be 20 to 1000 mm.");
  if (!in(job.font_pt, 3, 72)) throw UsageError("The size of the font must be 3 to 72 pt.");
  if (!in(job.dots_per_inch, 50, 1200)) throw UsageError("The resolution must be 50 to 1200 dots per inch.");
  if (!in(job.figure.opacity, 0, 1)) throw UsageError("The opacity must be 0 to 1.");
}

/// The quantities of a result that are drawn if none are named.
std::vector<std::string> usual_fields(const Result& result) {
  if (result.has("Z")) return {"Z", "U", "V", "W", "exx", "eyy", "exy"};  // two cameras
  std::vector<std::string> names;
  for (const FieldArray& array : kDrawnArrays) names.emplace_back(array.name);
  return names;
}

}  // namespace

PlotSummary plot(const PlotJob& asked) {
  check(asked);
  PlotJob job = asked;
  PlotSummary summary;
  std::ranges::copy_if(job.fields, std::back_inserter(summary.left_out), is_status);
  std::erase_if(job.fields, is_status);
  const Result result(job.result);
  if (asked.fields.empty()) job.fields = usual_fields(result);
  const Json settings = settings_of(result);
  const std::optional<Camera> camera = camera_of(settings);
  const std::vector<int> frames = chosen_frames(job, result);
  core::ThreadPool threads(job.threads);
  const draw::ResultFields fields(result, camera ? &*camera : nullptr, factor_of(job.strain_unit));
  std::vector<draw::Quantity> quantities;
  for (const std::string& name : job.fields) quantities.push_back(quantity(job, result, fields, name));

  for (draw::Quantity& drawn_quantity : quantities)
    drawn_quantity.options.outline = job.figure.outline && has_roi(settings);

  FrameImages images(job, settings);
  const std::vector<std::int64_t> places = images.find(result.frame_names());
  std::vector<draw::ResultPictures::Frame> drawn;
  for (const int frame : frames) {
    draw::ResultPictures::Frame& sheet = drawn.emplace_back();
    sheet.index = frame;
    sheet.heading = heading_of(job, result, frame);
    sheet.image = [&, place = places[frame]] { return images.read(place, result.info().image); };
    if (job.background && places[frame] < 0) ++summary.without_image;
    char number[32];
    std::snprintf(number, sizeof number, "%04lld", static_cast<long long>(result.frame_numbers()[frame]));
    for (const std::string& name : job.fields) {
      const fs::path file = job.output / (name + "_" + number + "." + std::string(to_string(job.format)));
      if (!job.force && fs::exists(file))
        throw FileError(file.string() +
                        " already exists: choose another folder with -o, or replace it with --force.");
      sheet.files.push_back(file);
      summary.files.push_back(file);
    }
  }
  summary.image_problem = images.problem();
  std::error_code failure;
  fs::create_directories(job.output, failure);
  if (failure)
    throw FileError("The folder " + job.output.string() + " cannot be made (" + failure.message() + ").");
  const draw::ResultPictures pictures(fields, std::move(quantities),
                                      canvases(job.format, job.dots_per_inch / kPointsPerInch, job.font));
  pictures.write(drawn, images.reads_in_parallel(), threads);
  return summary;
}

}  // namespace dic::figures
