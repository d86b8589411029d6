#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>

namespace dic::core {

/// Parses a decimal number regardless of the system's locale. Returns nothing if the text holds anything
/// else, or if the number is not finite or does not fit the type.
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number value{};
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return {};
  if constexpr (std::is_floating_point_v<Number>)
    if (!std::isfinite(value)) return {};
  return value;
}

/// The shortest text that `parse_number` reads as the same number: "0.0001", "150", "1e-06".
inline std::string number_text(double value) {
  const double size = std::abs(value);
  const bool is_short = size == 0 || (size >= 1e-5 && size < 1e15);
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value,
                                 is_short ? std::chars_format::fixed : std::chars_format::scientific)
                       .ptr;
  return {digits, end};
}

}  // namespace dic::core
