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
  return header(quantity.name, std::string(quantity.unit_in(history.length_unit)));
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

/// Number of lines whose shape is known.
std::size_t lines_with_shape(const ProbeHistory& history) {
  return history.has_two_cameras ? history.request.lines.size() : 0;
}

/// A row per frame; P1, P2, ... points, E extensometers, A areas, L lines.
void write_history(const fs::path& path, const ProbeHistory& history) {
  Table table(path);
  write_frame_header(table, history);
  const std::string unit = history.extensometer_unit();
  for (std::size_t k = 0; k < history.request.points.size(); ++k) {
    for (const FieldArray& quantity : history.arrays())
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
    for (const FieldArray& quantity : history.arrays()) {
      table.cell(name_of('A', k) + "mean " + header_of(history, quantity));
      if (has_sd(quantity)) table.cell(name_of('A', k) + "sd " + header_of(history, quantity));
    }
  }
  for (std::size_t k = 0; k < lines_with_shape(history); ++k)
    for (const LineQuantity& quantity : kLineQuantities)
      table.cell(name_of('L', k) + header(quantity.name, std::string(quantity.unit)));
  table.end_row();
  for (std::size_t f = 0; f < history.frames.size(); ++f) {
    const ProbeFrame& frame = history.frames[f];
    write_frame(table, history, f);
    for (const PointValues& point : frame.points) {
      for (const FieldArray& quantity : history.arrays()) table.cell(point.values[quantity.name]);
      table.cell(point.problem);
    }
    for (const ExtensometerValues& e : frame.extensometers) {
      for (const double value : {e.gauge_length, e.change, e.strain, e.sigma_change, e.sigma_strain})
        table.cell(value);
      table.cell(e.problem);
    }
    for (const AreaValues& area : frame.areas) {
      for (const std::int64_t count : {area.nodes, area.points, area.strain_points}) table.cell(count);
      for (const FieldArray& quantity : history.arrays()) {
        table.cell(area.mean[quantity.name]);
        if (has_sd(quantity)) table.cell(area.sd[quantity.name]);
      }
    }
    for (std::size_t k = 0; k < lines_with_shape(history); ++k)
      for (const LineQuantity& quantity : kLineQuantities) table.cell(frame.line_shapes[k].*quantity.member);
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
  if (history.has_two_cameras) table.cell("offset [mm]");
  for (const FieldArray& quantity : history.arrays()) table.cell(header_of(history, quantity));
  table.cell("problem");
  table.end_row();
  for (std::size_t line = 0; line < history.request.lines.size(); ++line)
    for (std::size_t f = 0; f < history.frames.size(); ++f)
      for (const LinePoint& point : history.frames[f].lines[line]) {
        table.cell(static_cast<std::int64_t>(line) + 1);
        write_frame(table, history, f);
        for (const double value : {point.distance, point.at.x, point.at.y}) table.cell(value);
        if (history.has_two_cameras) table.cell(point.offset);
        for (const FieldArray& quantity : history.arrays()) table.cell(point.point.values[quantity.name]);
        table.cell(point.point.problem);
        table.end_row();
      }
  table.commit();
}

/// Values as JSON, with the arrays that the fields have.
class ValuesJson {
 public:
  explicit ValuesJson(const ProbeHistory& history) : history_(history) {}

  Json values(const ProbeValues& values) const {
    Json json;
    for (const FieldArray& quantity : history_.arrays())
      json[std::string(quantity.name)] = values[quantity.name];
    return json;
  }
  Json point(const PointValues& point) const {
    Json json = values(point.values);
    json["problem"] = point.problem.empty() ? Json() : Json(point.problem);
    return json;
  }
  Json area(const AreaValues& area) const {
    return {{"nodes", area.nodes},
            {"points", area.points},
            {"strain_points", area.strain_points},
            {"mean", values(area.mean)},
            {"sd", values(area.sd)}};
  }
  Json line(const std::vector<LinePoint>& line) const {
    Json all = Json::array();
    for (const LinePoint& at : line) {
      Json json = {{"distance", at.distance}, {"x", at.at.x}, {"y", at.at.y}};
      if (history_.has_two_cameras) json["offset"] = at.offset;
      json.update(point(at.point));
      all.push_back(std::move(json));
    }
    return all;
  }

 private:
  const ProbeHistory& history_;
};

Json extensometer_json(const ExtensometerValues& e) {
  return {{"gauge_length", e.gauge_length},
          {"change", e.change},
          {"strain", e.strain},
          {"sigma_change", e.sigma_change},
          {"sigma_strain", e.sigma_strain},
          {"problem", e.problem.empty() ? Json() : Json(e.problem)}};
}

Json shape_json(const LineShape& shape) {
  Json json;
  for (const LineQuantity& quantity : kLineQuantities)
    json[std::string(quantity.name)] = shape.*quantity.member;
  return json;
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
  const ValuesJson values(history);
  const auto positions = [](const auto& places) { return positions_json(places); };
  Json json;
  json["length_unit"] = history.length_unit;
  json["extensometer_unit"] = history.extensometer_unit();
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
    entry["points"] = list(frame.points, [&](const PointValues& point) { return values.point(point); });
    entry["extensometers"] = list(frame.extensometers, extensometer_json);
    entry["lines"] = list(frame.lines, [&](const auto& line) { return values.line(line); });
    if (history.has_two_cameras) entry["line_shapes"] = list(frame.line_shapes, shape_json);
    entry["areas"] = list(frame.areas, [&](const AreaValues& area) { return values.area(area); });
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
  if (!asked.points.empty() || !asked.extensometers.empty() || !asked.areas.empty() ||
      lines_with_shape(history) > 0) {
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
