#pragma once

#include <vector>

#include "core/parallel.hpp"

namespace dic::match {

/// A local maximum of a correlation surface.
struct Candidate {
  int x = 0, y = 0;                   ///< position, whole px
  float value = 0;                    ///< value at this position
  double offset_x = 0, offset_y = 0;  ///< offset of the top of the quadratic through the 3x3 neighbours, px
  double estimate = 0;                ///< height of the quadratic's top
};

/// A surface of floats, ny rows of nx values, packed.
struct SurfaceView {
  const float* values = nullptr;
  int nx = 0, ny = 0;

  const float* row(int y) const { return values + static_cast<std::ptrdiff_t>(y) * nx; }
};

/// Finds the local maxima among 8 neighbours whose value is at least `lowest`, best estimate first. If there
/// are none, returns the highest value of all. A plateau may count more than once.
std::vector<Candidate> find_candidates(const SurfaceView& surface, double lowest, core::ThreadPool& pool);

}  // namespace dic::match
