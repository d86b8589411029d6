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
/// a hole.
std::optional<MaterialPoint> reference_position(const Motion& motion, double amount, double x, double y);

}  // namespace dic::synth
