#include "stereo/curved_match.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>

#include "stereo/local_fit.hpp"

namespace dic::stereo {
namespace {

constexpr std::int64_t kRowsPerTask = 4;

/// Parts of a subtracted bias that may remain, near a complete window and far from one.
constexpr double kRemaining = 0.25, kRemainingAtEdge = 0.6;
/// Noise that order 2 adds to that of order 1, in units of the latter (1.8^2 = 1 + 1.5^2).
constexpr double kNoiseOfOrder2 = 1.5;

/// Side of the window of nodes: the polynomial must reach further than a subset for its second derivatives to
/// add little noise.
int window_of(const MeasuredSubsets& subsets, int step) {
  constexpr double kReach = 1.5;  // halves of subsets
  const int half_subset = subsets.size / 2;
  const int half = static_cast<int>(std::ceil(kReach * half_subset / step));
  return 2 * std::clamp(half, 2, 20) + 1;
}

/// The bias of a match for second derivatives per node^2. The response is that of motions within the
/// reference: the motion is taken back there, and the answer brought forth.
Eigen::Vector2d bias_of(const Quadratic& u, const Quadratic& v, const Eigen::Matrix2d& map,
                        const BendResponse& response) {
  Eigen::Matrix<double, 2, 3> bends;
  bends << u.ii, u.ij, u.jj, v.ii, v.ij, v.jj;
  bends = map.inverse() * bends;
  Eigen::Matrix<double, 6, 1> in_reference;
  in_reference << bends.row(0).transpose(), bends.row(1).transpose();
  return map * (response.cast<double>() * in_reference);
}

/// Polynomials through the displacements around a node.
struct LocalMotion {
  Quadratic u, v;
  bool is_known = false;
  bool has_bends = false;  ///< the second derivatives are those of a complete window, here or beside it
};

/// Displacements of the nodes, which the fits must not see corrected.
struct Displacements {
  NodeValues<double> u, v;
  std::vector<std::uint8_t> usable;
};

std::vector<LocalMotion> local_motions(const Grid& grid, const Displacements& data, int window,
                                       core::ThreadPool& pool) {
  std::vector<LocalMotion> motions(data.usable.size());
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t first, std::int64_t last, int) {
    LocalFit fit(grid.nx, grid.ny, window, 2);
    for (std::int64_t j = first; j < last; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (!data.usable[k] || !fit.place(data.usable, i, static_cast<int>(j))) continue;
        motions[k] = {fit.fit([&](std::size_t n) { return data.u[n]; }),
                      fit.fit([&](std::size_t n) { return data.v[n]; }), true, fit.is_complete()};
      }
  });
  return motions;
}

void take_bends(Quadratic& to, const Quadratic& from) { to.ii = from.ii, to.ij = from.ij, to.jj = from.jj; }

/// Gives nodes with an incomplete window the second derivatives of the nearest complete one, by steps to one
/// of four neighbours: those of a window that lies on one side of its node are very noisy.
void spread_bends(const Grid& grid, int most_steps, std::vector<LocalMotion>& motions) {
  std::vector<std::size_t> front;
  for (std::size_t k = 0; k < motions.size(); ++k)
    if (motions[k].has_bends) front.push_back(k);
  const std::size_t nx = grid.nx;
  for (int step = 0; step < most_steps && !front.empty(); ++step) {
    std::vector<std::size_t> next;
    const auto spread = [&](std::size_t from, std::size_t to) {
      if (!motions[to].is_known || motions[to].has_bends) return;
      take_bends(motions[to].u, motions[from].u);
      take_bends(motions[to].v, motions[from].v);
      motions[to].has_bends = true;
      next.push_back(to);
    };
    for (const std::size_t k : front) {
      if (k % nx > 0) spread(k, k - 1);
      if (k % nx + 1 < nx) spread(k, k + 1);
      if (k >= nx) spread(k, k - nx);
      if (k + nx < motions.size()) spread(k, k + nx);
    }
    front = std::move(next);
  }
}

/// Adds what may remain of a bias to a standard deviation.
void add_to(float& sigma, double remaining) {
  sigma = static_cast<float>(std::hypot(static_cast<double>(sigma), remaining));
}

/// Subtracts a bias. Returns what may remain of it, in units of the noise.
double subtract(const Eigen::Vector2d& bias, double remaining, Field& field, std::size_t k) {
  const Eigen::Vector2d rest = remaining * bias.cwiseAbs();
  const double noise = std::hypot(field.sigma_u[k], field.sigma_v[k]);
  field.u[k] -= bias.x(), field.v[k] -= bias.y();
  add_to(field.sigma_u[k], rest.x());
  add_to(field.sigma_v[k], rest.y());
  return rest.norm() / noise;
}

}  // namespace

NeighbourSummary subtract_bends(Field& field, const MeasuredSubsets& subsets,
                                const std::vector<BendResponse>& responses, core::ThreadPool& pool) {
  const Grid& grid = field.grid();
  const auto nodes = static_cast<std::size_t>(grid.nodes());
  Displacements data{field.u, field.v, std::vector<std::uint8_t>(nodes)};
  for (std::size_t k = 0; k < nodes; ++k) data.usable[k] = field.status[k] == Status::ok;
  const int window = window_of(subsets, grid.step);
  std::vector<LocalMotion> motions = local_motions(grid, data, window, pool);
  spread_bends(grid, window, motions);
  const double step = grid.step;
  NeighbourSummary summary{LocalMaps(nodes, Eigen::Matrix2f::Identity()), std::vector<std::uint8_t>(nodes)};
  double measured = 0, bent = 0;
  for (std::size_t k = 0; k < nodes; ++k) {
    measured += data.usable[k];
    const auto& [u, v, is_known, has_bends] = motions[k];
    if (!is_known) continue;
    summary.is_known[k] = 1;
    Eigen::Matrix2d map;
    map << 1 + u.di / step, u.dj / step, v.di / step, 1 + v.dj / step;
    summary.maps[k] = map.cast<float>();
    if ((field.order.empty() ? subsets.order : field.order[k]) != 1) continue;
    const Eigen::Vector2d bias = bias_of(u, v, map, responses[k]) / (step * step);
    bent += subtract(bias, has_bends ? kRemaining : kRemainingAtEdge, field, k) > kNoiseOfOrder2;
  }
  summary.bent = measured > 0 ? bent / measured : 0;
  return summary;
}

}  // namespace dic::stereo
