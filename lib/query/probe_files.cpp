#include <charconv>
#include <cmath>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <dic/probe.hpp>
#include <nlohmann/json.hpp>
#include <system_error>

#include "query/probe_picture.hpp"
#include "query/table.hpp"

namespace dic {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using query::Table;

std::string header(std::string_view name, const std::string& unit) {
  return std::string(name) + (unit.empty() || unit == "1" ? "" : " [" + unit + "]");
}

std::string header_of(const ProbeHistory& history, const FieldArray& quantity) {
  return header(quantity.name, quantity.is_length() ? history.length_unit : "");
}

std::string name_of(char kind, std::size_t index) { return kind + std::to_string(index + 1) + " "; }

void write_frame_header(Table& table, const ProbeHistory& history) {
  if (history.time_unit == "s") table.cell("time [s]");
  table.cell("frame");
  table.cell("file");
  if (!history.loads.empty()) table.cell(header(history.load_name, history.load_unit));
  if (!history.stresses().empty()) table.cell("stress [MPa]");
}

void write_frame(Table& table, const ProbeHistory& history, std::size_t f) {
  if (history.time_unit == "s") table.cell(history.frames[f].time);
  table.cell(history.frames[f].number);
  table.cell(history.frames[f].file);
  if (!history.loads.empty()) table.cell(history.loads[f]);
  if (const auto stresses = history.stresses(); !stresses.empty()) table.cell(stresses[f]);
}

/// True if a table has the scatter of a quantity: that of a predicted standard deviation says nothing.
bool has_sd(const FieldArray& quantity) { return quantity.role != ArrayRole::sigma; }

/// A row per frame; P1, P2, ... points, E extensometers, A areas.
void write_history(const fs::path& path, const ProbeHistory& history) {
  Table table(path);
  write_frame_header(table, history);
  const std::string& unit = history.length_unit;
  for (std::size_t k = 0; k < history.request.points.size(); ++k) {
    for (const FieldArray& quantity : kProbeArrays)
      table.cell(name_of('P', k) + header_of(history, quantity));
    table.cell(name_of('P', k) + "problem");
  }
  for (std::size_t k = 0; k < history.request.extensometers.size(); ++k)
    for (const std::string& name :
         {header("gauge length", unit), header("change", unit), std::string("strain"),
          header("sigma_change", unit), std::string("sigma_strain"), std::string("problem")})
      table.cell(name_of('E', k) + name);
  for (std::size_t k = 0; k < history.request.areas.size(); ++k) {
    for (const char* name : {"nodes", "points", "strain points"}) table.cell(name_of('A', k) + name);
    for (const FieldArray& quantity : kProbeArrays) {
      table.cell(name_of('A', k) + "mean " + header_of(history, quantity));
      if (has_sd(quantity)) table.cell(name_of('A', k) + "sd " + header_of(history, quantity));
    }
  }
  table.end_row();
  for (std::size_t f = 0; f < history.frames.size(); ++f) {
    const ProbeFrame& frame = history.frames[f];
    write_frame(table, history, f);
    for (const PointValues& point : frame.points) {
      for (const FieldArray& quantity : kProbeArrays) table.cell(point.values[quantity.name]);
      table.cell(point.problem);
    }
    for (const ExtensometerValues& e : frame.extensometers) {
      for (const double value : {e.gauge_length, e.change, e.strain, e.sigma_change, e.sigma_strain})
        table.cell(value);
      table.cell(e.problem);
    }
    for (const AreaValues& area : frame.areas) {
      for (const std::int64_t count : {area.nodes, area.points, area.strain_points}) table.cell(count);
      for (const FieldArray& quantity : kProbeArrays) {
        table.cell(area.mean[quantity.name]);
        if (has_sd(quantity)) table.cell(area.sd[quantity.name]);
      }
    }
    table.end_row();
  }
  table.commit();
}

void write_lines(const fs::path& path, const ProbeHistory& history) {
  Table table(path);
  table.cell("line");
  write_frame_header(table, history);
  for (const std::string& name :
       {header("distance", history.length_unit), std::string("x [px]"), std::string("y [px]")})
    table.cell(name);
  for (const FieldArray& quantity : kProbeArrays) table.cell(header_of(history, quantity));
  table.cell("problem");
  table.end_row();
  for (std::size_t line = 0; line < history.request.lines.size(); ++line)
    for (std::size_t f = 0; f < history.frames.size(); ++f)
      for (const LinePoint& point : history.frames[f].lines[line]) {
        table.cell(static_cast<std::int64_t>(line) + 1);
        write_frame(table, history, f);
        for (const double value : {point.distance, point.at.x, point.at.y}) table.cell(value);
        for (const FieldArray& quantity : kProbeArrays) table.cell(point.point.values[quantity.name]);
        table.cell(point.point.problem);
        table.end_row();
      }
  table.commit();
}

Json values_json(const ProbeValues& values) {
  Json json;
  for (const FieldArray& quantity : kProbeArrays) json[std::string(quantity.name)] = values[quantity.name];
  return json;
}

Json point_json(const PointValues& point) {
  Json json = values_json(point.values);
  json["problem"] = point.problem.empty() ? Json() : Json(point.problem);
  return json;
}

Json extensometer_json(const ExtensometerValues& e) {
  return {{"gauge_length", e.gauge_length},
          {"change", e.change},
          {"strain", e.strain},
          {"sigma_change", e.sigma_change},
          {"sigma_strain", e.sigma_strain},
          {"problem", e.problem.empty() ? Json() : Json(e.problem)}};
}

Json area_json(const AreaValues& area) {
  return {{"nodes", area.nodes},
          {"points", area.points},
          {"strain_points", area.strain_points},
          {"mean", values_json(area.mean)},
          {"sd", values_json(area.sd)}};
}

Json line_json(const std::vector<LinePoint>& line) {
  Json all = Json::array();
  for (const LinePoint& point : line) {
    Json json = {{"distance", point.distance}, {"x", point.at.x}, {"y", point.at.y}};
    json.update(point_json(point.point));
    all.push_back(std::move(json));
  }
  return all;
}

template <typename Values, typename ToJson>
Json list(const std::vector<Values>& all, const ToJson& to_json) {
  Json json = Json::array();
  for (const Values& values : all) json.push_back(to_json(values));
  return json;
}

Json positions_json(std::span<const Position> positions) {
  Json json = Json::array();
  for (const Position& at : positions) json.push_back({at.x, at.y});
  return json;
}

std::string probe_json(const ProbeHistory& history) {
  const auto positions = [](const auto& places) { return positions_json(places); };
  Json json;
  json["length_unit"] = history.length_unit;
  json["time_unit"] = history.time_unit;
  json["strain_measure"] = history.strain_measure;
  json["points"] = positions_json(history.request.points);
  json["extensometers"] = list(history.request.extensometers, positions);
  json["lines"] = list(history.request.lines, positions);
  json["areas"] = list(history.request.areas, positions);
  json["load"] = history.loads.empty() ? Json()
                                       : Json{{"name", history.load_name},
                                              {"unit", history.load_unit},
                                              {"section_mm2", history.section_mm2}};
  const std::vector<double> stresses = history.stresses();
  json["frames"] = Json::array();
  for (std::size_t f = 0; f < history.frames.size(); ++f) {
    const ProbeFrame& frame = history.frames[f];
    Json entry = {{"file", frame.file}, {"frame", frame.number}, {"time", frame.time}};
    if (!history.loads.empty()) entry["load"] = history.loads[f];
    if (!stresses.empty()) entry["stress"] = stresses[f];
    entry["points"] = list(frame.points, point_json);
    entry["extensometers"] = list(frame.extensometers, extensometer_json);
    entry["lines"] = list(frame.lines, line_json);
    entry["areas"] = list(frame.areas, area_json);
    json["frames"].push_back(std::move(entry));
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::vector<std::string> write_probe(const fs::path& folder, const ProbeHistory& history,
                                     const CanvasFactory& canvases) {
  std::error_code failure;
  fs::create_directories(folder, failure);
  if (failure) throw FileError("Cannot make the folder " + folder.string() + " (" + failure.message() + ").");
  std::vector<std::string> names;
  const ProbeRequest& asked = history.request;
  if (!asked.points.empty() || !asked.extensometers.empty() || !asked.areas.empty()) {
    write_history(folder / "history.csv", history);
    names.emplace_back("history.csv");
  }
  if (!asked.lines.empty()) {
    write_lines(folder / "lines.csv", history);
    names.emplace_back("lines.csv");
  }
  if (query::write_history_picture(folder / "history.png", history, canvases))
    names.emplace_back("history.png");
  write_text_file(folder / "probe.json", probe_json(history));
  names.emplace_back("probe.json");
  return names;
}

}  // namespace dic
