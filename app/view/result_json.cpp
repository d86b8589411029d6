#include "view/result_json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/image_io.hpp>
#include <fstream>

namespace dic::app {
namespace {

static_assert(std::endian::native == std::endian::little, "the page reads little-endian numbers");

/// The arrays that the page gets; it computes the strain invariants.
constexpr auto& kPageArrays = kArraysOf<ArrayRole::displacement, ArrayRole::strain, ArrayRole::quality,
                                        ArrayRole::sigma, ArrayRole::status>;
/// Those of a result of two cameras.
constexpr auto& kStereoArrays =
    kArraysIf<[](const FieldArray& array) { return array.made_by == MadeBy::stereo; }>;
constexpr std::uintmax_t kLargestRunJson = 256 << 20;  ///< bytes; the file may be hostile

Json grid_json(const Grid& grid) {
  return {{"x0", grid.x0}, {"y0", grid.y0}, {"step", grid.step}, {"nx", grid.nx}, {"ny", grid.ny}};
}

Json status_names() {
  Json names = Json::array();
  for (const auto& entry : EnumNames<Status>::table) names.push_back(entry.name);
  return names;
}

/// The object of run.json beside the result; null if it cannot be read.
Json run_json_beside(const Result& result) {
  const std::filesystem::path path = result.path().parent_path() / "run.json";
  std::error_code unknown;
  if (const auto size = std::filesystem::file_size(path, unknown); unknown || size > kLargestRunJson)
    return nullptr;
  std::ifstream file(path);
  const Json run = Json::parse(file, nullptr, false);
  return run.is_object() ? run : Json(nullptr);
}

/// A member of an object, or null.
Json member(const Json& json, const char* name) {
  return json.is_object() && json.contains(name) ? json[name] : Json(nullptr);
}

std::string text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? std::string() : value.dump();
}

/// A number with its unit, four digits.
std::string number(double value, const std::string& unit = {}) {
  std::array<char, 48> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.4g", value);
  return buffer.data() + (unit.empty() ? "" : " " + unit);
}

Json counts_json(const Result& result, int frame) {
  std::array<std::int64_t, kStatusCount> counts{};
  const std::vector<std::uint8_t> status = result.values<std::uint8_t>("status", frame);
  for (std::size_t node = 0; node < status.size(); ++node)
    if (result.grid().inside[node] && status[node] < kStatusCount) ++counts[status[node]];
  Json json;
  for (int k = 0; k < kStatusCount; ++k) json[std::string(to_string(static_cast<Status>(k)))] = counts[k];
  return json;
}

/// Names of what the page shows of a frame of run.json.
std::vector<std::string> summary_names() {
  std::vector<std::string> names = {"counts"};
  for (const FieldArray& array : kArraysOf<ArrayRole::displacement, ArrayRole::strain, ArrayRole::quality>)
    names.push_back("mean_" + std::string(array.name));
  return names;
}

/// All frames of run.json, also those that could not be measured; without run.json, the frames of the result.
Json frames_of_run(const Result& result, const Json& run) {
  const Json listed = member(run, "frames");
  Json frames = Json::array();
  if (listed.is_array()) {
    for (const Json& frame : listed) {
      if (!frame.is_object()) continue;
      Json row{{"name", text(member(frame, "file"))}, {"error", text(member(frame, "error"))}};
      for (const std::string& name : summary_names()) row[name] = member(frame, name.c_str());
      frames.push_back(row);
    }
  } else {
    for (const std::string& name : result.frame_names()) frames.push_back({{"name", name}});
  }
  for (Json& frame : frames) {
    if (!member(frame, "counts").is_object()) continue;
    std::int64_t lost = 0;
    for (const auto& [status, count] : frame["counts"].items())
      if (status != "ok" && status != "outlier" && count.is_number_integer())
        lost += count.get<std::int64_t>();
    frame["points_lost"] = lost;
  }
  return frames;
}

std::string date_of(const Result& result, const Json& run) {
  if (const std::string date = text(member(run, "date")); !date.empty()) return date;
  std::error_code unknown;
  const auto written = std::filesystem::last_write_time(result.path(), unknown);
  if (unknown) return {};
  const auto time = std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(written));
  std::array<char, 64> buffer{};
  std::tm calendar{};
  gmtime_r(&time, &calendar);
  std::strftime(buffer.data(), buffer.size(), "%Y-%m-%d %H:%M UTC (of the file)", &calendar);
  return buffer.data();
}

std::string shape_function(const std::string& order) {
  if (order == "0") return "order 0, translation";
  if (order == "1") return "order 1, affine";
  if (order == "2") return "order 2, quadratic";
  return order == "auto" ? "order 1 or 2, point by point" : order;
}

std::string field_of_view(const ResultInfo& info) {
  std::string px = std::to_string(info.image.width) + " x " + std::to_string(info.image.height) + " px";
  if (!info.has_scale()) return px;
  return px + ", " + number(info.image.width * info.scale_mm_per_px) + " x " +
         number(info.image.height * info.scale_mm_per_px, "mm");
}

/// The settings by name; an empty object if they are not JSON.
Json settings_of(const ResultInfo& info) {
  const Json settings = Json::parse(info.settings_json, nullptr, false);
  return settings.is_object() ? settings : Json::object();
}

/// The distortions that a camera file removes from the results.
std::string lens_correction(const Json& camera) {
  if (!camera.is_object()) return "none";
  const Json lens = member(camera, "lens");
  if (!lens.is_object()) return "perspective";
  std::string words = member(camera, "plane").is_object() ? "perspective and distortion" : "distortion";
  for (const auto& [name, value] : lens.items())
    if (value.is_number() && value != 0) words += ", " + name + " " + number(value.get<double>());
  return words;
}

/// The statements that the iDICs Good Practices Guide asks of a report, in its order: hardware, measurement,
/// results.
Json practice(const Result& result, const TestDescription& description, const Json& run) {
  const ResultInfo& info = result.info();
  const Json settings = settings_of(info);
  const int step = result.grid().step;
  const double gauge = (info.strain.window - 1) * step + info.subset;
  Json rows = Json::array();
  const auto add = [&](const char* name, const std::string& value) {
    rows.push_back({name, value.empty() ? Json(nullptr) : Json(value)});
  };
  add("specimen", description.specimen);
  add("operator", description.operated_by);
  add("camera", description.camera);
  add("lens", description.lens);
  add("lighting", description.lighting);
  add("pattern", description.pattern);
  add("image and field of view", field_of_view(info));
  add("image scale", info.has_scale() ? number(info.scale_mm_per_px, "mm per px") + ", " +
                                            number(1 / info.scale_mm_per_px, "px per mm")
                                      : "none: lengths in px");
  add("reference", info.reference);
  add("frames measured", std::to_string(result.frame_count()));
  add("software", "dic " + info.version);
  add("date", date_of(result, run));
  add("host", text(member(run, "host")));
  add("device", text(member(run, "device")));
  add("subset", std::to_string(info.subset) + " px");
  add("step", std::to_string(step) + " px");
  add("shape function", shape_function(text(member(settings, "order"))));
  add("interpolant", text(member(settings, "interpolation")) + " B-spline");
  add("criterion", text(member(settings, "criterion")));
  add("reference strategy", text(member(settings, "reference_strategy")));
  const Json prefilter = member(member(run, "chosen"), "prefilter");
  add("image filter", prefilter.is_number() && prefilter.get<double>() > 0
                          ? "Gaussian, " + number(prefilter.get<double>(), "px")
                      : prefilter.is_number() ? "none"
                                              : text(member(settings, "prefilter")));
  add("outliers marked", member(settings, "outliers") == true ? "yes" : "no");
  add("filter of the displacement",
      member(settings, "global") == true ? "global step (augmented Lagrangian)" : "none");
  add("lens correction", lens_correction(member(settings, "camera")));
  add("strain measure", std::string(to_string(info.strain.measure)));
  add("strain window", std::to_string(info.strain.window) + " points, least-squares plane");
  add("virtual strain gauge",
      number(gauge, "px") + (info.has_scale() ? ", " + number(gauge * info.scale_mm_per_px, "mm") : ""));
  return rows;
}

/// Mean over the frames of run.json of a quantity that would be 0 at rest: its bias. NaN if it is not known.
double mean_over_frames(const Json& run, const std::string& name) {
  double sum = 0;
  int count = 0;
  const Json frames = member(run, "frames");
  if (frames.is_array())
    for (const Json& frame : frames)
      if (const Json mean = member(frame, name.c_str()); mean.is_number()) sum += mean.get<double>(), ++count;
  return sum / count;
}

Json noise_rows(const Json& run, const std::string& unit) {
  Json rows = Json::array();
  const Json floor = member(run, "noise_floor"), measured = member(floor, "measured");
  if (!floor.is_object()) return rows;
  const auto add = [&](const std::string& name, const Json& value, const std::string& in) {
    if (value.is_number()) rows.push_back({name, number(value.get<double>(), in)});
  };
  add("noise of the images", member(floor, "noise"), "grey levels");
  for (const FieldArray& array : kScatteredArrays) {
    const std::string quantity(array.name), in = array.is_length() ? unit : "";
    add(quantity + ", predicted standard deviation", member(floor, ("sigma_" + quantity).c_str()), in);
    add(quantity + ", measured at rest", member(measured, ("sd_" + quantity).c_str()), in);
    if (measured.is_object())
      add(quantity + ", bias measured at rest", mean_over_frames(run, "mean_" + quantity), in);
  }
  return rows;
}

template <typename T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

std::vector<std::string> page_arrays(const Result& result) {
  std::vector<std::string> names;
  for (const FieldArray& array : kPageArrays)
    if (result.has(array.name)) names.emplace_back(array.name);
  if (result.has("W"))  // one camera has positions, too
    for (const FieldArray& array : kStereoArrays)
      if (result.has(array.name)) names.emplace_back(array.name);
  return names;
}

Json frames_json(const Result& result, const std::vector<int>& numbers) {
  Json frames = Json::array();
  for (const int k : numbers)
    frames.push_back({{"name", result.frame_names()[k]},
                      {"number", result.frame_numbers()[k]},
                      {"time", result.times()[k]},
                      {"counts", counts_json(result, k)}});
  return frames;
}

bool is_growing(const Result& result) { return member(run_json_beside(result), "state") == "running"; }

Json result_json(const Result& result, const TestDescription& description, const std::vector<int>& frames) {
  const ResultInfo& info = result.info();
  const Json run = run_json_beside(result);
  Json json;
  json["title"] =
      description.title.empty() ? result.path().parent_path().filename().string() : description.title;
  json["note"] = description.note;
  json["grid"] = grid_json(result.grid());
  json["image"] = {{"width", info.image.width}, {"height", info.image.height}};
  json["frames"] = frames_json(result, frames);
  json["growing"] = member(run, "state") == "running";
  json["arrays"] = page_arrays(result);
  json["corrected"] = result.positions() != nullptr;
  json["status_names"] = status_names();
  json["length_unit"] = info.length_unit();
  json["scale_mm_per_px"] = info.scale_mm_per_px;
  json["time_unit"] = info.time_unit;
  json["settings"] = settings_of(info);
  json["command"] = info.command;
  json["practice"] = practice(result, description, run);
  json["noise_floor"] = noise_rows(run, info.length_unit());
  json["all_frames"] = frames_of_run(result, run);
  return json;
}

Json live_json(const LiveField& live, Size image) {
  const bool has_scale = live.scale > 0;
  Json counts = Json::object(), arrays = Json::array();
  for (const FieldArray& array : kPageArrays) arrays.push_back(array.name);
  if (!live.field.stereo.x.empty())
    for (const FieldArray& array : kStereoArrays) arrays.push_back(array.name);
  const auto by_status = live.field.counts();
  for (int k = 0; k < kStatusCount; ++k)
    counts[std::string(to_string(static_cast<Status>(k)))] = by_status[k];
  return {
      {"grid", grid_json(live.field.grid())},
      {"image", {{"width", image.width}, {"height", image.height}}},
      {"frames", {{{"name", live.name}, {"number", live.number}, {"time", live.number}, {"counts", counts}}}},
      {"arrays", arrays},
      {"status_names", status_names()},
      {"length_unit", has_scale ? "mm" : "px"},
      {"scale_mm_per_px", live.scale},
      {"time_unit", "1"}};
}

/// Null if the page does not get such an array of this field.
const FieldArray* page_array(const Field& field, const std::string& name) {
  if (const auto found = std::ranges::find(kPageArrays, name, &FieldArray::name); found != kPageArrays.end())
    return &*found;
  if (field.stereo.x.empty()) return nullptr;
  const auto found = std::ranges::find(kStereoArrays, name, &FieldArray::name);
  return found != kStereoArrays.end() ? &*found : nullptr;
}

std::string live_bytes(const LiveField& live, const std::string& array) {
  const FieldArray* const shown = page_array(live.field, array);
  if (!shown) throw UsageError("There is no array " + array + ".");
  const double factor = shown->is_length() && live.scale > 0 ? live.scale : 1;
  std::string bytes;
  visit_values(live.field, *shown, [&]<typename T>(const NodeValues<T>& values) {
    if constexpr (std::is_same_v<T, Status>) {
      bytes.assign(reinterpret_cast<const char*>(values.data()), values.size());
    } else {
      std::vector<float> scaled;
      for (const T value : values) scaled.push_back(static_cast<float>(value * factor));
      bytes = bytes_of(scaled);
    }
  });
  return bytes;
}

std::string field_bytes(const Result& result, const std::string& array, int frame) {
  if (array == "status") return bytes_of(result.values<std::uint8_t>(array, frame));
  return bytes_of(result.values<float>(array, frame));
}

}  // namespace dic::app
