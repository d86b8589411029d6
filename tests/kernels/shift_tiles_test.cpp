#include "ncc/simt/shift_tiles.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace dic::kernels {
namespace {

/// Number of multiplications of each (shift, element of the reference).
using Products = std::map<std::pair<int, int>, int>;

/// Products from the definition: the shifts of the axis, and the elements of the reference that meet the
/// window.
Products overlaps(const ShiftAxis& axis) {
  Products products;
  for (int shift = axis.shift_min; shift < axis.shift_min + axis.shifts; ++shift)
    for (int i = 0; i < axis.reference; ++i)
      if (i + shift >= 0 && i + shift < axis.window) ++products[{shift, i}];
  return products;
}

/// Adds the products of a tile in a step: element e of the band meets the window's element e + shift.
void multiply(const ShiftAxis& axis, int tile, int band, int step, Products& products) {
  const int end = axis.band_end(band);
  for (int e = step * axis.unit; e < (step + 1) * axis.unit; ++e) {
    for (int s = 0; s < axis.tile; ++s) {
      const int shift = axis.shift_of(tile) + s, i = axis.band_begin(band) + e - (axis.lead > 0 ? s : 0);
      const bool of_band = i >= axis.band_begin(band) && i < end;  // other elements are zero in shared memory
      const bool wanted = shift < axis.shift_min + axis.shifts && i + shift >= 0 && i + shift < axis.window;
      if (of_band && wanted) ++products[{shift, i}];
    }
  }
}

Products work_of(const ShiftAxis& axis) {
  Products products;
  for (int tile = 0; tile < axis.blocks * axis.tiles; ++tile) {
    for (int band = 0; band < axis.bands; ++band) {
      for (int group = 0; group < axis.groups; ++group) {
        const Steps steps = axis.group_steps(axis.steps(tile, band), group);
        EXPECT_LE(steps.count(), axis.steps_of_group);
        for (int step = steps.first; step < steps.last; ++step) multiply(axis, tile, band, step, products);
      }
    }
  }
  return products;
}

TEST(ShiftTiles, MultiplyEveryOverlappingElementOnce) {
  for (const int reference : {1, 7, 16, 33, 70}) {
    for (const int window : {1, 5, 16, 61}) {
      for (const auto& [shift_min, shifts] :
           {std::pair{1 - reference, window + reference - 1}, std::pair{0, 1}, std::pair{-90, 200},
            std::pair{2, 9}, std::pair{70, 5}}) {
        for (const int unit : {1, 4, 16}) {
          ShiftAxis axis{.tile = 3,
                         .unit = unit,
                         .lead = unit == 1 ? 2 : 0,
                         .shift_min = shift_min,
                         .shifts = shifts,
                         .reference = reference,
                         .window = window};
          axis.set_bands(32);
          axis.set_groups(3);
          axis.set_blocks(4);
          EXPECT_EQ(work_of(axis), overlaps(axis))
              << reference << " " << window << " " << shift_min << " " << shifts << " " << unit;
        }
      }
    }
  }
}

}  // namespace
}  // namespace dic::kernels
