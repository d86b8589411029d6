#pragma once

#include <cstddef>
#include <dic/draw.hpp>
#include <iterator>

namespace dic::draw {

inline constexpr Colour kInk{40, 40, 40}, kGridLine{225, 225, 225}, kPaper{255, 255, 255};

/// Colour of series k: one of eight colours of similar lightness that people with any colour vision can
/// distinguish (Okabe and Ito); they repeat.
inline Colour series_colour(std::size_t k) {
  constexpr Colour kColours[] = {{0, 114, 178},  {213, 94, 0},  {0, 158, 115},   {204, 121, 167},
                                 {86, 180, 233}, {230, 159, 0}, {120, 120, 120}, {0, 0, 0}};
  return kColours[k % std::size(kColours)];
}

}  // namespace dic::draw
