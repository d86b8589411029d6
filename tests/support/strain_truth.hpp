#pragma once

#include <Eigen/Dense>
#include <cstdlib>
#include <dic/fields.hpp>
#include <queue>
#include <set>
#include <utility>

/// Strain computed from its definitions.
namespace dic::test {

inline Grid full_grid(int nx, int ny, int step = 5) {
  Grid grid;
  grid.x0 = 20, grid.y0 = 30, grid.step = step, grid.nx = nx, grid.ny = ny;
  grid.inside.assign(static_cast<std::size_t>(nx) * ny, 1);
  return grid;
}

/// Strain tensor from its definition, by Eigen's matrix functions.
inline Eigen::Matrix2d strain_tensor(const Eigen::Matrix2d& gradient, StrainMeasure measure) {
  const Eigen::Matrix2d one = Eigen::Matrix2d::Identity(), f = one + gradient, c = f.transpose() * f;
  switch (measure) {
    case StrainMeasure::green_lagrange:
      return (c - one) / 2;
    case StrainMeasure::engineering:
      return (gradient + gradient.transpose()) / 2;
    case StrainMeasure::almansi:
      return (one - f.transpose().inverse() * f.inverse()) / 2;
    case StrainMeasure::hencky:
      break;
  }
  const Eigen::SelfAdjointEigenSolver<Eigen::Matrix2d> eigen(c);
  return eigen.eigenvectors() * (eigen.eigenvalues().array().log() / 2).matrix().asDiagonal() *
         eigen.eigenvectors().transpose();
}

using Nodes = std::set<std::pair<int, int>>;  ///< (i, j)

/// The usable nodes of a window that are connected with its centre; none if they are fewer than half of the
/// window, or if the centre has no values.
inline Nodes connected_nodes(const Grid& grid, const Field& field, int window, int ci, int cj) {
  const int half = window / 2;
  const auto usable = [&](int i, int j) {
    if (i < 0 || j < 0 || i >= grid.nx || j >= grid.ny) return false;
    const auto k = static_cast<std::size_t>(j) * grid.nx + i;
    return grid.inside[k] == 1 && field.status[k] == Status::ok;
  };
  const auto centre = static_cast<std::size_t>(cj) * grid.nx + ci;
  if (!grid.inside[centre] || !has_values(field.status[centre])) return {};
  Nodes connected;
  std::queue<std::pair<int, int>> queue;
  queue.push({ci, cj});
  while (!queue.empty()) {
    const auto [i, j] = queue.front();
    queue.pop();
    if (std::abs(i - ci) > half || std::abs(j - cj) > half || !(usable(i, j) || (i == ci && j == cj)))
      continue;
    if (!connected.insert({i, j}).second) continue;
    for (const auto& [di, dj] : {std::pair{1, 0}, {-1, 0}, {0, 1}, {0, -1}}) queue.push({i + di, j + dj});
  }
  if (!usable(ci, cj)) connected.erase({ci, cj});  // an outlier only serves as a step on the way
  return 2 * static_cast<int>(connected.size()) < window * window ? Nodes{} : connected;
}

/// Computes a node's displacement gradient by QR over its connected nodes; returns false if there are none.
inline bool naive_gradient(const Grid& grid, const Field& field, int window, int ci, int cj,
                           Eigen::Matrix2d& gradient) {
  const Nodes connected = connected_nodes(grid, field, window, ci, cj);
  if (connected.empty()) return false;
  Eigen::MatrixXd a(connected.size(), 3), b(connected.size(), 2);
  Eigen::Index row = 0;
  for (const auto& [i, j] : connected) {
    const auto k = static_cast<std::size_t>(j) * grid.nx + i;
    a.row(row) << 1, grid.x(i), grid.y(j);
    b.row(row++) << field.u[k], field.v[k];
  }
  const Eigen::MatrixXd plane = a.colPivHouseholderQr().solve(b);
  gradient << plane(1, 0), plane(2, 0), plane(1, 1), plane(2, 1);
  return true;
}

}  // namespace dic::test
