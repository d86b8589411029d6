#pragma once

#include <Eigen/Core>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <dic/fields.hpp>
#include <dic/shared/bends.hpp>
#include <random>
#include <utility>
#include <vector>

/// Matches and surfaces of known properties, for the tests of both devices.
namespace dic::test {

/// Number of the usable nodes in a window that are connected with its centre: a search in breadth.
inline int connected_nodes(const stereo::NodeGrid& grid, const std::vector<std::uint8_t>& usable, int i,
                           int j, int window, std::vector<std::int64_t>* nodes = nullptr) {
  std::vector<std::uint8_t> seen(usable.size());
  std::deque<std::pair<int, int>> queue;
  const auto reach = [&](int x, int y) {
    if (x < 0 || y < 0 || x >= grid.nx || y >= grid.ny) return;
    if (std::abs(x - i) > window / 2 || std::abs(y - j) > window / 2) return;
    const std::size_t k = static_cast<std::size_t>(y) * grid.nx + x;
    if (!usable[k] || seen[k]) return;
    seen[k] = 1;
    queue.emplace_back(x, y);
  };
  int count = 0;
  reach(i, j);
  for (; !queue.empty(); queue.pop_front()) {
    const auto [x, y] = queue.front();
    ++count;
    if (nodes) nodes->push_back(std::int64_t{y} * grid.nx + x);
    reach(x - 1, y), reach(x + 1, y), reach(x, y - 1), reach(x, y + 1);
  }
  return count;
}

/// A displacement that is quadratic over the grid, with gaps: its slopes and second derivatives are exact at
/// every node, however many neighbours are missing.
struct BendScene {
  Grid grid{
      .x0 = 12, .y0 = 9, .step = 5, .nx = 47, .ny = 31, .inside = std::vector<std::uint8_t>(47 * 31, 1)};
  int narrow = 7, wide = 11;
  std::vector<double> u, v;
  std::vector<float> sigma_u, sigma_v, responses;
  std::vector<Status> status;
  std::vector<std::uint8_t> usable;
  // Expected
  std::vector<Eigen::Matrix2d> maps;
  std::vector<Eigen::Vector2d> biases;

  BendScene() {
    std::mt19937 random(7);
    std::uniform_real_distribution<double> unit(0, 1);
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const double x = i - 20, y = j - 12, s = grid.step;
        u.push_back(300 + 0.2 * x - 0.1 * y + (0.02 * x * x + 0.06 * x * y - 0.01 * y * y) / 2);
        v.push_back(-40 - 0.3 * x + 0.15 * y + (-0.03 * x * x + 0.01 * x * y + 0.04 * y * y) / 2);
        const bool in_gap = std::hypot(i - 33, j - 20) < 4 || (i == 25 && j != 3) || unit(random) < 0.03;
        status.push_back(in_gap ? Status::low_correlation : Status::ok);
        usable.push_back(!in_gap);
        sigma_u.push_back(0.01F), sigma_v.push_back(0.02F);
        Eigen::Matrix2d map;
        map << 1 + (0.2 + 0.02 * x + 0.03 * y) / s, (-0.1 + 0.03 * x - 0.01 * y) / s,
            (-0.3 - 0.03 * x + 0.005 * y) / s, 1 + (0.15 + 0.005 * x + 0.04 * y) / s;
        maps.push_back(map);
        Eigen::Matrix<float, 2, 6> response = Eigen::Matrix<float, 2, 6>::NullaryExpr(
            [&](Eigen::Index, Eigen::Index) { return static_cast<float>(20 * unit(random) - 5); });
        responses.insert(responses.end(), response.data(), response.data() + 12);
        Eigen::Matrix<double, 2, 3> bends;
        bends << 0.02, 0.03, -0.01, -0.03, 0.005, 0.04;
        bends = map.inverse() * bends / (s * s);
        Eigen::Matrix<double, 6, 1> inside;
        inside << bends.row(0).transpose(), bends.row(1).transpose();
        biases.push_back(map * (response.cast<double>() * inside));
      }
  }
  stereo::NodeGrid nodes() const { return {grid.nx, grid.ny, grid.x0, grid.y0, grid.step}; }
  /// True if half of the narrow window around a usable node is there.
  bool is_known(std::size_t k) const {
    const int i = static_cast<int>(k) % grid.nx, j = static_cast<int>(k) / grid.nx;
    return usable[k] && 2 * connected_nodes(nodes(), usable, i, j, narrow) >= narrow * narrow;
  }
};

}  // namespace dic::test
