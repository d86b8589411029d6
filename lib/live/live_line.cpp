#include "live/live_line.hpp"

#include <cmath>
#include <dic/field_schema.hpp>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

namespace dic::live {
namespace {

using Json = nlohmann::ordered_json;

/// JSON of a number; null if it is NaN or infinite.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json drops_json(const LiveDrops& drops) {
  return {{"camera", drops.camera},
          {"network", drops.network},
          {"no_buffer", drops.no_buffer},
          {"measuring", drops.measuring},
          {"recorder", drops.recorder}};
}

Json point_json(const Field& field, const Position& at, double factor) {
  const PointValues point = probe_point(field, at);
  Json json = {{"x", at.x}, {"y", at.y}};
  for (std::size_t k = 0; k < kProbeArrays.size(); ++k)
    json[std::string(kProbeArrays[k].name)] =
        number(point.values[k] * (kProbeArrays[k].is_length() ? factor : 1));
  json["problem"] = text_or_null(point.problem);
  return json;
}

/// Adds three components: "X", "Y", "Z".
void add_vector(Json& json, const std::string& prefix, std::string_view names,
                const std::array<double, 3>& values) {
  for (std::size_t c = 0; c < values.size(); ++c) json[prefix + names[c]] = number(values[c]);
}

Json surface_point_json(const Field& field, const Position& at) {
  const SurfacePoint point = probe_surface_point(field, at);
  Json json = {{"x", at.x}, {"y", at.y}};
  add_vector(json, "", "XYZ", point.position);
  add_vector(json, "", "UVW", point.displacement);
  add_vector(json, "sigma_", "XYZ", point.sigma_position);
  add_vector(json, "sigma_", "UVW", point.sigma_displacement);
  json["epipolar"] = number(point.epipolar);
  json["problem"] = text_or_null(point.problem);
  return json;
}

Json extensometer_json(const ExtensometerValues& values, double factor) {
  return {{"gauge_length", number(values.gauge_length * factor)},
          {"change", number(values.change * factor)},
          {"strain", number(values.strain)},
          {"sigma_strain", number(values.sigma_strain)},
          {"problem", text_or_null(values.problem)}};
}

/// Means over the points with values, mm.
void add_surface_means(Json& json, const Field& field) {
  const StereoField& all = field.stereo;
  const std::array<std::pair<const char*, const NodeValues<double>*>, 6> arrays = {
      {{"X", &all.x}, {"Y", &all.y}, {"Z", &all.z}, {"U", &all.u}, {"V", &all.v}, {"W", &all.w}}};
  for (const auto& [name, values] : arrays) {
    double sum = 0, n = 0;
    for (std::size_t k = 0; k < values->size(); ++k)
      if (has_values(field.status[k])) sum += (*values)[k], n += 1;
    json[std::string("mean_") + name] = number(sum / n);
  }
}

void add_values(Json& json, const LineContext& context, const Field& field, const FrameSummary& summary) {
  Json& counts = json["counts"];
  for (int status = 0; status < kStatusCount; ++status)
    counts[std::string(to_string(static_cast<Status>(status)))] = summary.counts[status];
  json["mean_u"] = number(summary.mean_u);
  json["mean_v"] = number(summary.mean_v);
  if (context.is_surface) add_surface_means(json, field);
  for (std::size_t k = 0; k < kStrainComponents.size(); ++k) {
    json["mean_" + std::string(kStrainComponents[k].name)] = number(summary.strain[k].mean);
    json[std::string(sigma_of(kStrainComponents[k])->name)] = number(summary.strain[k].sigma);
  }
  const double factor = context.length_factor;
  json["points"] = Json::array();
  for (const Position& at : context.points)
    json["points"].push_back(context.is_surface ? surface_point_json(field, at)
                                                : point_json(field, at, factor));
  json["extensometers"] = Json::array();
  for (const auto& [a, b] : context.extensometers)
    json["extensometers"].push_back(context.is_surface
                                        ? extensometer_json(probe_surface_extensometer(field, a, b), 1)
                                        : extensometer_json(probe_extensometer(field, a, b), factor));
}

}  // namespace

std::string frame_line(const LineContext& context, const LiveFrame& frame, const FrameSummary& summary) {
  Json json;
  json["frame"] = frame.number;
  json["id"] = frame.id;
  json["file"] = frame.name;
  json["time"] = number(frame.time);
  json["host_time"] = number(frame.host_time);
  json["latency"] = number(frame.latency);
  json["error"] = text_or_null(frame.error);
  json["drops"] = drops_json(frame.drops);
  if (!frame.error.empty()) return line_of(json);
  add_values(json, context, *frame.field, summary);
  if (context.is_surface) json["epipolar_median"] = number(frame.epipolar_median);
  return line_of(json);
}

std::string note_line(const std::string& event, const std::string& text) {
  return line_of({{"event", event}, {"text", text}});
}

std::string start_line(const LineContext& context, const TrackSummary& track, const LiveSummary& live) {
  Json json = {{"event", "start"}, {"camera", live.camera}};
  Json& settings = json["settings"] = Json::object();
  for (const CameraSetting& setting : live.settings)
    settings[setting.name] = {{"asked", text_or_null(setting.asked)}, {"actual", setting.actual}};
  json["reference"] = track.reference;
  json["image"] = {track.image.width, track.image.height};
  json["points"] = track.points;
  json["length_unit"] = context.length_unit;
  if (context.is_surface) json["axes"] = to_string(context.axes);
  json["device"] = track.device;
  return line_of(json);
}

std::string end_line(const LiveSummary& summary) {
  return line_of({{"event", "end"},
                  {"text", text_or_null(summary.problem)},
                  {"produced", summary.produced},
                  {"results", summary.results},
                  {"drops", drops_json(summary.drops)},
                  {"recorded", summary.recorded}});
}

}  // namespace dic::live
