#pragma once

#include <string>
#include <vector>

namespace dic::draw {

/// Round numbers along an axis, and how to print them: as multiples of 10^exponent.
struct Ticks {
  double step = 1;
  int decimals = 0;
  int exponent = 0;  ///< a multiple of 3; 0 where plain numbers are short

  /// min < max.
  Ticks(double min, double max, int at_most);

  /// The ticks from min to max.
  std::vector<double> values(double min, double max) const;
  /// A number of the axis without its factor: "−1.5".
  std::string label(double value, int more_decimals = 0) const;
  /// "×10⁻³", or empty.
  std::string factor() const;
};

/// 1, 2 or 5 times a power of ten: the largest that is not above `value`, > 0.
double round_below(double value);

/// "0.5", "20", "1e+06".
std::string short_number(double value);

}  // namespace dic::draw
