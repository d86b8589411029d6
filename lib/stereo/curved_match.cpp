#include "stereo/curved_match.hpp"

#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <dic/shared/strain_sigma.hpp>
#include <span>

#include "stereo/local_fit.hpp"

namespace dic::stereo {
namespace {

constexpr std::int64_t kRowsPerTask = 4;

/// Parts of a subtracted bias that may remain, near a complete window and far from one.
constexpr double kRemaining = 0.1, kRemainingAtEdge = 0.6;
/// The same for the choice of the order, which must not trust the polynomials where the surface bends most.
constexpr double kDoubtful = 0.25;
/// Noise that order 2 adds to that of order 1, in units of the latter (1.8^2 = 1 + 1.5^2).
constexpr double kNoiseOfOrder2 = 1.5;

/// Sides of the windows of nodes, as reaches in halves of subsets: the polynomial must reach further than a
/// subset for its second derivatives to add little noise. The wide one adds nearly none, the narrow one
/// follows surfaces whose curvature changes.
constexpr double kNarrow = 1.5, kWide = 3;
int window_of(double reach, const MeasuredSubsets& subsets, int step) {
  const int half_subset = subsets.size / 2;
  const int half = static_cast<int>(std::ceil(reach * half_subset / step));
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

/// The polynomials at nodes whose windows are complete. There the terms of the polynomial are orthogonal, but
/// for the mean, and products of functions of the row and of the column, so that each costs two sums over a
/// side of the window instead of one over its area.
class CompleteFit {
 public:
  CompleteFit(const Grid& grid, int window, core::ThreadPool& pool)
      : nx_(grid.nx), ny_(grid.ny), half_(window / 2), pool_(pool) {
    for (int i = -half_; i <= half_; ++i) {
      const double square = double(i) * i - (double(window) * window - 1) / 12;
      squares_.push_back(square);
      line_norm_ += double(window) * i * i, square_norm_ += window * square * square;
      mixed_norm_ += double(i) * i;
    }
    mixed_norm_ *= mixed_norm_;
  }

  std::vector<LocalMotion> of(const Displacements& data) const {
    std::vector<LocalMotion> motions(data.usable.size());
    const Rows u = rows_of(data.u, data.usable), v = rows_of(data.v, data.usable);
    pool_.parallel_for(ny_, kRowsPerTask, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t j = std::max<std::int64_t>(first, half_);
           j < std::min<std::int64_t>(last, ny_ - half_); ++j)
        for (int i = half_; i < nx_ - half_; ++i)
          if (const std::size_t k = static_cast<std::size_t>(j) * nx_ + i; is_complete(u, k))
            motions[k] = {polynomial(u, k), polynomial(v, k), true, true};
    });
    return motions;
  }

 private:
  /// Sums over the row of a window: plain, with the distance from its centre, with its square.
  struct Rows {
    std::vector<double> plain, line, square;
    std::vector<std::uint8_t> complete;
  };

  Rows rows_of(const NodeValues<double>& values, const std::vector<std::uint8_t>& usable) const {
    const std::size_t nodes = usable.size();
    Rows rows{std::vector<double>(nodes), std::vector<double>(nodes), std::vector<double>(nodes),
              std::vector<std::uint8_t>(nodes)};
    pool_.parallel_for(ny_, kRowsPerTask, [&](std::int64_t first, std::int64_t last, int) {
      for (std::int64_t j = first; j < last; ++j)
        for (int i = half_; i < nx_ - half_; ++i) {
          const std::size_t k = static_cast<std::size_t>(j) * nx_ + i;
          const std::uint8_t* const near = usable.data() + k - half_;
          if (!std::all_of(near, near + 2 * half_ + 1, [](std::uint8_t is) { return is != 0; })) continue;
          rows.complete[k] = 1;
          for (int d = -half_; d <= half_; ++d) {
            const double value = values[k + d];
            rows.plain[k] += value, rows.line[k] += d * value, rows.square[k] += squares_[d + half_] * value;
          }
        }
    });
    return rows;
  }

  bool is_complete(const Rows& rows, std::size_t k) const {
    for (int d = -half_; d <= half_; ++d)
      if (!rows.complete[k + static_cast<std::ptrdiff_t>(d) * nx_]) return false;
    return true;
  }

  Quadratic polynomial(const Rows& rows, std::size_t k) const {
    Quadratic q;
    for (int d = -half_; d <= half_; ++d) {
      const std::size_t at = k + static_cast<std::ptrdiff_t>(d) * nx_;
      q.di += rows.line[at], q.dj += d * rows.plain[at];
      q.ii += rows.square[at], q.ij += d * rows.line[at], q.jj += squares_[d + half_] * rows.plain[at];
    }
    q.di /= line_norm_, q.dj /= line_norm_, q.ij /= mixed_norm_;
    q.ii *= 2 / square_norm_, q.jj *= 2 / square_norm_;
    return q;
  }

  int nx_, ny_, half_;
  core::ThreadPool& pool_;
  std::vector<double> squares_;
  double line_norm_ = 0, square_norm_ = 0, mixed_norm_ = 0;
};

/// The polynomials at all usable nodes; their values at the centre are not filled.
std::vector<LocalMotion> local_motions(const Grid& grid, const Displacements& data, int window,
                                       core::ThreadPool& pool) {
  std::vector<LocalMotion> motions = CompleteFit(grid, window, pool).of(data);
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t first, std::int64_t last, int) {
    LocalFit fit(grid.nx, grid.ny, window, 2);
    for (std::int64_t j = first; j < last; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (!data.usable[k] || motions[k].is_known || !fit.place(data.usable, i, static_cast<int>(j)))
          continue;
        motions[k] = {fit.fit([&](std::size_t n) { return data.u[n]; }),
                      fit.fit([&](std::size_t n) { return data.v[n]; }), true, false};
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

/// The second derivatives of wide windows at usable nodes: those of the nearest complete window.
std::vector<LocalMotion> wide_bends(const Grid& grid, const Displacements& data, int window,
                                    core::ThreadPool& pool) {
  std::vector<LocalMotion> motions = CompleteFit(grid, window, pool).of(data);
  for (std::size_t k = 0; k < motions.size(); ++k) motions[k].is_known = data.usable[k] != 0;
  spread_bends(grid, window, motions);
  return motions;
}

bool is_order_1(const Field& field, const MeasuredSubsets& subsets, std::size_t k) {
  return (field.order.empty() ? subsets.order : field.order[k]) == 1;
}

/// Share of the narrow window's polynomial at each node, 0 to 1: as far as both windows differ by more than
/// their noise explains.
class NarrowShare {
 public:
  /// differences: of the biases of both windows in units of the noise of a match; NaN where not both are
  /// known.
  NarrowShare(const Grid& grid, std::span<const Eigen::Vector2d> differences, int window, double variance)
      : grid_(grid), differences_(differences), half_(window / 2), variance_(variance) {}

  double at(std::size_t k) const {
    constexpr double kMuch = 2;  // of the expected square, since the mean over a window is noisy too
    const int i = static_cast<int>(k % grid_.nx), j = static_cast<int>(k / grid_.nx);
    double squares = 0, count = 0;
    for (int y = std::max(j - half_, 0); y <= std::min(j + half_, grid_.ny - 1); ++y)
      for (int x = std::max(i - half_, 0); x <= std::min(i + half_, grid_.nx - 1); ++x) {
        const Eigen::Vector2d& d = differences_[static_cast<std::size_t>(y) * grid_.nx + x];
        if (d.allFinite()) squares += d.squaredNorm(), count += 2;
      }
    return count > 0 ? std::max(0.0, 1 - kMuch * variance_ * count / squares) : 1;
  }

 private:
  const Grid& grid_;
  std::span<const Eigen::Vector2d> differences_;
  int half_;
  double variance_;
};

}  // namespace

BendFilter::BendFilter(const MeasuredSubsets& subsets, int step)
    : narrow(window_of(kNarrow, subsets, step)), wide(window_of(kWide, subsets, step)) {
  // The bias for even texture: a mean over the subset.
  const double factor = (double(subsets.size) * subsets.size - 1) / (24.0 * step * step);
  const strain::ErrorCorrelation correlation(subsets, step, 3);
  const auto correction = [&](int window) {
    const std::vector<std::uint8_t> usable(static_cast<std::size_t>(window) * window, 1);
    LocalFit fit(window, window, window, 2);
    fit.place(usable, window / 2, window / 2);
    std::vector<double> weights;
    for (const auto& row : fit.rows()) weights.push_back(-factor * (row[3] + row[5]));
    return weights;
  };
  const auto variance = [&](const std::vector<double>& weights) {
    const int reach = std::min((subsets.size - 1) / step, wide - 1);
    double sum = 0;
    for (int k = 0; k < wide * wide; ++k)
      for (int y = std::max(k / wide - reach, 0); y <= std::min(k / wide + reach, wide - 1); ++y)
        for (int x = std::max(k % wide - reach, 0); x <= std::min(k % wide + reach, wide - 1); ++x)
          sum += weights[k] * weights[static_cast<std::size_t>(y) * wide + x] *
                 correlation.at(std::abs(x - k % wide), std::abs(y - k / wide));
    return sum;
  };
  std::vector<double> of_wide = correction(wide), of_narrow(of_wide.size()), difference = of_wide;
  const std::vector<double> inner = correction(narrow);
  const int margin = (wide - narrow) / 2;
  for (int k = 0; k < narrow * narrow; ++k)
    of_narrow[static_cast<std::size_t>(k / narrow + margin) * wide + k % narrow + margin] = inner[k];
  for (std::size_t k = 0; k < difference.size(); ++k) difference[k] -= of_narrow[k];
  difference_variance = variance(difference);
  of_wide[of_wide.size() / 2] += 1, of_narrow[of_narrow.size() / 2] += 1;
  wide_variance = variance(of_wide), narrow_variance = variance(of_narrow);
}

NeighbourSummary subtract_bends(Field& field, const MeasuredSubsets& subsets, const BendFilter& filter,
                                const std::vector<BendResponse>& responses, core::ThreadPool& pool) {
  const Grid& grid = field.grid();
  const auto nodes = static_cast<std::size_t>(grid.nodes());
  Displacements data{field.u, field.v, std::vector<std::uint8_t>(nodes)};
  for (std::size_t k = 0; k < nodes; ++k) data.usable[k] = field.status[k] == Status::ok;
  std::vector<LocalMotion> motions = local_motions(grid, data, filter.narrow, pool);
  spread_bends(grid, filter.narrow, motions);
  const double step = grid.step;
  NeighbourSummary summary{LocalMaps(nodes, Eigen::Matrix2f::Identity()), std::vector<std::uint8_t>(nodes)};
  std::vector<std::uint8_t> is_corrected(nodes);
  core::for_each_index(pool, grid.nodes(), [&](std::int64_t index) {
    const auto k = static_cast<std::size_t>(index);
    const auto& [u, v, is_known, has_bends] = motions[k];
    if (!is_known) return;
    summary.is_known[k] = 1;
    Eigen::Matrix2d map;
    map << 1 + u.di / step, u.dj / step, v.di / step, 1 + v.dj / step;
    summary.maps[k] = map.cast<float>();
    is_corrected[k] = is_order_1(field, subsets, k);
  });
  if (std::ranges::count(is_corrected, 1) == 0) return summary;
  const std::vector<LocalMotion> smooth = wide_bends(grid, data, filter.wide, pool);
  const auto bias = [&](const LocalMotion& motion, std::size_t k) -> Eigen::Vector2d {
    const Eigen::Matrix2d map = summary.maps[k].cast<double>();
    return bias_of(motion.u, motion.v, map, responses[k]) / (step * step);
  };
  std::vector<Eigen::Vector2d> biases(nodes), differences(nodes, Eigen::Vector2d::Constant(NAN));
  core::for_each_index(pool, grid.nodes(), [&](std::int64_t index) {
    const auto k = static_cast<std::size_t>(index);
    if (!is_corrected[k]) return;
    biases[k] = bias(motions[k], k);
    if (!motions[k].has_bends || !smooth[k].has_bends) return;
    differences[k] =
        (biases[k] - bias(smooth[k], k)).cwiseQuotient(Eigen::Vector2d(field.sigma_u[k], field.sigma_v[k]));
  });
  const NarrowShare share(grid, differences, filter.narrow, filter.difference_variance);
  std::vector<std::uint8_t> is_bent(nodes);
  core::for_each_index(pool, grid.nodes(), [&](std::int64_t index) {
    const auto k = static_cast<std::size_t>(index);
    if (!is_corrected[k]) return;
    const double part = differences[k].allFinite() ? share.at(k) : 1;
    const bool has_bends = motions[k].has_bends;
    const Eigen::Vector2d sigma(field.sigma_u[k], field.sigma_v[k]);
    const Eigen::Vector2d noise =
        sigma * std::sqrt(filter.wide_variance + part * (filter.narrow_variance - filter.wide_variance));
    const Eigen::Vector2d whole = biases[k];
    if (part < 1) biases[k] -= (1 - part) * differences[k].cwiseProduct(sigma);
    is_bent[k] = (has_bends ? kDoubtful : kRemainingAtEdge) * whole.norm() > kNoiseOfOrder2 * sigma.norm();
    const Eigen::Vector2d rest = (has_bends ? kRemaining : kRemainingAtEdge) * biases[k].cwiseAbs();
    field.u[k] -= biases[k].x(), field.v[k] -= biases[k].y();
    field.sigma_u[k] = static_cast<float>(std::hypot(noise.x(), rest.x()));
    field.sigma_v[k] = static_cast<float>(std::hypot(noise.y(), rest.y()));
  });
  const auto measured = std::ranges::count(data.usable, 1), bent = std::ranges::count(is_bent, 1);
  summary.bent = measured > 0 ? static_cast<double>(bent) / static_cast<double>(measured) : 0;
  return summary;
}

}  // namespace dic::stereo
