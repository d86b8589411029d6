#include "io/heading.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace dic::io {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
/// Letters and digits; every byte of a letter outside ASCII counts as one.
bool is_word(char c) {
  return is_digit(c) || is_upper(c) || is_lower(c) || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

/// Line breaks and other control characters become spaces: names go to tables and to the terminal.
std::string printable(std::string_view text) {
  std::string clean(text);
  for (char& c : clean)
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) c = ' ';
  return clean;
}

std::string lower(std::string_view text) {
  std::string small(text);
  for (char& c : small)
    if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
  return small;
}

struct Unit {
  std::string_view name;
  Quantity quantity;
  double factor;  ///< to s or N; 1 for other quantities
};

constexpr double kPound = 4.4482216152605, kKilogram = 9.80665;  // N, exact by definition

/// Abbreviations: letter case matters where two of them differ in it only.
constexpr auto kUnits = std::to_array<Unit>({
    {"N", Quantity::force, 1},
    {"mN", Quantity::force, 1e-3},
    {"MN", Quantity::force, 1e6},
    {"kN", Quantity::force, 1e3},
    {"µN", Quantity::force, 1e-6},
    {"μN", Quantity::force, 1e-6},
    {"uN", Quantity::force, 1e-6},
    {"nN", Quantity::force, 1e-9},
    {"cN", Quantity::force, 1e-2},
    {"daN", Quantity::force, 10},
    {"dyn", Quantity::force, 1e-5},
    {"lbf", Quantity::force, kPound},
    {"lb", Quantity::force, kPound},
    {"lbs", Quantity::force, kPound},
    {"klbf", Quantity::force, 1e3 * kPound},
    {"kip", Quantity::force, 1e3 * kPound},
    {"kips", Quantity::force, 1e3 * kPound},
    {"ozf", Quantity::force, kPound / 16},
    {"kgf", Quantity::force, kKilogram},
    {"kp", Quantity::force, kKilogram},
    {"kg", Quantity::force, kKilogram},
    {"gf", Quantity::force, 1e-3 * kKilogram},
    {"tf", Quantity::force, 1e3 * kKilogram},
    {"s", Quantity::time, 1},
    {"sec", Quantity::time, 1},
    {"secs", Quantity::time, 1},
    {"sek", Quantity::time, 1},
    {"ms", Quantity::time, 1e-3},
    {"msec", Quantity::time, 1e-3},
    {"µs", Quantity::time, 1e-6},
    {"μs", Quantity::time, 1e-6},
    {"us", Quantity::time, 1e-6},
    {"usec", Quantity::time, 1e-6},
    {"ns", Quantity::time, 1e-9},
    {"min", Quantity::time, 60},
    {"mins", Quantity::time, 60},
    {"h", Quantity::time, 3600},
    {"hr", Quantity::time, 3600},
    {"hrs", Quantity::time, 3600},
    {"d", Quantity::time, 86400},
    {"h:mm:ss", Quantity::time, 1},
    {"hh:mm:ss", Quantity::time, 1},
});

/// Written out, in any letter case, also in the plural and with a prefix.
constexpr auto kUnitWords = std::to_array<Unit>({
    {"newton", Quantity::force, 1},
    {"pound-force", Quantity::force, kPound},
    {"pound", Quantity::force, kPound},
    {"pounds-force", Quantity::force, kPound},
    {"kilogram-force", Quantity::force, kKilogram},
    {"kilopond", Quantity::force, kKilogram},
    {"second", Quantity::time, 1},
    {"sekunde", Quantity::time, 1},
    {"sekunden", Quantity::time, 1},
    {"minute", Quantity::time, 60},
    {"minuten", Quantity::time, 60},
    {"hour", Quantity::time, 3600},
    {"stunde", Quantity::time, 3600},
    {"stunden", Quantity::time, 3600},
    {"day", Quantity::time, 86400},
});
constexpr std::array<std::pair<std::string_view, double>, 5> kPrefixes = {
    {{"kilo", 1e3}, {"mega", 1e6}, {"milli", 1e-3}, {"micro", 1e-6}, {"nano", 1e-9}}};

/// Units of other quantities, which say that a column is neither time nor force.
constexpr std::array<std::string_view, 48> kOtherUnits = {
    "m",       "mm", "cm",  "µm",    "μm",  "um",    "nm",    "km",     "in",     "inch",    "inches", "ft",
    "%",       "-",  "1",   "mm/mm", "m/m", "in/in", "µm/m",  "μm/m",   "strain", "mstrain", "µε",     "με",
    "ustrain", "pa", "kpa", "mpa",   "gpa", "n/mm²", "n/mm2", "n/mm^2", "psi",    "ksi",     "bar",    "v",
    "mv",      "a",  "ma",  "°c",    "c",   "k",     "°",     "deg",    "hz",     "mm/s",    "mm/min", "px"};

std::optional<Unit> unit_word(std::string_view text) {
  const std::string small = lower(text);
  std::string_view word = small;
  double factor = 1;
  for (const auto& [prefix, value] : kPrefixes)
    if (word.starts_with(prefix) && word != "kilopond" && !word.starts_with("kilogram")) {
      word.remove_prefix(prefix.size());
      factor = value;
      break;
    }
  const std::string_view singular = word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
  for (const Unit& unit : kUnitWords)
    if (unit.name == word || unit.name == singular)
      return Unit{unit.name, unit.quantity, unit.factor * factor};
  return {};
}

struct FoundUnit {
  std::optional<Unit> unit;   ///< of time or force, or of another quantity
  bool is_ambiguous = false;  ///< two units of this spelling, but for letter case
};

FoundUnit find_unit(std::string_view text) {
  for (const Unit& unit : kUnits)
    if (unit.name == text) return {unit};
  if (const auto unit = unit_word(text)) return {unit};
  const std::string small = lower(text);
  FoundUnit found;
  for (const Unit& unit : kUnits)
    if (lower(unit.name) == small) {
      found.is_ambiguous = found.unit && found.unit->factor != unit.factor;
      found.unit = unit;
      if (found.is_ambiguous) return found;
    }
  if (!found.unit && std::ranges::find(kOtherUnits, small) != kOtherUnits.end())
    found.unit = Unit{"", Quantity::other, 1};
  return found;
}

/// The words of a name in lower case: "AxialForce" and "axial_force" are "axial", "force".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words;
  bool begins = true;
  for (std::size_t k = 0; k < name.size(); ++k) {
    if (!is_word(name[k])) {
      begins = true;
      continue;
    }
    const bool is_hump = k > 0 && is_upper(name[k]) && is_lower(name[k - 1]);
    const bool is_number = k > 0 && is_digit(name[k]) != is_digit(name[k - 1]);
    if (begins || is_hump || is_number) words.emplace_back();
    words.back() += lower(name.substr(k, 1));
    begins = false;
  }
  return words;
}

template <std::size_t n>
bool has_any(const std::vector<std::string>& words, const std::array<std::string_view, n>& known) {
  return std::ranges::any_of(
      words, [&](const std::string& word) { return std::ranges::find(known, word) != known.end(); });
}

Quantity quantity_of_name(std::string_view name) {
  constexpr std::array<std::string_view, 9> frame = {"frame",   "frames", "image",  "images",  "img",
                                                     "picture", "bild",   "imagen", "immagine"};
  constexpr std::array<std::string_view, 7> time = {"time",   "times", "zeit",     "temps",
                                                    "tiempo", "tempo", "timestamp"};
  constexpr std::array<std::string_view, 13> force = {"force",  "forces", "load",  "loads",  "kraft",
                                                      "last",   "fuerza", "carga", "fuerza", "forza",
                                                      "carico", "effort", "kracht"};
  // A "load step", "force rate" or "load point displacement" is no force, "frame time" no number of a frame.
  constexpr std::array<std::string_view, 22> not_force = {
      "rate",   "step",  "cycle",        "cycles",    "number", "no",       "nr",     "count",
      "id",     "index", "displacement", "extension", "stroke", "position", "strain", "factor",
      "status", "cell",  "time",         "range",     "limit",  "area"};
  const std::vector<std::string> words = words_of(name);
  if (words.empty()) return Quantity::unknown;
  const std::string& last = words.back();
  const bool is_time = has_any(words, time) || last.ends_with("zeit") || last.ends_with("time") ||
                       lower(trimmed(name)) == "t" || lower(trimmed(name)) == "x_value";  // of LabVIEW
  if (is_time) return Quantity::time;
  if (has_any(words, frame)) return Quantity::frame;
  const bool is_force = has_any(words, force) || last.ends_with("kraft") || lower(trimmed(name)) == "f";
  return is_force && !has_any(words, not_force) ? Quantity::force : Quantity::unknown;
}

struct NameAndUnit {
  std::string_view name, unit;
};

/// The text in the last brackets, wherever they stand: "Force (kN)", "[kN] Force".
std::optional<NameAndUnit> split_at_brackets(std::string_view text) {
  const auto close = text.find_last_of(")]}");
  if (close == std::string_view::npos) return {};
  const auto open = text.substr(0, close).find_last_of("([{");
  if (open == std::string_view::npos) return {};
  const std::string_view unit = trimmed(text.substr(open + 1, close - open - 1));
  const std::string_view before = trimmed(text.substr(0, open)), after = trimmed(text.substr(close + 1));
  return NameAndUnit{before.empty() ? after : before, unit};
}

/// A known unit behind a sign or a space: "F / kN", "Force_kN", "Time, s", "Kraft in kN".
std::optional<NameAndUnit> split_at_sign(std::string_view text) {
  const auto at = text.find_last_of("_/,:;.- \t");
  if (at == std::string_view::npos) return {};
  const std::string_view unit = trimmed(text.substr(at + 1));
  const FoundUnit found = find_unit(unit);
  if (!found.unit || found.unit->quantity == Quantity::other) return {};
  std::string_view name = trimmed(text.substr(0, at));
  while (!name.empty() && std::string_view("_/,:;.-").find(name.back()) != std::string_view::npos)
    name = trimmed(name.substr(0, name.size() - 1));
  if (lower(name).ends_with(" in")) name = trimmed(name.substr(0, name.size() - 3));
  const Quantity quantity = quantity_of_name(name);
  if (quantity != found.unit->quantity) return {};  // "Force min" is a smallest force, no force in minutes
  return NameAndUnit{name, unit};
}

}  // namespace

Heading read_heading(std::string_view text, std::string_view unit) {
  NameAndUnit parts{trimmed(text), {}};
  if (const auto in_brackets = split_at_brackets(parts.name))
    parts = *in_brackets;
  else if (const auto behind_sign = split_at_sign(parts.name))
    parts = *behind_sign;
  else if (parts.name.size() > 1 && find_unit(parts.name).unit)
    parts.unit = parts.name;  // "kN"
  if (const std::string_view below = trimmed(unit); !below.empty()) {
    const auto in_brackets = split_at_brackets(below);
    parts.unit = in_brackets ? in_brackets->unit : below;
  }
  Heading heading{
      .text = printable(trimmed(text)), .name = printable(parts.name), .unit = printable(parts.unit)};
  heading.quantity = quantity_of_name(parts.name);
  heading.has_name_of_quantity = heading.quantity != Quantity::unknown;
  if (parts.unit.empty()) return heading;
  const FoundUnit found = find_unit(parts.unit);
  const bool is_time = heading.quantity == Quantity::time;
  if (!found.unit || (is_time && found.unit->quantity != Quantity::time)) {
    heading.factor = is_time || heading.quantity == Quantity::force ? 0 : 1;
    return heading;
  }
  if (heading.quantity == Quantity::frame) return heading;
  // The unit has the last word: "Load (MPa)" is no force.
  heading.has_name_of_quantity = heading.quantity == found.unit->quantity;
  heading.quantity = found.unit->quantity;
  heading.factor = found.is_ambiguous ? 0 : found.unit->factor;
  return heading;
}

bool is_unit(std::string_view text) {
  const auto in_brackets = split_at_brackets(trimmed(text));
  if (in_brackets && in_brackets->name.empty()) return true;
  return find_unit(trimmed(text)).unit.has_value();
}

std::string unit_problem(const Heading& heading) {
  if (find_unit(heading.unit).is_ambiguous)
    return "a unit \"" + heading.unit + "\", which may be mN or MN: write the one that it is";
  const bool is_time = heading.quantity == Quantity::time;
  return "an unknown unit \"" + heading.unit + "\": give " +
         (is_time ? "ns, us, ms, s, min, h or d"
                  : "N, mN, kN, MN, lbf, kip, kgf or another of the user guide");
}

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](std::string_view name) {
    std::string letters;
    for (const char c : lower(name))
      if (is_word(c)) letters += c;
    return letters.empty() ? std::string(trimmed(name)) : letters;
  };
  return plain(a) == plain(b);
}

}  // namespace dic::io
