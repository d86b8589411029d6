#pragma once

#include <cmath>
#include <dic/shared/field_options.hpp>
#include <dic/shared/host_device.hpp>
#include <limits>

/// Strain from the displacements of a window of nodes, for CPU and GPU: least-squares planes and strain
/// measures, as defined in <dic/fields.hpp>.
namespace dic::strain {

constexpr double missing = std::numeric_limits<double>::quiet_NaN();
constexpr int largest_window = 127;

/// d/dx and d/dy of one component.
struct Slopes {
  double x, y;
};
/// The displacement gradient.
struct Gradient {
  double ux, uy, vx, vy;
};
/// A symmetric 2x2 tensor.
struct Tensor {
  double xx, yy, xy;
};

/// Factor that turns the sums of i f and of j f over a complete window into slopes.
inline double complete_window_scale(int window, int step) {
  double squares = 0;
  for (int i = -(window / 2); i <= window / 2; ++i) squares += i * i;
  return 1 / (squares * window * step);
}

/// Sums over the nodes of an incomplete window; x and y in nodes from the centre.
struct NodeMoments {
  double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
};
struct DataMoments {
  double sum = 0, x = 0, y = 0;  ///< sums of f, x f, y f
};

/// The slopes of least-squares planes through an incomplete window.
class PartialPlane {
 public:
  /// True if at least half of the window has values. So many nodes are never on one line, so the normal
  /// equations are regular.
  DIC_HOST_DEVICE static bool has_enough(double nodes, int window) { return 2 * nodes >= window * window; }

  DIC_HOST_DEVICE PartialPlane(const NodeMoments& nodes, int step)
      : x_(nodes.x / nodes.n),
        y_(nodes.y / nodes.n),
        xx_(nodes.xx - nodes.x * x_),
        xy_(nodes.xy - nodes.x * y_),
        yy_(nodes.yy - nodes.y * y_),
        scale_(1 / ((xx_ * yy_ - xy_ * xy_) * step)) {}

  /// Sums of products of the coordinates, in nodes from their means.
  DIC_HOST_DEVICE double xx() const { return xx_; }
  DIC_HOST_DEVICE double xy() const { return xy_; }
  DIC_HOST_DEVICE double yy() const { return yy_; }

  DIC_HOST_DEVICE Slopes slopes(const DataMoments& f) const {
    const double xf = f.x - x_ * f.sum, yf = f.y - y_ * f.sum;
    return {(yy_ * xf - xy_ * yf) * scale_, (xx_ * yf - xy_ * xf) * scale_};
  }

 private:
  double x_, y_;         ///< means
  double xx_, xy_, yy_;  ///< second moments about the means
  double scale_;
};

/// The bits of `usable` that are connected with bits of `reached` by steps to neighbouring usable bits. A bit
/// stands for a node in a row of `window` nodes.
template <typename Bits>
DIC_HOST_DEVICE Bits spread_along(Bits reached, Bits usable, int window) {
  Bits up = usable, down = usable;  // runs of usable nodes of doubling length
  for (int distance = 1; distance < window; distance *= 2) {
    reached |= (up & reached << distance) | (down & reached >> distance);
    up &= up << distance;
    down &= down >> distance;
  }
  return reached;
}

DIC_HOST_DEVICE inline Tensor right_cauchy_green(const Gradient& f) {  // F^T F
  return {f.ux * f.ux + f.vx * f.vx, f.uy * f.uy + f.vy * f.vy, f.ux * f.uy + f.vx * f.vy};
}

/// ln(C) / 2, from the eigenvalues of C; the principal axes stay the same.
DIC_HOST_DEVICE inline Tensor hencky(const Tensor& c, double det_f) {
  const double mean = (c.xx + c.yy) / 2;
  const double radius = std::hypot((c.xx - c.yy) / 2, c.xy);
  const double larger = mean + radius;
  const double smaller = det_f * det_f / larger;  // mean - radius would cancel
  const double h1 = std::log(larger) / 2, h2 = std::log(smaller) / 2;
  // For isotropic C, the slope is the limit of the quotient.
  const double slope = radius > 1e-12 * mean ? (h1 - h2) / (2 * radius) : 1 / (2 * mean);
  const double trace_half = (h1 + h2) / 2;
  return {trace_half + slope * (c.xx - mean), trace_half + slope * (c.yy - mean), slope * c.xy};
}

/// (I - F^-T F^-1) / 2.
DIC_HOST_DEVICE inline Tensor almansi(const Gradient& f, double det_f) {
  const Tensor b = right_cauchy_green({f.vy / det_f, -f.uy / det_f, -f.vx / det_f, f.ux / det_f});
  return {(1 - b.xx) / 2, (1 - b.yy) / 2, -b.xy / 2};
}

/// Strain tensor of a displacement gradient, as strain_from_gradient of <dic/fields.hpp>.
DIC_HOST_DEVICE inline Tensor tensor_of(const Gradient& g, StrainMeasure measure) {
  const Gradient f = {1 + g.ux, g.uy, g.vx, 1 + g.vy};
  const double det_f = f.ux * f.vy - f.uy * f.vx;
  const bool is_deformation = det_f > 0;  // else the material is folded or flattened
  switch (measure) {
    case StrainMeasure::engineering:
      return {g.ux, g.vy, (g.uy + g.vx) / 2};
    case StrainMeasure::green_lagrange:  // (F^T F - I) / 2, written without the 1s that would cancel
      return {g.ux + (g.ux * g.ux + g.vx * g.vx) / 2, g.vy + (g.uy * g.uy + g.vy * g.vy) / 2,
              (g.uy + g.vx + g.ux * g.uy + g.vx * g.vy) / 2};
    case StrainMeasure::hencky:
      if (is_deformation) return hencky(right_cauchy_green(f), det_f);
      break;
    case StrainMeasure::almansi:
      if (is_deformation) return almansi(f, det_f);
      break;
  }
  return {missing, missing, missing};
}

/// Squares of errors of the components of a tensor.
struct Squares {
  float xx, yy, xy;
};

/// The stored values of a node, in the order of StrainField.
struct Values {
  float exx, eyy, exy, e1, e2, von_mises;
};
DIC_HOST_DEVICE inline Values values_of(const Tensor& e) {
  const double mean = (e.xx + e.yy) / 2, difference = (e.xx - e.yy) / 2;
  const double radius = std::sqrt(difference * difference + e.xy * e.xy);
  const double von_mises = std::sqrt(e.xx * e.xx + e.yy * e.yy - e.xx * e.yy + 3 * e.xy * e.xy);
  return {static_cast<float>(e.xx),          static_cast<float>(e.yy),
          static_cast<float>(e.xy),          static_cast<float>(mean + radius),
          static_cast<float>(mean - radius), static_cast<float>(von_mises)};
}

}  // namespace dic::strain
