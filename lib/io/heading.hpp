#pragma once

#include <string>
#include <string_view>

namespace dic::io {

/// The quantity of a column, as far as its heading says.
enum class Quantity { unknown, frame, time, force, other };

/// The heading of a column: "Force [kN]", "Time (ms)", "F / kN", "Force_kN".
struct Heading {
  std::string text;  ///< as in the file
  std::string name;  ///< without the unit
  std::string unit;  ///< as in the file; empty if there is none
  Quantity quantity = Quantity::unknown;
  bool has_name_of_quantity = false;  ///< false where the unit alone tells the quantity
  /// Factor from the column's unit to s or N: 1 without a unit and for other quantities. 0 if the unit of a
  /// time or force is unknown.
  double factor = 1;
};

/// Reads a heading. unit: the text below it where units have a line of their own, else empty.
Heading read_heading(std::string_view text, std::string_view unit = {});

/// True for a unit in a line of units: "(kN)", "[s]", "mm".
bool is_unit(std::string_view text);

/// Why the factor of a heading is 0, and what to do: the end of a sentence.
std::string unit_problem(const Heading& heading);

/// Two names are equal but for letter case, spaces and punctuation.
bool same_name(std::string_view a, std::string_view b);

}  // namespace dic::io
