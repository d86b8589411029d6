#include "io/text_table.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <limits>
#include <utility>

#include "core/number_text.hpp"
#include "io/text_file.hpp"

namespace dic::io {
namespace {

constexpr char kNoSeparator = '\0', kSpaces = ' ';
constexpr std::string_view kBlank = " \t";
/// Spaces and apostrophes that group digits: "1 234", "1'234".
constexpr std::string_view kDigitSpaces[] = {" ", "\xC2\xA0",    "\xE2\x80\xAF", "\xE2\x80\x89",
                                             "'", "\xE2\x80\x99"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const auto end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// True for "1,234" or "12,345,678" with the separator ','.
bool is_grouped(std::string_view text, char separator) {
  const auto parts = parts_of(text, separator);
  const std::string_view first = parts.front();
  if (!is_digits(first) || first.size() > 3 || first[0] == '0') return false;
  return std::all_of(parts.begin() + 1, parts.end(),
                     [](std::string_view part) { return is_digits(part) && part.size() == 3; });
}

/// A number as it is written, in parts.
struct Written {
  bool is_negative = false;
  std::string digits;         ///< with commas and points, without the spaces between groups
  std::string_view exponent;  ///< with the e; empty if there is none
};

/// The parts of what may be a number; none for other text, such as a date.
std::optional<Written> written(std::string_view cell) {
  Written number;
  cell = trimmed(cell);
  for (const std::string_view minus : {"-", "\xE2\x88\x92"})
    if (cell.starts_with(minus)) {
      number.is_negative = true;
      cell.remove_prefix(minus.size());
      break;
    }
  if (!number.is_negative && cell.starts_with('+')) cell.remove_prefix(1);
  if (const auto e = cell.find_first_of("eE"); e != std::string_view::npos) {
    number.exponent = cell.substr(e);
    const std::string_view power = cell.substr(e + 1);
    const bool has_sign = power.starts_with('-') || power.starts_with('+');
    if (!is_digits(power.substr(has_sign ? 1 : 0))) return {};
    cell = cell.substr(0, e);
  }
  bool has_spaces = false;
  while (!cell.empty()) {
    const auto space = std::ranges::find_if(kDigitSpaces, [&](auto text) { return cell.starts_with(text); });
    if (space != std::end(kDigitSpaces)) {
      number.digits += ' ';
      has_spaces = true;
      cell.remove_prefix(space->size());
    } else if (is_digit(cell[0]) || cell[0] == ',' || cell[0] == '.') {
      number.digits += cell[0];
      cell.remove_prefix(1);
    } else {
      return {};
    }
  }
  if (std::ranges::none_of(number.digits, is_digit)) return {};
  if (has_spaces) {
    if (!is_grouped(number.digits.substr(0, number.digits.find_first_of(",.")), ' ')) return {};
    std::erase(number.digits, ' ');
  }
  return number;
}

/// Seconds of "h:mm:ss", also with decimals.
std::optional<double> clock_seconds(std::string_view cell) {
  const auto parts = parts_of(trimmed(cell), ':');
  if (parts.size() != 3 || !is_digits(parts[0]) || !is_digits(parts[1]) || parts[1].size() != 2) return {};
  std::string seconds(parts[2]);
  std::ranges::replace(seconds, ',', '.');
  const auto h = core::parse_number<double>(parts[0]), m = core::parse_number<double>(parts[1]),
             s = core::parse_number<double>(seconds);
  if (!h || !m || !s || *m >= 60 || *s < 0 || *s >= 60) return {};
  return *h * 3600 + *m * 60 + *s;
}

bool is_number(std::string_view cell) { return written(cell) || clock_seconds(cell); }

/// How the numbers of a table use commas and points.
struct Signs {
  bool decimal_comma = false, grouping_comma = false;
  bool decimal_point = false, grouping_point = false;
  std::string_view open_comma, open_point;  ///< a cell that leaves it open: "1,234"

  void add(std::string_view cell) {
    const std::optional<Written> number = written(cell);
    if (!number) return;
    const std::string& digits = number->digits;
    const auto comma = digits.rfind(','), point = digits.rfind('.');
    if (comma != std::string::npos && point != std::string::npos) {
      const bool comma_is_last = comma > point;
      const bool grouped = is_grouped(digits.substr(0, std::max(comma, point)), comma_is_last ? '.' : ',');
      if (grouped) (comma_is_last ? decimal_comma : decimal_point) = true;
      if (grouped) (comma_is_last ? grouping_point : grouping_comma) = true;
    } else if (comma != std::string::npos) {
      judge(*number, ',', cell, decimal_comma, grouping_comma, open_comma);
    } else if (point != std::string::npos) {
      judge(*number, '.', cell, decimal_point, grouping_point, open_point);
    }
  }

 private:
  static void judge(const Written& number, char sign, std::string_view cell, bool& decimal, bool& grouping,
                    std::string_view& open) {
    const auto count = std::ranges::count(number.digits, sign);
    const bool grouped = number.exponent.empty() && is_grouped(number.digits, sign);
    if (count == 1 && grouped)
      open = open.empty() ? cell : open;
    else if (count == 1)
      decimal = true;
    else if (grouped)
      grouping = true;
  }
};

/// Quotes of a cell are not part of it.
std::string unquoted(std::string_view cell) {
  std::string text;
  for (std::size_t k = 0; k < cell.size(); ++k) {
    text += cell[k];
    if (cell[k] == '"' && k + 1 < cell.size() && cell[k + 1] == '"') ++k;
  }
  return text;
}

/// "Time (s)   Force (N)": cells that two spaces or more separate, or that end with a unit, else words.
std::vector<std::string_view> spaced_headings(const std::vector<std::string_view>& words, std::size_t width) {
  const auto join = [&](const auto& belongs_to_the_last) {
    std::vector<std::string_view> cells;
    for (const std::string_view word : words)
      if (!cells.empty() && belongs_to_the_last(cells.back(), word))
        cells.back() = std::string_view(cells.back().begin(), word.end());
      else
        cells.push_back(word);
    return cells;
  };
  using Cell = std::string_view;
  auto spaced = join([](Cell last, Cell word) { return word.data() - last.end() < 2; });
  if (spaced.size() == width) return spaced;
  auto units = join([](Cell last, Cell) { return !last.ends_with(')') && !last.ends_with(']'); });
  if (units.size() == width) return units;
  return join([](Cell last, Cell word) {
    return std::string_view("([{/").find(word[0]) != Cell::npos || last.ends_with('/');
  });
}

}  // namespace

TextTable::TextTable(const std::filesystem::path& path, std::string_view wanted)
    : TextTable(path, read_text_file(path), wanted) {}

TextTable::TextTable(std::filesystem::path path, std::string text, std::string_view wanted)
    : path_(std::move(path)), text_(std::move(text)), separator_(find_separator()) {
  find_table(split(separator_), wanted);
  if (separator_ == ',' && headings_.size() == 1 && is_open()) {  // "Force [kN]", then "0,5"
    const bool is_surely_one = !headings_.front().unit.empty();
    if (!is_surely_one && first_cells_increase())
      fail("has one name above \"" + std::string(rows_.back().cells[0]) + "," +
           std::string(rows_.back().cells[1]) +
           "\", which may be one number or two: name both columns, or write decimal points");
    join_cells();
  }
  if (!headings_.empty()) check_widths();
  style_ = find_style();
}

void TextTable::fail(const std::string& what) const {
  throw FileError("'" + path_.string() + "' " + what + ".");
}

std::string TextTable::list_of_headings() const {
  std::string list;
  for (const Heading& heading : headings_) list += (list.empty() ? "\"" : ", \"") + heading.text + '"';
  return list;
}

/// The sign that separates the cells of the last line that holds any text.
char TextTable::find_separator() const {
  const auto last = text_.find_last_not_of(" \t\r\n,;");
  if (last == std::string::npos) fail("holds no table: a line of names and a line of numbers at least");
  const auto end = text_.find_first_of("\r\n", last);
  const auto before = text_.find_last_of("\r\n", last);
  const std::size_t begin = before == std::string::npos ? 0 : before + 1;
  const std::string_view line = trimmed(std::string_view(text_).substr(begin, end - begin));
  for (const char separator : {';', '\t'})
    if (line.find(separator) != std::string_view::npos) return separator;
  const bool has_words = line.find(' ') != std::string_view::npos;
  const auto comma = line.find(',');
  if (comma == std::string_view::npos) return has_words ? kSpaces : kNoSeparator;
  const bool in_digits =
      comma > 0 && comma + 1 < line.size() && is_digit(line[comma - 1]) && is_digit(line[comma + 1]);
  const bool spaced = has_words && in_digits && line.find('"') == std::string_view::npos &&
                      is_number(line.substr(0, line.find(' ')));
  return spaced ? kSpaces : ',';
}

std::vector<TextTable::Row> TextTable::split(char separator) const {
  std::vector<Row> rows;
  const std::string_view text = text_;
  std::size_t k = 0;
  int line = 1;
  const auto is_end = [&](std::size_t at) {
    return at >= text.size() || text[at] == '\n' || text[at] == '\r';
  };
  const auto is_separator = [&](char c) { return separator == kSpaces ? c == ' ' : c == separator; };
  while (k < text.size()) {
    Row row{.line = line, .cells = {}};
    for (; !is_end(k) && (text[k] == '#' || text[k] == ' '); ++k) row.is_comment |= text[k] == '#';
    for (;;) {
      while (!is_end(k) && (text[k] == ' ' || (text[k] == '\t' && separator != '\t'))) ++k;
      if (k < text.size() && text[k] == '"') {
        std::size_t close = k + 1;
        while (close < text.size() && (text[close] != '"' || text.substr(close, 2) == "\"\""))
          close += text[close] == '"' ? 2 : 1;
        if (close >= text.size())
          fail("has a quote in line " + std::to_string(row.line) + " that does not end");
        row.cells.push_back(text.substr(k + 1, close - k - 1));
        row.is_quoted = true;
        line += static_cast<int>(std::ranges::count(row.cells.back(), '\n'));
        k = close + 1;
        while (!is_end(k) && !is_separator(text[k])) ++k;
      } else {
        const std::size_t begin = k;
        while (!is_end(k) && !is_separator(text[k])) ++k;
        if (separator != kSpaces || k > begin) row.cells.push_back(trimmed(text.substr(begin, k - begin)));
      }
      if (is_end(k)) break;
      ++k;
    }
    k += text.substr(k, 2) == "\r\n" ? 2 : 1;
    ++line;
    if (std::ranges::any_of(row.cells, [](auto cell) { return !cell.empty(); }))
      rows.push_back(std::move(row));
  }
  return rows;
}

/// Finds the headings and the numbers below them. They are the last line without numbers, if it names a time,
/// a force, a frame or what is wanted; else the first line with numbers below it.
void TextTable::find_table(std::vector<Row> rows, std::string_view wanted) {
  const auto is_data = [](const Row& row) {
    return !row.is_comment && std::ranges::any_of(row.cells, is_number);
  };
  const auto is_units = [&](const Row& row) {
    return std::ranges::all_of(row.cells, [](auto cell) { return cell.empty() || is_unit(cell); });
  };
  const auto is_known = [&](const Heading& heading) {
    return (heading.quantity != Quantity::unknown && heading.quantity != Quantity::other) ||
           (!wanted.empty() && (same_name(heading.text, wanted) || same_name(heading.name, wanted)));
  };
  const std::size_t count = rows.size(), none = count;
  const auto first_data_from = [&](std::size_t k) {
    while (k < count && !is_data(rows[k])) ++k;
    return k;
  };
  if (first_data_from(0) == none) fail("holds no table: a line of names and a line of numbers at least");

  // Headings above the last block of numbers.
  std::size_t first = count;
  while (first > 0 && (is_data(rows[first - 1]) || rows[first - 1].is_comment)) --first;
  std::size_t header = first > 0 ? first - 1 : none;
  first = first_data_from(first);
  if (first < count && header != none && is_units(rows[header]) && header > 0 && !is_data(rows[header - 1]))
    --header;
  if (first < count && header == none && first > 0) header = 0;  // comments
  bool is_found = false;
  if (first < count && header != none) {
    for (std::size_t k = first; k-- > header && !is_found;) {  // the headings may be a comment below a title
      if (!rows[k].is_comment && k != header) continue;
      take_headings(rows, k, first);
      is_found = std::ranges::any_of(headings_, is_known) &&
                 (!rows[k].is_comment || headings_.size() == rows[first].cells.size());
    }
    const auto is_number_row = [&](const Row& row) {
      return !row.is_comment && row.cells.size() == rows[first].cells.size() &&
             std::ranges::all_of(row.cells, is_number);
    };
    const auto other =
        std::find_if(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(header), is_number_row);
    if (is_found && other != rows.begin() + static_cast<std::ptrdiff_t>(header))
      fail("has numbers from line " + std::to_string(other->line) + " on and again below the names in line " +
           std::to_string(rows[header].line) + ": leave one table in it");
  }
  if (!is_found) {
    first = first_data_from(0);
    header = first;
    while (header > 0 && rows[header - 1].is_comment) --header;
    headings_.clear();
    if (header > 0) {
      --header;
      if (is_units(rows[header]) && header > 0) --header;
      take_headings(rows, header, first);
      if (headings_.size() != rows[first].cells.size()) headings_.clear();  // a title
    }
  }
  rows_.clear();
  for (std::size_t k = first; k < count; ++k) {
    if (rows[k].is_comment) continue;
    if (!is_data(rows[k])) fail("has no number in line " + std::to_string(rows[k].line));
    rows_.push_back(std::move(rows[k]));
  }
}

/// header, first: indices of the headings and of the first numbers; a line of units may stand between them.
void TextTable::take_headings(const std::vector<Row>& rows, std::size_t header, std::size_t first) {
  const std::size_t width = rows[first].cells.size();
  std::vector<std::string_view> names = rows[header].cells;
  if (separator_ == kSpaces) names = spaced_headings(names, width);
  while (names.size() > width && names.back().empty()) names.pop_back();
  std::vector<std::string_view> units;
  for (std::size_t k = header + 1; k < first && units.empty(); ++k)
    if (!rows[k].is_comment) units = rows[k].cells;
  headings_.clear();
  for (std::size_t k = 0; k < names.size(); ++k)
    headings_.push_back(read_heading(unquoted(names[k]), k < units.size() ? unquoted(units[k]) : ""));
}

void TextTable::check_widths() {
  for (const Row& row : rows_) {
    std::size_t width = row.cells.size();
    while (width > headings_.size() && row.cells[width - 1].empty()) --width;
    if (width > headings_.size())
      fail("has " + std::to_string(width) + " cells in line " + std::to_string(row.line) + " below " +
           std::to_string(headings_.size()) + (headings_.size() == 1 ? " name" : " names") +
           (separator_ == ',' ? ": where commas are decimal commas, separate the columns by semicolons"
                              : ": name every column"));
  }
}

TextTable::Style TextTable::find_style() {
  Signs signs;
  for (const Row& row : rows_)
    for (const std::string_view cell : row.cells) signs.add(cell);
  const bool comma_means_both = signs.decimal_comma && (signs.grouping_comma || signs.decimal_point);
  if (comma_means_both || (signs.grouping_point && (signs.decimal_point || signs.grouping_comma)))
    fail("has numbers with decimal commas and others with decimal points: write them alike");
  const bool is_open = !signs.open_comma.empty() && !signs.decimal_comma && !signs.grouping_comma;
  Style style;
  style.point_groups = signs.grouping_point;
  style.comma_is_decimal =
      signs.decimal_comma || signs.grouping_point || (is_open && !signs.decimal_point && separator_ == ';');
  if (is_open && style.comma_is_decimal && !signs.grouping_point) doubtful_ = signs.open_comma;
  style.comma_groups = signs.grouping_comma || (is_open && signs.decimal_point);
  const auto refuse = [&](std::string_view cell, char sign) {
    std::string as_decimal(cell), without(cell);
    std::ranges::replace(as_decimal, ',', '.');
    std::erase(without, sign);
    fail("holds \"" + std::string(cell) + "\", which may be " + as_decimal + " or " + without +
         ": write it with a decimal point and without groups of digits");
  };
  if (is_open && !style.comma_is_decimal && !style.comma_groups) refuse(signs.open_comma, ',');
  if (style.comma_is_decimal && !style.point_groups && !signs.open_point.empty())
    refuse(signs.open_point, '.');
  return style;
}

std::optional<double> TextTable::number(std::string_view cell) const {
  std::optional<Written> parts = written(cell);
  if (!parts) return {};
  std::string& digits = parts->digits;
  const char decimal = style_.comma_is_decimal ? ',' : '.', group = style_.comma_is_decimal ? '.' : ',';
  const bool may_group = style_.comma_is_decimal ? style_.point_groups : style_.comma_groups;
  const std::string whole = digits.substr(0, digits.find(decimal));
  if (whole.find(group) != std::string::npos) {
    if (!may_group || !is_grouped(whole, group)) return {};
    std::erase(digits, group);
  }
  std::ranges::replace(digits, decimal, '.');
  const auto value = core::parse_number<double>(digits.append(parts->exponent));
  return value && parts->is_negative ? -*value : value;
}

bool TextTable::begins_with_number(std::size_t column) const {
  return column < rows_.front().cells.size() && is_number(rows_.front().cells[column]);
}

template <typename Read>
std::vector<double> TextTable::column(std::size_t index, const std::string& what, const Read& read) const {
  std::vector<double> values;
  values.reserve(rows_.size());
  for (const Row& row : rows_) {
    const std::optional<double> value = index < row.cells.size() ? read(row.cells[index]) : std::nullopt;
    if (!value)
      fail("has no " + what + (headings_.empty() ? "" : " under \"" + headings_[index].text + '"') +
           " in line " + std::to_string(row.line));
    values.push_back(*value);
  }
  return values;
}

std::vector<double> TextTable::numbers(std::size_t index) const {
  return column(index, "number", [this](std::string_view cell) { return number(cell); });
}

std::vector<double> TextTable::seconds(std::size_t index) const {
  const double factor = headings_.empty() ? 1 : headings_[index].factor;
  if (factor == 0) fail("has " + unit_problem(headings_[index]));
  return column(index, "number", [&](std::string_view cell) -> std::optional<double> {
    if (const auto clock = clock_seconds(cell)) return clock;
    const std::optional<double> value = number(cell);
    return value ? std::optional(*value * factor) : std::nullopt;
  });
}

std::optional<std::size_t> TextTable::find_time() const {
  std::vector<std::size_t> times, plain, named;
  for (std::size_t k = 0; k < headings_.size(); ++k) {
    const Heading& heading = headings_[k];
    if (heading.quantity != Quantity::time) continue;
    times.push_back(k);
    if (heading.has_name_of_quantity) named.push_back(k);
    const auto is_name = [&](std::string_view name) { return same_name(heading.name, name); };
    if (is_name("time") || is_name("zeit") || is_name("temps") || is_name("t")) plain.push_back(k);
  }
  for (const auto& found : {plain, named, times})
    if (found.size() == 1) return found[0];
  if (times.empty()) return {};
  std::string list;
  for (const std::size_t k : times) list += (list.empty() ? "\"" : ", \"") + headings_[k].text + '"';
  fail("has several columns of times, " + list + ": name one of them \"time\"");
}

/// True if rows have two cells that could be one number with a decimal comma, or a single one.
bool TextTable::is_open() const {
  const auto is_one_or_two = [](const Row& row) {
    return row.cells.size() == 2 && !row.is_quoted && is_digits(row.cells[1]) &&
           row.cells[1].data() == row.cells[0].data() + row.cells[0].size() + 1 &&
           row.cells[0].find('.') == std::string_view::npos;
  };
  return separator_ == ',' && std::ranges::any_of(rows_, is_one_or_two) &&
         std::ranges::all_of(rows_,
                             [&](const Row& row) { return row.cells.size() == 1 || is_one_or_two(row); });
}

bool TextTable::may_have_decimal_commas() const { return headings_.empty() && is_open(); }

/// True for whole numbers that increase from row to row, as those of a column of times or frames do, each
/// with another cell beside it.
bool TextTable::first_cells_increase() const {
  double last = -std::numeric_limits<double>::infinity();
  return std::ranges::all_of(rows_, [&](const Row& row) {
    const auto value = core::parse_number<double>(row.cells[0]);
    return row.cells.size() > 1 && value && *value > std::exchange(last, *value);
  });
}

void TextTable::join_cells() {
  separator_ = kNoSeparator;
  std::vector<Heading> headings = std::move(headings_);
  find_table(split(separator_), {});
  headings_ = std::move(headings);
  style_ = find_style();
}

}  // namespace dic::io
