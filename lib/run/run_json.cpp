#include "run/run_json.hpp"

#include <cmath>
#include <dic/info.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "io/hdf5_superblock.hpp"
#include "run/json_text.hpp"
#include "run/strain_summary.hpp"

namespace dic::run {

namespace {

Json polygons_json(const std::vector<Roi::Polygon>& polygons) {
  Json all = Json::array();
  for (const Roi::Polygon& polygon : polygons) {
    Json corners = Json::array();
    for (const Roi::Vertex& vertex : polygon) corners.push_back({vertex.x, vertex.y});
    all.push_back(corners);
  }
  return all;
}

Json roi_json(const Roi& roi, const std::string& mask_file) {
  Json json;
  json["mask"] = !roi.mask.empty();
  json["mask_file"] = mask_file.empty() ? Json(nullptr) : Json(mask_file);
  json["rect"] = nullptr;
  if (const auto& rect = roi.rect) json["rect"] = {rect->x, rect->y, rect->width, rect->height};
  json["polygons"] = polygons_json(roi.polygons);
  json["holes"] = polygons_json(roi.holes);
  if (!roi.points.empty()) json["points"] = polygons_json({roi.points}).front();
  return json;
}

Json settings(const TrackJob& job) {
  const TrackOptions& options = job.options;
  Json json;
  json["frames"] = job.frames;
  json["folder"] = std::filesystem::current_path().string();  // folder that names of frames are relative to
  json["subset"] = options.refine.subset;
  json["step"] = options.step;
  json["order"] = options.automatic_order ? Json("auto") : Json(options.refine.order);
  json["search"] = options.search ? Json(*options.search) : Json("auto");
  json["criterion"] = "znssd";
  json["interpolation"] = to_string(options.refine.interpolation);
  json["weights"] = to_string(options.refine.weights);
  json["max_iterations"] = options.refine.max_iterations;
  json["tolerance"] = options.refine.tolerance;
  json["min_zncc"] = options.refine.min_zncc;
  json["reference_strategy"] = to_string(options.reference_strategy);
  json["noise"] = options.noise ? Json(*options.noise) : Json("auto");
  json["split"] = options.split;
  json["prefilter"] = options.prefilter ? Json(*options.prefilter) : Json("auto");
  json["anti_bias"] = options.anti_bias;
  json["sigma_target"] = options.sigma_target ? Json(*options.sigma_target) : Json(nullptr);
  json["outliers"] = options.outliers.enabled;
  json["global"] = options.global.enabled;
  json["global_resolution"] = options.global.resolution ? Json(*options.global.resolution) : Json("auto");
  json["strain_window"] = options.strain.window;
  json["strain_measure"] = to_string(options.strain.measure);
  json["camera"] = options.camera ? Json::parse(camera_json(options.camera->parameters())) : Json();
  json["noise_floor"] = job.noise_floor;
  json["scale"] = job.scale();
  json["fps"] = job.fps;
  json["times"] = job.times_file.empty() ? Json(nullptr) : Json(job.times_file);
  json["pictures"] = to_string(job.pictures);
  json["roi"] = roi_json(job.roi, job.roi_file);
  json["device"] = options.device;
  json["threads"] = options.threads;
  json["gpu_memory"] = options.gpu_memory;
  json["max_memory"] = job.max_memory;
  if (options.rows) json["rows"] = {options.rows->first, options.rows->count};
  return json;
}

Json counts_json(const std::array<std::int64_t, kStatusCount>& counts) {
  Json json;
  for (int status = 0; status < kStatusCount; ++status)
    json[std::string(to_string(static_cast<Status>(status)))] = counts[status];
  return json;
}

Json describe(const FrameSummary& frame) {
  Json json;
  json["file"] = frame.file;
  json["time"] = frame.time ? Json(*frame.time) : Json(nullptr);
  json["error"] = nullptr;
  if (!frame.error.empty()) {
    json["error"] = frame.error;
    return json;
  }
  json["counts"] = counts_json(frame.counts);
  json["mean_u"] = frame.mean_u;
  json["mean_v"] = frame.mean_v;
  json["mean_zncc"] = frame.mean_zncc;
  json["sd_u"] = frame.sd_u;
  json["sd_v"] = frame.sd_v;
  json["sd_zncc"] = frame.sd_zncc;
  json["noise"] = frame.noise;
  json["sigma_u"] = frame.sigma_u;
  json["sigma_v"] = frame.sigma_v;
  for (std::size_t k = 0; k < frame.strain.size(); ++k)
    describe_strain(json, kStrainComponents[k].name, frame.strain[k]);
  json["seconds"] = frame.seconds;
  return json;
}

FrameSummary::Strain::Extreme extreme_of(const Json& json) {
  if (json.is_null()) return {};
  return {number(json, "value"), number(json, "x"), number(json, "y")};
}

FrameSummary::Strain strain_of(const Json& json, const FieldArray& array) {
  const std::string component(array.name);
  FrameSummary::Strain strain;
  strain.mean = number(json, "mean_" + component);
  strain.sd = number(json, "sd_" + component);
  strain.sigma = number(json, "sigma_" + component);
  strain.min = extreme_of(json.at("min_" + component));
  strain.max = extreme_of(json.at("max_" + component));
  return strain;
}

Json seconds_json(const StageSeconds& seconds) {
  return {{"load", seconds.load},     {"prepare", seconds.prepare}, {"search", seconds.search},
          {"refine", seconds.refine}, {"strain", seconds.strain},   {"write", seconds.write},
          {"total", seconds.total}};
}

/// Describes the noise floor by means over the measured frames. With `is_at_rest` also the measured noise:
/// root mean squares of the frames' standard deviations.
Json noise_floor_json(const std::vector<FrameSummary>& frames, bool is_at_rest) {
  std::vector<const FrameSummary*> measured;
  for (const FrameSummary& frame : frames)
    if (frame.error.empty() && !std::isnan(frame.sigma_u))
      measured.push_back(&frame);  // NaN if no point was measured
  if (measured.empty()) return nullptr;
  const auto mean = [&](const auto& value) {
    double sum = 0;
    for (const FrameSummary* frame : measured) sum += value(*frame);
    return sum / static_cast<double>(measured.size());
  };
  Json json;
  json["noise"] = mean([](const FrameSummary& f) { return f.noise; });
  json["sigma_u"] = mean([](const FrameSummary& f) { return f.sigma_u; });
  json["sigma_v"] = mean([](const FrameSummary& f) { return f.sigma_v; });
  for (std::size_t k = 0; k < kStrainComponents.size(); ++k)
    json[std::string(sigma_of(kStrainComponents[k])->name)] =
        mean([k](const FrameSummary& f) { return f.strain[k].sigma; });
  if (!is_at_rest) return json;
  Json& floor = json["measured"];
  floor["sd_u"] = std::sqrt(mean([](const FrameSummary& f) { return f.sd_u * f.sd_u; }));
  floor["sd_v"] = std::sqrt(mean([](const FrameSummary& f) { return f.sd_v * f.sd_v; }));
  for (std::size_t k = 0; k < kStrainComponents.size(); ++k)
    floor["sd_" + std::string(kStrainComponents[k].name)] =
        std::sqrt(mean([k](const FrameSummary& f) { return f.strain[k].sd * f.strain[k].sd; }));
  Json& ratio = json["measured_to_predicted"];
  for (std::size_t k = 0; k < kScatteredArrays.size(); ++k)
    ratio[std::string(kScatteredArrays[k].name)] =
        std::sqrt(mean([k](const FrameSummary& f) { return f.scatter[k] * f.scatter[k]; }));
  return json;
}

/// Inserts the frames into the empty list at the end of the text one by one, since a tree of all frames
/// takes 5 KB each.
void insert_frames(std::string& text, const std::vector<FrameSummary>& frames) {
  if (frames.empty()) return;
  const std::string_view end = "]\n}";
  text.resize(text.size() - end.size());
  for (const FrameSummary& frame : frames) {
    if (&frame != &frames.front()) text += ',';
    std::istringstream lines(dump(describe(frame), 2));
    const std::size_t before = text.size();
    for (std::string line; std::getline(lines, line);) text.append("\n    ").append(line);
    if (&frame == &frames.front()) text.reserve(before + (text.size() - before) * frames.size() * 5 / 4);
  }
  text.append("\n  ").append(end);
}

/// Checksum of what a mask selects; null without a mask.
Json mask_checksum(ImageView mask) {
  if (mask.empty()) return nullptr;
  std::string selected = std::to_string(mask.width) + " ";
  visit_scalar(mask.type, [&]<typename T>(T) {
    for (int y = 0; y < mask.height; ++y)
      for (int x = 0; x < mask.width; ++x) selected += mask.row<T>(y)[x] != T(0) ? '1' : '0';
  });
  return hdf5::lookup3(selected);
}

}  // namespace

std::string settings_json(const TrackJob& job) { return dump(settings(job), -1); }

std::string resume_settings(const TrackJob& job) {
  Json json = settings(job);
  // Frames are compared one by one; the other settings do not change a value.
  for (const char* name : {"frames", "folder", "pictures", "threads", "gpu_memory", "max_memory"})
    json.erase(name);
  json["roi"]["mask"] = mask_checksum(job.roi.mask);
  json["csv"] = job.csv ? Json(to_string(job.csv_style)) : Json(nullptr);
  return dump(json, -1);
}

void note_pictures(const std::filesystem::path& run_json, Pictures pictures, std::int64_t frames_drawn) {
  Json json = Json::parse(std::ifstream(run_json, std::ios::binary), nullptr, false);
  if (!json.is_object()) return;
  json["settings"]["pictures"] = to_string(pictures);
  json["frames_drawn"] = frames_drawn;
  write_text_file(run_json, dump(json, 2) + "\n");
}

std::string differences(const std::string& one, const std::string& other) {
  const Json a = Json::parse(one, nullptr, false), b = Json::parse(other, nullptr, false);
  if (!a.is_object() || !b.is_object()) return "all of them";
  std::string names;
  const auto add = [&](const std::string& name) { names += (names.empty() ? "" : ", ") + name; };
  for (const auto& [name, value] : a.items())
    if (!b.contains(name) || b.at(name) != value) add(name);
  for (const auto& [name, value] : b.items())
    if (!a.contains(name)) add(name);
  return names;
}

std::string frame_json(const FrameSummary& frame) { return dump(describe(frame), -1); }

FrameSummary frame_from_json(const std::string& text) {
  const Json json = Json::parse(text);
  FrameSummary frame;
  frame.file = json.at("file");
  if (!json.at("time").is_null()) frame.time = json.at("time").get<double>();
  if (!json.at("error").is_null()) {
    frame.error = json.at("error");
    return frame;
  }
  for (int status = 0; status < kStatusCount; ++status)
    frame.counts[status] = json.at("counts").at(std::string(to_string(static_cast<Status>(status))));
  for (const auto& [name, value] :
       {std::pair("mean_u", &frame.mean_u), std::pair("mean_v", &frame.mean_v),
        std::pair("mean_zncc", &frame.mean_zncc), std::pair("sd_u", &frame.sd_u),
        std::pair("sd_v", &frame.sd_v), std::pair("sd_zncc", &frame.sd_zncc),
        std::pair("noise", &frame.noise), std::pair("sigma_u", &frame.sigma_u),
        std::pair("sigma_v", &frame.sigma_v), std::pair("seconds", &frame.seconds)})
    *value = number(json, name);
  for (std::size_t k = 0; k < frame.strain.size(); ++k)
    frame.strain[k] = strain_of(json, kStrainComponents[k]);
  return frame;
}

std::string run_json(const TrackJob& job, const std::string& settings, const TrackSummary& summary,
                     RunState state) {
  Json json;
  json["state"] = to_string(state);
  json["frames_done"] = std::ssize(summary.frames) + summary.frames_beyond;
  json["frames_given"] = summary.frames_given ? Json(*summary.frames_given) : Json(nullptr);
  json["version"] = version();
  json["command"] = job.command;
  json["date"] = summary.date;
  json["host"] = summary.host;
  json["settings"] = Json::parse(settings);
  json["chosen"] = {{"prefilter", summary.options.prefilter.value_or(0)},
                    {"subset", summary.options.refine.subset}};
  json["reference"] = summary.reference;
  json["image"] = {{"width", summary.image.width}, {"height", summary.image.height}};
  json["gauge_px"] = summary.gauge;
  json["device"] = summary.device;
  json["device_reason"] = summary.device_reason;
  json["kernels"] = summary.kernels;
  json["points"] = summary.points;
  json["length_unit"] = job.scale() > 0 ? "mm" : "px";
  json["frames_drawn"] = summary.frames_drawn;
  json["interrupted"] = summary.interrupted;
  json["seconds"] = seconds_json(summary.seconds);
  json["warnings"] = summary.warnings;
  json["noise_floor"] = noise_floor_json(summary.frames, job.noise_floor);
  if (job.noise_floor) {
    json["noise_curve"] = Json::array();
    for (const NoiseAtGrey& at : summary.noise_curve)
      json["noise_curve"].push_back({{"grey", at.grey}, {"noise", at.noise}, {"pixels", at.pixels}});
  }
  json["frames"] = Json::array();
  const bool is_over = state != RunState::running;
  std::string text = dump(json, 2);
  if (is_over) insert_frames(text, summary.frames);
  text += '\n';
  return text;
}

}  // namespace dic::run
