#pragma once

#include <vector>

#include "core/parallel.hpp"

namespace dic {

/// A local maximum of a correlation surface.
struct Candidate {
  int x = 0, y = 0;                   ///< whole pixel
  float value = 0;                    ///< there
  double offset_x = 0, offset_y = 0;  ///< top of the quadratic through the 3x3 neighbourhood, px
  double estimate = 0;                ///< its height
};

/// A surface of floats, ny rows of nx values, packed.
struct SurfaceView {
  const float* values = nullptr;
  int nx = 0, ny = 0;

  const float* row(int y) const { return values + static_cast<std::ptrdiff_t>(y) * nx; }
};

/// The local maxima among 8 neighbours whose value is at least `lowest`, best estimate first; where there is
/// none, the highest value of all. A plateau may count more than once.
std::vector<Candidate> find_candidates(const SurfaceView& surface, double lowest, ThreadPool& pool);

}  // namespace dic
