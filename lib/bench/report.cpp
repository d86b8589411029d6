#include <algorithm>
#include <cmath>
#include <cstdio>
#include <dic/error.hpp>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/bench.hpp"
#include "bench/machine_json.hpp"
#include "io/document.hpp"

namespace dic {

// Files hold the names of enumerators.
NLOHMANN_JSON_SERIALIZE_ENUM(Pairing, {{Pairing::one_to_one, "one_to_one"},
                                       {Pairing::one_to_many, "one_to_many"},
                                       {Pairing::n_to_mn, "n_to_mn"},
                                       {Pairing::n_to_m, "n_to_m"}})
NLOHMANN_JSON_SERIALIZE_ENUM(ScalarType, {{ScalarType::u8, "u8"},
                                          {ScalarType::u16, "u16"},
                                          {ScalarType::i32, "i32"},
                                          {ScalarType::f32, "f32"},
                                          {ScalarType::f64, "f64"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Criterion, {{Criterion::cross_correlation, "cross_correlation"},
                                         {Criterion::zncc, "zncc"},
                                         {Criterion::ncc, "ncc"},
                                         {Criterion::ssd, "ssd"}})

namespace bench {

NLOHMANN_JSON_SERIALIZE_ENUM(Output, {{Output::surfaces, "surfaces"}, {Output::peaks, "peaks"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Level, {{Level::whole, "whole"},
                                     {Level::call, "call"},
                                     {Level::upload, "upload"},
                                     {Level::kernel, "kernel"},
                                     {Level::download, "download"}})
NLOHMANN_JSON_SERIALIZE_ENUM(Outcome,
                             {{Outcome::ok, "ok"}, {Outcome::wrong, "wrong"}, {Outcome::failed, "failed"}})

using Json = nlohmann::ordered_json;

Json json_of(const Machine& m) {
  return {{"version", m.version}, {"date", m.date},         {"command", m.command},
          {"device", m.device},   {"model", m.model},       {"simd", m.simd},
          {"seed", m.seed},       {"compiler", m.compiler}, {"threads", m.threads}};
}

Machine machine_from(const Json& json) {
  Machine m;
  json.at("version").get_to(m.version);
  json.at("date").get_to(m.date);
  json.at("command").get_to(m.command);
  json.at("device").get_to(m.device);
  json.at("model").get_to(m.model);
  json.at("simd").get_to(m.simd);
  json.at("seed").get_to(m.seed);
  json.at("compiler").get_to(m.compiler);
  json.at("threads").get_to(m.threads);
  return m;
}

namespace {

Json json_of(const Ceiling& c) { return {{"name", c.name}, {"unit", c.unit}, {"value", c.value}}; }

Ceiling ceiling_from(const Json& json) {
  Ceiling c;
  json.at("name").get_to(c.name);
  json.at("unit").get_to(c.unit);
  json.at("value").get_to(c.value);
  return c;
}

Json json_of(const Timing& t) {
  return {{"first", t.first}, {"median", t.median},   {"least", t.least},
          {"most", t.most},   {"repeats", t.repeats}, {"iterations", t.iterations}};
}

Timing timing_from(const Json& json) {
  Timing t;
  json.at("first").get_to(t.first);
  json.at("median").get_to(t.median);
  json.at("least").get_to(t.least);
  json.at("most").get_to(t.most);
  json.at("repeats").get_to(t.repeats);
  json.at("iterations").get_to(t.iterations);
  return t;
}

Json json_of(const Case& c) {
  return {{"group", c.group},
          {"pairing", c.pairing},
          {"type", c.type},
          {"bit_depth", c.bit_depth},
          {"criterion", c.criterion},
          {"output", c.output},
          {"reference", {c.ref_h, c.ref_w}},
          {"window", {c.search_h, c.search_w}},
          {"shifts", {c.shifts.dx_min, c.shifts.dx_max, c.shifts.dy_min, c.shifts.dy_max}},
          {"references", c.references},
          {"windows", c.windows},
          {"image", c.image},
          {"masks", c.masks},
          {"pairs", c.pairs()},
          {"operations", c.operations()},
          {"bytes", c.bytes()}};
}

Case case_from(const Json& json) {
  Case c;
  json.at("group").get_to(c.group);
  json.at("pairing").get_to(c.pairing);
  json.at("type").get_to(c.type);
  json.at("bit_depth").get_to(c.bit_depth);
  json.at("criterion").get_to(c.criterion);
  json.at("output").get_to(c.output);
  std::tie(c.ref_h, c.ref_w) = json.at("reference").get<std::pair<int, int>>();
  std::tie(c.search_h, c.search_w) = json.at("window").get<std::pair<int, int>>();
  std::tie(c.shifts.dx_min, c.shifts.dx_max, c.shifts.dy_min, c.shifts.dy_max) =
      json.at("shifts").get<std::tuple<int, int, int, int>>();
  json.at("references").get_to(c.references);
  json.at("windows").get_to(c.windows);
  json.at("image").get_to(c.image);
  json.at("masks").get_to(c.masks);
  return c;
}

Json json_of(const Row& row) {
  return {{"case", json_of(row.task.shape)},
          {"variant", row.task.variant},
          {"level", row.task.level},
          {"ran", row.ran},
          {"outcome", row.outcome},
          {"problem", row.problem},
          {"seconds", json_of(row.seconds)},
          {"compared", row.compared},
          {"max_difference", row.max_difference}};
}

Row row_from(const Json& json) {
  Row row;
  row.task.shape = case_from(json.at("case"));
  json.at("variant").get_to(row.task.variant);
  json.at("level").get_to(row.task.level);
  json.at("ran").get_to(row.ran);
  json.at("outcome").get_to(row.outcome);
  json.at("problem").get_to(row.problem);
  row.seconds = timing_from(json.at("seconds"));
  json.at("compared").get_to(row.compared);
  const Json& difference = json.at("max_difference");  // null stands for NaN
  row.max_difference =
      difference.is_null() ? std::numeric_limits<double>::quiet_NaN() : difference.get<double>();
  return row;
}

/// A field of a CSV file, quoted if necessary.
std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string result = "\"";
  for (const char c : text) result += c == '"' ? std::string("\"\"") : std::string(1, c);
  return result + '"';
}

std::string formatted(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

/// Lines of a Markdown table: cases in the order of their first rows, columns by variant.
class GroupTable {
 public:
  explicit GroupTable(const std::vector<Ceiling>& ceilings) : ceilings_(ceilings) {}

  void add(const Row& row) {
    std::string name = describe(row.task.shape);
    if (row.task.level != Level::call) name.append(", ").append(to_string(row.task.level));
    at(columns_, row.task.variant);
    const std::size_t line = at(lines_, name);
    cells_.resize(lines_.size());
    floors_.resize(lines_.size(), floor_seconds(row.task.shape, ceilings_));
    cells_[line].resize(std::max(cells_[line].size(), columns_.size()));
    cells_[line][at(columns_, row.task.variant)] = cell(row);
  }

  /// Prints a line per case; if the table would be too wide to read, a line per variant in several tables.
  void print(std::ostream& out) const {
    if (columns_.size() <= kMostVariants) return print_cases(out);
    for (std::size_t first = 0; first < lines_.size(); first += kMostCases) {
      if (first > 0) out << '\n';
      print_variants(out, first, std::min(lines_.size(), first + kMostCases));
    }
  }

 private:
  static constexpr std::size_t kMostVariants = 6, kMostCases = 5;

  void print_cases(std::ostream& out) const {
    const bool has_floors = !ceilings_.empty();
    out << (has_floors ? "| case | floor |" : "| case |");
    for (const std::string& column : columns_) out << ' ' << column << " |";
    out << (has_floors ? "\n|---|---:|" : "\n|---|");
    for (std::size_t k = 0; k < columns_.size(); ++k) out << "---:|";
    for (std::size_t line = 0; line < lines_.size(); ++line) {
      out << "\n| " << lines_[line] << " |";
      if (has_floors) out << ' ' << (floors_[line] > 0 ? milliseconds(floors_[line]) : "") << " |";
      for (std::size_t k = 0; k < columns_.size(); ++k) out << ' ' << cell_at(line, k) << " |";
    }
    out << '\n';
  }

  /// Prints the cases of lines first .. last - 1 as columns, without variants that none of them has.
  void print_variants(std::ostream& out, std::size_t first, std::size_t last) const {
    out << "| variant |";
    for (std::size_t line = first; line < last; ++line) out << ' ' << lines_[line] << " |";
    out << "\n|---|";
    for (std::size_t line = first; line < last; ++line) out << "---:|";
    if (!ceilings_.empty()) {
      out << "\n| floor |";
      for (std::size_t line = first; line < last; ++line)
        out << ' ' << (floors_[line] > 0 ? milliseconds(floors_[line]) : "") << " |";
    }
    for (std::size_t k = 0; k < columns_.size(); ++k) {
      std::string cells;
      for (std::size_t line = first; line < last; ++line) cells.append(cell_at(line, k));
      if (cells.empty()) continue;
      out << "\n| " << columns_[k] << " |";
      for (std::size_t line = first; line < last; ++line) out << ' ' << cell_at(line, k) << " |";
    }
    out << '\n';
  }

  std::string cell_at(std::size_t line, std::size_t column) const {
    return column < cells_[line].size() ? cells_[line][column] : "";
  }

  /// Index of `name` in the list; appends it if it is missing.
  static std::size_t at(std::vector<std::string>& list, const std::string& name) {
    const auto found = std::find(list.begin(), list.end(), name);
    if (found != list.end()) return found - list.begin();
    list.push_back(name);
    return list.size() - 1;
  }

  static std::string milliseconds(double seconds) { return formatted("%.4g", 1e3 * seconds); }

  static std::string cell(const Row& row) {
    if (row.outcome != Outcome::ok) return std::string(to_string(row.outcome));
    const std::string time = milliseconds(row.seconds.median);
    return row.task.variant == "planner" ? time + " (" + row.ran + ")" : time;
  }

  std::vector<Ceiling> ceilings_;
  std::vector<std::string> lines_, columns_;
  std::vector<double> floors_;  ///< lower bounds of the lines, s
  std::vector<std::vector<std::string>> cells_;
};

}  // namespace

std::string to_json(const Report& report) {
  Json json = {{"machine", json_of(report.machine)}, {"ceilings", Json::array()}, {"rows", Json::array()}};
  for (const Ceiling& ceiling : report.ceilings) json["ceilings"].push_back(json_of(ceiling));
  for (const Row& row : report.rows) json["rows"].push_back(json_of(row));
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Report from_json(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    Report report;
    report.machine = machine_from(json.at("machine"));
    for (const Json& ceiling : json.at("ceilings")) report.ceilings.push_back(ceiling_from(ceiling));
    for (const Json& row : json.at("rows")) report.rows.push_back(row_from(row));
    return report;
  } catch (const Json::exception& error) {
    throw UsageError(std::string("This is no report of dic bench correlate: ") + error.what() + ".");
  }
}

std::string to_csv(const Report& report) {
  std::ostringstream out;
  out << "group,pairing,type,bit_depth,criterion,output,ref_h,ref_w,window_h,window_w,dx_min,dx_max,dy_min,"
         "dy_max,"
         "references,windows,pairs,image,masks,variant,level,ran,outcome,problem,first_s,median_s,least_s,"
         "most_s,"
         "repeats,"
         "iterations,operations,bytes,max_difference,compared\n";
  for (const Row& row : report.rows) {
    const Case& c = row.task.shape;
    const Timing& s = row.seconds;
    out << quoted(c.group) << ',' << to_string(c.pairing) << ',' << to_string(c.type) << ',' << c.bit_depth
        << ',' << to_string(c.criterion) << ',' << to_string(c.output) << ',' << c.ref_h << ',' << c.ref_w
        << ',' << c.search_h << ',' << c.search_w << ',' << c.shifts.dx_min << ',' << c.shifts.dx_max << ','
        << c.shifts.dy_min << ',' << c.shifts.dy_max << ',' << c.references << ',' << c.windows << ','
        << c.pairs() << ',' << c.image << ',' << c.masks << ',' << quoted(row.task.variant) << ','
        << to_string(row.task.level) << ',' << row.ran << ',' << to_string(row.outcome) << ','
        << quoted(row.problem) << ',' << s.first << ',' << s.median << ',' << s.least << ',' << s.most << ','
        << s.repeats << ',' << s.iterations << ',' << c.operations() << ',' << c.bytes() << ','
        << row.max_difference << ',' << row.compared << '\n';
  }
  return out.str();
}

std::string to_markdown(const Report& report) {
  const Machine& m = report.machine;
  std::ostringstream out;
  out << "Made by `" << m.command << "` (dic " << m.version << ", " << m.compiler << ") at " << m.date
      << " on " << m.model;
  if (m.device == "cpu") out << " (" << m.simd << ", " << m.threads << " in use)";
  out << "; inputs from seed " << m.seed << ". Medians in ms.\n";
  if (!report.ceilings.empty()) {
    out << "Floor: a direct computation at the ceilings of this device (";
    for (const Ceiling& c : report.ceilings)
      out << (&c == &report.ceilings.front() ? "" : ", ") << c.name << formatted(" %.4g G", 1e-9 * c.value)
          << c.unit;
    out << ").\n";
  }
  std::vector<std::pair<std::string, GroupTable>> tables;
  for (const Row& row : report.rows) {
    const std::string& group = row.task.shape.group;
    auto table = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == group; });
    if (table == tables.end()) table = tables.insert(table, {group, GroupTable(report.ceilings)});
    table->second.add(row);
  }
  for (const auto& [group, table] : tables) {
    out << "\n**" << group << "**\n\n";
    table.print(out);
  }
  return out.str();
}

std::string insert_report(const std::string& document, const std::string& name, const std::string& text) {
  return io::insert_report(document, name, text);
}

}  // namespace bench
}  // namespace dic
