#include "image/frame_order.hpp"

#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <vector>

namespace dic::image {
namespace {

constexpr std::string_view kMinus = "\xE2\x88\x92";  // U+2212

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80 ||
         c == '%';
}
char at(std::string_view name, std::size_t k) { return k < name.size() ? name[k] : '\0'; }

std::size_t end_of_digits(std::string_view name, std::size_t k) {
  while (k < name.size() && is_digit(name[k])) ++k;
  return k;
}

/// Units that are written behind a number without a space.
bool begins_with_unit(std::string_view text) {
  static constexpr auto units = std::to_array<std::string_view>(
      {"N",  "mN", "kN", "MN", "lbf", "kgf", "kip", "kips", "nm", "um",  "µm",  "mm",  "cm",  "m",
       "in", "us", "µs", "ms", "s",   "sec", "min", "h",    "Pa", "kPa", "MPa", "GPa", "psi", "bar",
       "V",  "mV", "kV", "A",  "mA",  "Hz",  "kHz", "deg",  "C",  "K",   "%",   "pct", "px"});
  const auto end = std::ranges::find_if_not(text, is_letter) - text.begin();
  return std::ranges::find(units, text.substr(0, end)) != units.end();
}

/// The name before `end`, with each number as "0".
std::string pattern_before(std::string_view name, std::size_t end) {
  std::string pattern;
  for (std::size_t k = 0; k < end;) {
    pattern += is_digit(name[k]) ? '0' : name[k];
    k = is_digit(name[k]) ? std::min(end_of_digits(name, k), end) : k + 1;
  }
  return pattern;
}

/// The digits behind the "." or "," at `sign`, if these may be decimals: "1.5" but not "2026.11.27" or
/// "1.png".
std::string_view decimals_at(std::string_view name, std::size_t begin, std::size_t sign) {
  if ((at(name, sign) != '.' && at(name, sign) != ',') || !is_digit(at(name, sign + 1))) return {};
  const std::size_t end = end_of_digits(name, sign + 1);
  const bool goes_on = (at(name, end) == '.' || at(name, end) == ',') && is_digit(at(name, end + 1));
  const bool began_before =
      begin > 1 && (name[begin - 1] == '.' || name[begin - 1] == ',') && is_digit(name[begin - 2]);
  return goes_on || began_before ? std::string_view() : name.substr(sign + 1, end - sign - 1);
}

std::string_view without_leading_zeros(std::string_view digits) {
  return digits.substr(std::min(digits.find_first_not_of('0'), digits.size()));
}

std::string_view without_trailing_zeros(std::string_view digits) {
  const auto last = digits.find_last_not_of('0');
  return digits.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

/// The numbers that follow one pattern in all names.
struct Numbers {
  std::map<std::string, std::set<std::string>> decimals;  ///< by the digits before the sign
  bool some_have_none = false;

  /// Decimals, or numbers of their own (camera 1, frame 12)? The latter are counted up, or would have equal
  /// values as decimals.
  bool are_decimal() const {
    std::set<std::size_t> widths;
    bool are_counted = !decimals.empty(), are_equal = false;
    for (const auto& [whole, fractions] : decimals) {
      std::set<std::string_view> values;
      std::vector<unsigned long long> counts;
      for (const std::string& digits : fractions) {
        widths.insert(digits.size());
        are_equal |= !values.insert(without_trailing_zeros(digits)).second;
        counts.push_back(std::stoull(digits.substr(0, 18)));
      }
      std::ranges::sort(counts);
      const bool follow = counts.back() - counts.front() + 1 == counts.size();
      are_counted &= follow && (counts.size() > 1 || counts.front() <= 1);
    }
    if (are_equal) return false;
    return some_have_none || (widths.size() > 1 && !are_counted);
  }
};

}  // namespace

struct FrameOrder::Token {
  bool is_number = false;
  bool is_negative = false;
  unsigned char character = 0;                 ///< of a token that is no number
  std::string_view whole = {}, fraction = {};  ///< without leading and trailing zeros
  std::size_t end = 0;

  std::strong_ordering operator<=>(const Token& other) const {
    if (!is_number || !other.is_number) {
      const unsigned char mine = is_number ? '0' : character, its = other.is_number ? '0' : other.character;
      return mine <=> its;
    }
    if (is_negative != other.is_negative) return other.is_negative <=> is_negative;
    std::strong_ordering order = whole.size() <=> other.whole.size();
    if (order == 0) order = whole <=> other.whole;
    if (order == 0) order = fraction <=> other.fraction;
    return is_negative ? 0 <=> order : order;
  }
};

FrameOrder::FrameOrder(std::span<const std::string> names) {
  std::set<std::string> negative, plain;
  std::map<std::string, Numbers> numbers;
  for (const std::string& name : names)
    for (std::size_t k = 0; k < name.size();) {
      if (!is_digit(name[k])) {
        ++k;
        continue;
      }
      const bool has_sign = k > 0 && name[k - 1] == '-' && !is_digit(k > 1 ? name[k - 2] : '-');
      const std::size_t begin = has_sign ? k - 1 : k, end = end_of_digits(name, k);
      const std::string pattern = pattern_before(name, begin);
      (has_sign ? negative : plain).insert(pattern);
      const std::string_view decimals = decimals_at(name, k, end);
      if (!decimals.empty())
        numbers[pattern].decimals[name.substr(k, end - k)].emplace(decimals);
      else if (!(at(name, end) == '.' && is_digit(at(name, end + 1))))
        numbers[pattern].some_have_none = true;
      k = decimals.empty() ? end : end + 1 + decimals.size();
    }
  std::ranges::set_intersection(negative, plain, std::inserter(signed_after_, signed_after_.end()));
  for (const auto& [pattern, found] : numbers)
    if (!found.decimals.empty() && found.are_decimal()) decimals_after_.insert(pattern);
}

FrameOrder::Token FrameOrder::next(std::string_view name, std::size_t begin) const {
  std::size_t k = begin;
  bool is_negative = false;
  if (name.substr(k).starts_with(kMinus) && is_digit(at(name, k + kMinus.size()))) {
    is_negative = true;
    k += kMinus.size();
  } else if ((name[k] == '-' || name[k] == '+') && is_digit(at(name, k + 1))) {
    const char before = k > 0 ? name[k - 1] : '/';
    const bool is_sign =
        std::string_view("/_=([").find(before) != std::string_view::npos ||
        (!signed_after_.empty() && !is_digit(before) && signed_after_.contains(pattern_before(name, k)));
    if (is_sign) is_negative = name[k++] == '-';
  }
  if (!is_digit(name[k])) return {.character = static_cast<unsigned char>(name[k]), .end = k + 1};
  Token token{.is_number = true, .end = end_of_digits(name, k)};
  token.whole = without_leading_zeros(name.substr(k, token.end - k));
  std::string_view decimals = decimals_at(name, k, token.end);
  if (decimals.empty() && at(name, token.end) == 'p') {  // "0p5kN"
    const std::size_t end = end_of_digits(name, token.end + 1);
    const bool has_unit = end > token.end + 1 && begins_with_unit(name.substr(end));
    if (has_unit) decimals = name.substr(token.end + 1, end - token.end - 1);
  } else if (!decimals.empty()) {
    const bool has_unit = begins_with_unit(name.substr(token.end + 1 + decimals.size()));
    if (!has_unit && (decimals_after_.empty() || !decimals_after_.contains(pattern_before(name, begin))))
      decimals = {};
  }
  if (!decimals.empty()) token.end += 1 + decimals.size();
  token.fraction = without_trailing_zeros(decimals);
  token.is_negative = is_negative && !(token.whole.empty() && token.fraction.empty());
  return token;
}

bool FrameOrder::less(std::string_view a, std::string_view b) const {
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const Token mine = next(a, i), its = next(b, j);
    if (const auto order = mine <=> its; order != 0) return order < 0;
    i = mine.end;
    j = its.end;
  }
  if (i < a.size() || j < b.size()) return j < b.size();
  return a < b;  // the names differ in zeros at most
}

}  // namespace dic::image
