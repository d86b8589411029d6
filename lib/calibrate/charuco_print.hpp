#pragma once

#include <cstdint>
#include <dic/calibrate.hpp>
#include <vector>

namespace dic::calibration {

/// The black and white fields of a ChArUco board, row by row from its upper left corner.
struct CharucoPrint {
  int marker_fields = 0;  ///< side of a marker in fields
  std::vector<std::uint8_t>
      black;  ///< [row, column]: 1 for each square that is black; the others have a marker
  /// [row, column, field row, field column]: 1 for each black field of the marker of a square.
  std::vector<std::uint8_t> fields;
};
CharucoPrint print_charuco(const Target& target);

}  // namespace dic::calibration
