#pragma once

#include <dic/export.hpp>
#include <string>
#include <vector>

namespace dic::draw {

/// Round numbers along an axis, which are printed as multiples of 10^exponent.
struct Ticks {
  double step = 1;
  int decimals = 0;
  int exponent = 0;  ///< a multiple of 3; 0 if plain numbers are short

  /// Chooses at most about `at_most` ticks for the range; min < max.
  Ticks(double min, double max, int at_most);

  /// The ticks from min to max.
  std::vector<double> values(double min, double max) const;
  /// Text of a value without the factor: "−1.5".
  std::string label(double value, int more_decimals = 0) const;
  /// Text of the factor: "×10⁻³", or empty.
  std::string factor() const;
};

/// The largest of 1, 2 or 5 times a power of ten that is not above `value`, which must be > 0.
double round_below(double value);

/// A number in few characters: "0.5", "20", "1e+06".
DIC_INTERNAL_API std::string short_number(double value);

}  // namespace dic::draw
