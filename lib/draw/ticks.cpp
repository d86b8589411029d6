#include "draw/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace dic::draw {
namespace {

/// The smallest of 1, 2, 5, 10 times a power of ten that is not below `value`.
double round_above(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

}  // namespace

Ticks::Ticks(double min, double max, int at_most) : step(round_above((max - min) / at_most)) {
  const double largest = std::max(std::abs(min), std::abs(max));
  if (largest < 0.01 || largest >= 1e5) exponent = 3 * static_cast<int>(std::floor(std::log10(largest) / 3));
  decimals = std::max(0, -static_cast<int>(std::floor(std::log10(step / std::pow(10, exponent)) + 1e-9)));
}

std::vector<double> Ticks::values(double min, double max) const {
  const double tolerance = 1e-9 * (max - min);
  std::vector<double> found;
  for (double n = std::ceil((min - tolerance) / step); n * step <= max + tolerance; ++n)
    found.push_back(n * step);
  return found;
}

std::string Ticks::label(double value, int more_decimals) const {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals + more_decimals,
                std::abs(value) / std::pow(10, exponent));
  const bool is_zero = std::string_view(text).find_first_not_of("0.") == std::string_view::npos;
  return (value < 0 && !is_zero ? "−" : "") + std::string(text);
}

std::string Ticks::factor() const {
  if (exponent == 0) return "";
  constexpr const char* kDigits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "×10⁻" : "×10";
  for (const char digit : std::to_string(std::abs(exponent))) text += kDigits[digit - '0'];
  return text;
}

double round_below(double value) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  for (const double factor : {5.0, 2.0})
    if (factor * power <= value * (1 + 1e-9)) return factor * power;
  return power;
}

std::string short_number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value == 0 ? 0 : value);  // -0 has no sign
  return text;
}

}  // namespace dic::draw
