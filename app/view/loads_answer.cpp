#include "view/loads_answer.hpp"

#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <string>
#include <vector>

namespace dic::app {
namespace {

/// The frames of a result without any probes.
ProbeHistory frames_of(const Result& result) {
  ProbeHistory history;
  history.time_unit = result.info().time_unit;
  for (int k = 0; k < result.frame_count(); ++k) {
    ProbeFrame& frame = history.frames.emplace_back();
    frame.time = result.times()[k];
    frame.number = result.frame_numbers()[k];
  }
  return history;
}

double area_in(const Json& asked) {
  if (!asked.contains("area")) return 0;
  const double area = asked["area"].is_number() ? asked["area"].get<double>() : -1;
  if (!std::isfinite(area) || area < 0)
    throw UsageError("The area of the cross-section has to be a number of mm2, 0 for none.");
  return area;
}

std::string title_of(const ProbeHistory& history) {
  if (history.section_mm2 > 0) return "stress [MPa]";
  return history.load_name + (history.load_unit.empty() ? "" : " [" + history.load_unit + "]");
}

}  // namespace

Json loads_answer(const Result& result, const Json& asked) {
  const std::string text = asked.at("text").get<std::string>(), name = asked.at("name").get<std::string>();
  const Json column = asked.value("column", Json());
  Json answer = {{"columns", load_columns(text, name)}};
  try {
    const LoadTable table = parse_loads(text, name, column.is_null() ? "" : column.get<std::string>());
    answer["column"] = table.heading;
    ProbeHistory history = frames_of(result);
    add_loads(history, table, area_in(asked));
    answer["title"] = title_of(history);
    answer["values"] = history.section_mm2 > 0 ? history.stresses() : history.loads;
    answer["note"] = history.load_note;
  } catch (const Error& error) {
    answer["problem"] = error.what();
  }
  return answer;
}

}  // namespace dic::app
