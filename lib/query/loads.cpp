#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/number_text.hpp"
#include "io/text_file.hpp"
#include "io/text_table.hpp"

namespace dic {
namespace {

using io::Heading;
using io::Quantity;
using io::TextTable;

/// The column whose rows are numbers of frames; a column of file names is not meant.
std::optional<std::size_t> find_frame(const TextTable& table) {
  std::optional<std::size_t> found;
  for (std::size_t k = 0; k < table.headings().size(); ++k) {
    if (table.headings()[k].quantity != Quantity::frame || !table.begins_with_number(k)) continue;
    if (found)
      table.fail("has several columns of frames, \"" + table.headings()[*found].text + "\" and \"" +
                 table.headings()[k].text + "\": leave one of them");
    found = k;
  }
  return found;
}

std::size_t named_column(const TextTable& table, const std::string& name) {
  const std::vector<Heading>& headings = table.headings();
  std::vector<std::size_t> whole, named;
  for (std::size_t k = 0; k < headings.size(); ++k) {
    if (io::same_name(headings[k].text, name)) whole.push_back(k);
    if (io::same_name(headings[k].name, name)) named.push_back(k);
  }
  for (const auto& found : {whole, named}) {
    if (found.size() == 1) return found[0];
    if (!found.empty())
      table.fail("has several columns \"" + name + "\": give the whole heading; its columns are " +
                 table.list_of_headings());
  }
  table.fail("has no column \"" + name + "\"; its columns are " + table.list_of_headings());
}

/// The only column that is a force by its name, else by its unit; else the only one beside the key.
std::size_t force_column(const TextTable& table, const std::vector<std::size_t>& keys) {
  const std::vector<Heading>& headings = table.headings();
  std::vector<std::size_t> named, measured, others;
  for (std::size_t k = 0; k < headings.size(); ++k) {
    if (std::ranges::find(keys, k) != keys.end()) continue;
    others.push_back(k);
    if (headings[k].quantity != Quantity::force) continue;
    measured.push_back(k);
    if (headings[k].has_name_of_quantity) named.push_back(k);
  }
  for (const auto& found : {named, measured, others})
    if (found.size() == 1) return found[0];
  if (others.empty()) table.fail("has no column of loads beside frame or time");
  table.fail(
      (measured.empty() ? "has no column that is named as a force, " : "has several columns of forces, ") +
      std::string("so name the column of loads; its columns are ") + table.list_of_headings());
}

/// The load at a frame's number or time; NaN if there is none.
double load_at(const LoadTable& table, double key) {
  const std::vector<double>&keys = table.keys, &loads = table.loads;
  const auto after = std::ranges::lower_bound(keys, key);
  const auto k = static_cast<std::size_t>(after - keys.begin());
  if (after != keys.end() && *after == key) return loads[k];
  if (table.key != LoadTable::Key::time || keys.size() < 2) return ProbeValues::kNone;
  // Times are rounded where they are exported in minutes: the ends may be passed by a thousandth of a step.
  constexpr double kRounded = 1e-3;
  const std::size_t last = keys.size() - 1;
  if (k == 0) return keys[0] - key <= kRounded * (keys[1] - keys[0]) ? loads[0] : ProbeValues::kNone;
  if (after == keys.end())
    return key - keys[last] <= kRounded * (keys[last] - keys[last - 1]) ? loads[last] : ProbeValues::kNone;
  const double share = (key - keys[k - 1]) / (keys[k] - keys[k - 1]);
  return loads[k - 1] + share * (loads[k] - loads[k - 1]);
}

/// The row of each frame in a table without frames and times.
std::vector<std::size_t> rows_in_order(const LoadTable& table, const std::vector<double>& numbers,
                                       std::string& note) {
  const std::size_t rows = table.loads.size();
  const auto last = static_cast<std::size_t>(std::ranges::max(numbers));
  std::vector<std::size_t> found;
  if (rows == numbers.size()) {
    for (std::size_t k = 0; k < rows; ++k) found.push_back(k);
    return found;
  }
  if (rows != last && rows != last + 1)
    throw UsageError(
        "The table of loads has " + std::to_string(rows) + " rows for " + std::to_string(numbers.size()) +
        " frames: give a row for each frame after the reference, with one for the reference above "
        "them or not, or a column \"frame\" or \"time\".");
  const bool has_reference = rows == last + 1;
  if (has_reference) note += "The first row of the loads is taken for the reference. ";
  for (const double number : numbers)
    found.push_back(static_cast<std::size_t>(number) - (has_reference ? 0 : 1));
  return found;
}

std::string range_text(double first, double last) {
  return core::number_text(first) + " to " + core::number_text(last);
}

/// Says which frames have no load. Throws UsageError if none has.
std::string missing_note(const ProbeHistory& history, const LoadTable& table,
                         const std::vector<double>& numbers, const std::vector<double>& loads) {
  const bool by_time = table.key == LoadTable::Key::time;
  const bool counts_reference = table.key == LoadTable::Key::frame && table.keys.front() == 1 &&
                                table.keys.back() == std::ranges::max(numbers) + 1;
  if (counts_reference)
    return "The table of loads has a frame " + core::number_text(table.keys.back()) +
           " more than the result: if it counts the reference as 1, give the reference the number 0. ";
  const auto missing = std::ranges::count_if(loads, [](double load) { return std::isnan(load); });
  if (missing == 0) return {};
  const std::string unit = by_time ? " s" : "";
  const double first = by_time ? history.frames.front().time : numbers.front();
  const double last = by_time ? history.frames.back().time : numbers.back();
  const std::string ranges = std::string("the table has ") + (by_time ? "times " : "frames ") +
                             range_text(table.keys.front(), table.keys.back()) + unit + ", the result " +
                             range_text(first, last) + unit;
  if (missing == std::ssize(loads)) throw UsageError("No frame has a load: " + ranges + ".");
  return std::to_string(missing) + " of " + std::to_string(loads.size()) + " frames have no load: " + ranges +
         ". ";
}

/// Throws UsageError if a force over the section cannot be meant.
void check_force(const LoadTable& table, std::string& note) {
  if (!table.is_force)
    throw UsageError(
        "Stress needs a force, but the column \"" + table.name +
        (table.unit.empty() ? "" : " [" + table.unit + "]") +
        "\" is not known to be one: choose another column, or write its unit into its heading, as "
        "in \"" +
        table.name + " [N]\".");
  if (table.unit.empty())
    note += "The column \"" + table.name + "\" has no unit: its loads are taken for N. ";
}

/// column: name of the loads' column; empty = the one that the headings tell.
LoadTable loads_of(const TextTable& table, const std::string& column) {
  const std::vector<Heading>& headings = table.headings();
  if (headings.empty())
    table.fail(
        "has no names above its numbers: add a line with the name of each column, as \"time [s],force [N]\"");
  const std::optional<std::size_t> frame = find_frame(table);
  const std::optional<std::size_t> time = frame ? std::nullopt : table.find_time();
  std::vector<std::size_t> keys;
  for (std::size_t k = 0; k < headings.size(); ++k)
    if (headings[k].quantity == Quantity::time || headings[k].quantity == Quantity::frame) keys.push_back(k);
  const std::size_t load = column.empty() ? force_column(table, keys) : named_column(table, column);
  const Heading& heading = headings[load];
  LoadTable loads;
  loads.is_force = heading.quantity == Quantity::force;
  if (loads.is_force && heading.factor == 0) table.fail("has " + unit_problem(heading));
  loads.heading = heading.text;
  loads.name = heading.name;
  loads.unit = loads.is_force && !heading.unit.empty() ? "N" : heading.unit;
  loads.loads = table.numbers(load);
  if (loads.is_force)
    for (double& value : loads.loads) value *= heading.factor;
  if (frame || time) {
    loads.key = frame ? LoadTable::Key::frame : LoadTable::Key::time;
    loads.keys = frame ? table.numbers(*frame) : table.seconds(*time);
  } else {
    for (std::size_t k = 0; k < loads.loads.size(); ++k) loads.keys.push_back(static_cast<double>(k) + 1);
  }
  if (!table.doubtful_number().empty()) {
    std::string number = table.doubtful_number();
    std::ranges::replace(number, ',', '.');
    loads.note =
        "Commas are taken for decimal commas: \"" + table.doubtful_number() + "\" is " + number + ". ";
  }
  const auto key_problem = [&](std::size_t row, const std::string& what) {
    table.fail("has a " + headings[frame ? *frame : *time].text + " that " + what + " in line " +
               std::to_string(table.line_of(row)));
  };
  for (std::size_t k = 0; k < loads.keys.size(); ++k) {
    if (frame && loads.keys[k] != std::floor(loads.keys[k])) key_problem(k, "is no whole number");
    if (k > 0 && loads.keys[k] <= loads.keys[k - 1]) key_problem(k, "does not increase");
    if (!std::isfinite(loads.keys[k]) || !std::isfinite(loads.loads[k]))
      table.fail("has numbers beyond 1e308");
  }
  return loads;
}

}  // namespace

LoadTable read_loads(const std::filesystem::path& path, const std::string& column) {
  return loads_of(TextTable(path, column), column);
}

LoadTable parse_loads(std::string content, const std::string& name, const std::string& column) {
  return loads_of(TextTable(name, io::decoded_text(std::move(content), name), column), column);
}

std::vector<std::string> load_columns(std::string content, const std::string& name) {
  const TextTable table(name, io::decoded_text(std::move(content), name), {});
  std::vector<std::string> headings;
  for (const Heading& heading : table.headings()) headings.push_back(heading.text);
  return headings;
}

void add_loads(ProbeHistory& history, const LoadTable& table, double section_mm2) {
  const bool has_seconds = history.time_unit == "s";
  if (table.key == LoadTable::Key::time && !has_seconds)
    throw UsageError(
        "The loads are given over time, but the frames of the result have no times: give the loads a column "
        "\"frame\".");
  std::string note = table.note;
  if (section_mm2 > 0) check_force(table, note);
  std::vector<double> numbers;
  for (const ProbeFrame& frame : history.frames) numbers.push_back(static_cast<double>(frame.number));
  std::vector<double> loads;
  if (table.key == LoadTable::Key::row && !numbers.empty()) {
    for (const std::size_t row : rows_in_order(table, numbers, note)) loads.push_back(table.loads[row]);
  } else {
    for (std::size_t k = 0; k < numbers.size(); ++k)
      loads.push_back(
          load_at(table, table.key == LoadTable::Key::time ? history.frames[k].time : numbers[k]));
  }
  note += missing_note(history, table, numbers, loads);
  if (!note.empty()) note.pop_back();
  history.load_name = table.name.empty() ? "load" : table.name;
  history.load_unit = table.unit.empty() && section_mm2 > 0 ? "N" : table.unit;
  history.load_note = note;
  history.section_mm2 = section_mm2;
  history.loads = std::move(loads);
}

std::vector<double> ProbeHistory::stresses() const {
  std::vector<double> stresses;
  if (section_mm2 > 0)
    for (const double load : loads) stresses.push_back(load / section_mm2);
  return stresses;
}

}  // namespace dic
