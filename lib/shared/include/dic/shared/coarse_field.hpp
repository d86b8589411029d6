#pragma once

#include <dic/shared/host_device.hpp>
#include <dic/shared/shape_parameters.hpp>

namespace dic::track {

/// Positions of the nodes of a coarse displacement field.
struct FieldLattice {
  int reduction = 1;                ///< px of the full image per px of the reduced one
  int x0 = 0, y0 = 0, spacing = 1;  ///< first node and distance of nodes, px of the reduced image
  int nx = 0, ny = 0;               ///< number of nodes along each axis, at least 1
};

/// A displacement and its gradient, from a coarse field.
struct CoarseShift {
  double u = 0, v = 0;  ///< px
  double ux = 0, uy = 0, vx = 0, vy = 0;
};

/// A position between two nodes of a lattice along one axis: node `index`, node `next`, and the fraction of
/// the way.
struct LatticePosition {
  int index, next;
  double part;
};
DIC_HOST_DEVICE inline LatticePosition locate(double position, int reduction, int origin, int spacing,
                                              int n) {
  // A reduced px covers `reduction` px of the full image and has the same centre.
  const double reduced = (position - 0.5 * (reduction - 1)) / reduction;
  double node = (reduced - origin) / spacing;
  node = node > 0 ? node : 0;
  node = node < n - 1 ? node : n - 1;
  const int last = n > 2 ? n - 2 : 0;
  const int index = static_cast<int>(node) < last ? static_cast<int>(node) : last;
  return {index, index + 1 < n ? index + 1 : n - 1, node - index};
}

/// Displacement at a pixel of the full image, bilinear between nodes, constant beyond the lattice. u, v:
/// [ny x nx], px of the reduced image.
DIC_HOST_DEVICE inline CoarseShift sample(const FieldLattice& lattice, const float* u, const float* v,
                                          double x, double y) {
  const LatticePosition column = locate(x, lattice.reduction, lattice.x0, lattice.spacing, lattice.nx);
  const LatticePosition row = locate(y, lattice.reduction, lattice.y0, lattice.spacing, lattice.ny);
  const int top = row.index * lattice.nx, bottom = row.next * lattice.nx;
  const double s = column.part, t = row.part;
  const double pitch = lattice.spacing;  // displacements and distances are reduced alike
  CoarseShift out;
  const auto component = [&](const float* f, double& value, double& dx, double& dy) {
    const double a = f[top + column.index], b = f[top + column.next];
    const double c = f[bottom + column.index], d = f[bottom + column.next];
    value = lattice.reduction * ((1 - t) * ((1 - s) * a + s * b) + t * ((1 - s) * c + s * d));
    dx = ((1 - t) * (b - a) + t * (d - c)) / pitch;
    dy = ((1 - s) * (c - a) + s * (d - b)) / pitch;
  };
  component(u, out.u, out.ux, out.uy);
  component(v, out.v, out.vx, out.vy);
  return out;
}

/// Gradients of a coarse field above this are more than noise.
inline constexpr double kSteep = 0.05;

/// Start of a point's refinement from the coarse field; uses the gradient only if it is steep.
DIC_HOST_DEVICE inline ShapeParameters start_of(const CoarseShift& s) {
  ShapeParameters start;
  start.u = s.u;
  start.v = s.v;
  const auto steep = [](double slope) { return slope > kSteep || slope < -kSteep; };
  if (steep(s.ux) || steep(s.uy) || steep(s.vx) || steep(s.vy)) {
    start.ux = s.ux;
    start.uy = s.uy;
    start.vx = s.vx;
    start.vy = s.vy;
  }
  return start;
}

}  // namespace dic::track
