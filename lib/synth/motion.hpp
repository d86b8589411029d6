#pragma once

#include <dic/synth.hpp>
#include <optional>

namespace dic::synth {

struct Position {
  double x = 0, y = 0;
};

/// A reference position, and the body that it belongs to (Motion::body).
struct MaterialPoint : Position {
  int body = 0;
};

/// The reference position of the material that is seen at (x, y) at `amount`: X with X + u(X) = (x, y), to
/// 1e-12 px. None inside an open crack or
/// a hole; a pixel that the edge of a hole crosses still shows material.
std::optional<MaterialPoint> reference_position(const Motion& motion, double amount, double x, double y);

/// Share of material in the pixel whose middle shows it; less than 1 at the edge of a hole, which is 1 px
/// wide.
double material_share(const Motion& motion, const MaterialPoint& seen);

}  // namespace dic::synth
