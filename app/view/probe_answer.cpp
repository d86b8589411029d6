#include "view/probe_answer.hpp"

#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <span>
#include <string>
#include <vector>

namespace dic::app {
namespace {

/// Corners that each kind has; 0: three or more.
std::size_t corners_of(const std::string& kind) {
  if (kind == "point") return 1;
  if (kind == "extensometer" || kind == "line") return 2;
  if (kind == "area") return 0;
  throw UsageError("The page asked for an unknown kind of probe.");
}

std::vector<Position> positions_in(const Json& asked, const std::string& kind) {
  std::vector<Position> positions;
  for (const Json& at : asked.value("points", Json::array())) {
    if (!at.is_array() || at.size() != 2 || !at[0].is_number() || !at[1].is_number())
      throw UsageError("The places of a probe are x,y in px.");
    positions.push_back({at[0].get<double>(), at[1].get<double>()});
  }
  const std::size_t corners = corners_of(kind);
  if (corners == 0 ? positions.size() < 3 : positions.size() != corners)
    throw UsageError("The page asked for a probe with a wrong number of places.");
  return positions;
}

ProbeRequest request_of(const std::string& kind, const std::vector<Position>& at) {
  ProbeRequest request;
  if (kind == "point") request.points = {at[0]};
  if (kind == "extensometer") request.extensometers = {{at[0], at[1]}};
  if (kind == "line") request.lines = {{at[0], at[1]}};
  if (kind == "area") request.areas = {at};
  return request;
}

using Arrays = std::span<const FieldArray>;

Json json_of(const ProbeValues& values, Arrays arrays, const std::string& problem) {
  Json json{{"problem", problem}};
  for (const FieldArray& quantity : arrays) json[std::string(quantity.name)] = values[quantity.name];
  return json;
}

Json json_of(const ExtensometerValues& e) {
  return {{"gauge_length", e.gauge_length},
          {"change", e.change},
          {"strain", e.strain},
          {"sigma_change", e.sigma_change},
          {"sigma_strain", e.sigma_strain},
          {"problem", e.problem}};
}

Json mean_of(const std::vector<LinePoint>& line, Arrays arrays) {
  ProbeValues mean;
  for (const FieldArray& quantity : arrays) {
    double sum = 0, count = 0;
    for (const LinePoint& at : line) {
      const double value = at.point.values[quantity.name];
      if (!std::isnan(value)) sum += value, count += 1;
    }
    mean[quantity.name] = sum / count;  // NaN where there is none
  }
  return json_of(mean, arrays, std::isnan(mean["u"]) ? line.front().point.problem : "");
}

Json profile_json(const std::vector<LinePoint>& line, Arrays arrays) {
  Json list = Json::array();
  for (const LinePoint& at : line) {
    list.push_back(json_of(at.point.values, arrays, at.point.problem));
    list.back()["distance"] = at.distance;
  }
  return list;
}

}  // namespace

Json probe_answer(const Result& result, const Json& asked) {
  const std::string kind = asked.value("kind", "");
  ProbeRequest request = request_of(kind, positions_in(asked, kind));
  if (asked.contains("frame")) {
    if (kind != "line" || !asked["frame"].is_number_integer())
      throw UsageError("The page asked for the profile of something that is no line.");
    request.frames = {asked["frame"].get<int>()};
    const ProbeHistory history = probe_result(result, request);
    return {{"points", profile_json(history.frames.front().lines.front(), history.arrays())}};
  }
  Json frames = Json::array();
  const ProbeHistory history = probe_result(result, request);
  const Arrays arrays = history.arrays();
  for (const ProbeFrame& frame : history.frames) {
    for (const PointValues& point : frame.points)
      frames.push_back(json_of(point.values, arrays, point.problem));
    for (const ExtensometerValues& e : frame.extensometers) frames.push_back(json_of(e));
    for (const auto& line : frame.lines) frames.push_back(mean_of(line, arrays));
    for (const AreaValues& area : frame.areas)
      frames.push_back(json_of(area.mean, arrays, area.points > 0 ? "" : "no point of the area is ok"));
  }
  return {{"frames", frames}};
}

}  // namespace dic::app
