#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <fstream>
#include <optional>
#include <tuple>
#include <utility>

namespace dic {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// A name and what stands behind it in brackets: "Force [kN]", "Force (kN)".
std::pair<std::string, std::string> name_and_unit(const std::string& header) {
  const auto open = header.find_first_of("[(");
  if (open == std::string::npos) return {trimmed(header), ""};
  const auto close = header.find_first_of("])", open);
  return {trimmed(header.substr(0, open)), trimmed(header.substr(open + 1, close - open - 1))};
}

/// A table of text; cells may stand in double quotes.
class TextTable {
 public:
  explicit TextTable(const std::filesystem::path& path) : path_(path) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) fail("cannot be read: check its name and permissions");
    std::string line;
    while (std::getline(stream, line)) {
      ++number_;
      if (number_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);  // a byte order mark
      if (trimmed(line).empty()) continue;
      if (header_.empty()) {
        for (const char candidate : {',', '\t', ';'})
          if (line.find(candidate) != std::string::npos) separator_ = candidate;
        header_ = cells(line);
      } else {
        rows_.emplace_back(number_, cells(line));
      }
    }
    if (rows_.empty()) fail("holds no table: a line of names and a line of numbers at least");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw FileError("'" + path_.string() + "' " + what + ".");
  }

  const std::vector<std::string>& header() const { return header_; }
  std::vector<double> column(std::size_t index) const {
    std::vector<double> values;
    for (const auto& [line, row] : rows_) {
      const std::optional<double> value = index < row.size() ? number(row[index]) : std::nullopt;
      if (!value) fail("has no number under \"" + header_[index] + "\" in line " + std::to_string(line));
      values.push_back(*value);
    }
    return values;
  }

 private:
  std::vector<std::string> cells(const std::string& line) const {
    std::vector<std::string> cells(1);
    bool quoted = false;
    for (const char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == separator_ && !quoted)
        cells.emplace_back();
      else
        cells.back() += c;
    }
    for (std::string& cell : cells) cell = trimmed(cell);
    return cells;
  }

  /// Reads a number, with a decimal comma too, unless commas separate columns.
  std::optional<double> number(std::string text) const {
    if (separator_ != ',') std::ranges::replace(text, ',', '.');
    if (text.starts_with('+')) text.erase(0, 1);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return {};
    return value;
  }

  std::filesystem::path path_;
  char separator_ = ',';
  int number_ = 0;
  std::vector<std::string> header_;
  std::vector<std::pair<int, std::vector<std::string>>> rows_;
};

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

/// Index of a column by its header, with or without unit; kAbsent where there is none.
std::size_t find(const TextTable& table, const std::string& name) {
  for (std::size_t k = 0; k < table.header().size(); ++k)
    if (lower(table.header()[k]) == lower(name) ||
        lower(name_and_unit(table.header()[k]).first) == lower(name))
      return k;
  return kAbsent;
}

double load_at(const LoadTable& table, double key) {
  const auto after = std::ranges::lower_bound(table.keys, key);
  if (after == table.keys.end()) return ProbeValues::kNone;
  const std::size_t k = after - table.keys.begin();
  if (*after == key) return table.loads[k];
  if (table.key != LoadTable::Key::time || k == 0) return ProbeValues::kNone;
  const double share = (key - table.keys[k - 1]) / (table.keys[k] - table.keys[k - 1]);
  return table.loads[k - 1] + share * (table.loads[k] - table.loads[k - 1]);
}

}  // namespace

LoadTable read_loads(const std::filesystem::path& path, const std::string& column) {
  const TextTable table(path);
  const std::size_t frame = find(table, "frame"), time = find(table, "time");
  const std::size_t key = frame != kAbsent ? frame : time;
  std::size_t load = kAbsent;
  if (!column.empty()) load = find(table, column);
  for (std::size_t k = table.header().size(); column.empty() && k-- > 0;)
    if (k != frame && k != time) load = k;
  if (load == kAbsent)
    table.fail(column.empty() ? "has no column of loads beside frame or time"
                              : "has no column \"" + column + "\"");
  LoadTable loads;
  if (key != kAbsent) loads.key = key == frame ? LoadTable::Key::frame : LoadTable::Key::time;
  std::tie(loads.name, loads.unit) = name_and_unit(table.header()[load]);
  loads.loads = table.column(load);
  const double factor = loads.unit == "kN" ? 1e3 : loads.unit == "MN" ? 1e6 : 1;
  if (factor != 1) loads.unit.assign(1, 'N');
  for (double& value : loads.loads) value *= factor;
  if (key != kAbsent) {
    loads.keys = table.column(key);
  } else {
    for (std::size_t k = 0; k < loads.loads.size(); ++k) loads.keys.push_back(static_cast<double>(k) + 1);
  }
  if (std::ranges::adjacent_find(loads.keys, std::ranges::greater_equal()) != loads.keys.end())
    table.fail("has rows whose " + table.header()[key] + " does not increase");
  return loads;
}

void add_loads(ProbeHistory& history, const LoadTable& table, double section_mm2) {
  const bool has_seconds = history.time_unit == "s";
  if (table.key == LoadTable::Key::time && !has_seconds)
    throw UsageError(
        "The loads are given over time, but the frames of the result have no times: give the loads a column "
        "\"frame\".");
  history.load_name = table.name.empty() ? "load" : table.name;
  history.load_unit = table.unit;
  history.section_mm2 = section_mm2;
  history.loads.clear();
  for (std::size_t k = 0; k < history.frames.size(); ++k) {
    const double number = has_seconds ? static_cast<double>(k) + 1 : history.frames[k].time;
    const double in_order = static_cast<double>(k) + 1;
    history.loads.push_back(load_at(table, table.key == LoadTable::Key::time    ? history.frames[k].time
                                           : table.key == LoadTable::Key::frame ? number
                                                                                : in_order));
  }
}

std::vector<double> ProbeHistory::stresses() const {
  std::vector<double> stresses;
  if (section_mm2 > 0)
    for (const double load : loads) stresses.push_back(load / section_mm2);
  return stresses;
}

}  // namespace dic
