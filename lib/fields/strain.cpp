#include "fields/strain.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dic/error.hpp>
#include <dic/shared/strain.hpp>
#include <dic/shared/strain_flattening.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <dic/shared/tears.hpp>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace dic {
namespace fields {
namespace {

using strain::DataMoments;
using strain::ErrorCorrelation;
using strain::Gradient;
using strain::missing;
using strain::NodeMoments;
using strain::SlopeCovariance;
using strain::Tensor;

constexpr std::int64_t kRowsPerTask = 8;

constexpr strain::NodeSigmas kNoSigmas = {std::numeric_limits<float>::quiet_NaN(),
                                          std::numeric_limits<float>::quiet_NaN()};
constexpr Gradient kNoGradient = {missing, missing, missing, missing};

/// Values of a displacement or position component, with NaN for nodes that must not enter a fit.
std::vector<double> fit_data(const Field& field, const NodeValues<double>& component) {
  std::vector<double> data(component.size());
  for (std::size_t k = 0; k < data.size(); ++k)
    data[k] = field.grid().inside[k] && field.status[k] == Status::ok ? component[k] : missing;
  return data;
}

/// Removes the nodes beside tears from the data of both components, so that no window reaches across.
void remove_torn(const Field& field, std::vector<double>& u, std::vector<double>& v) {
  const Grid& grid = field.grid();
  std::vector<std::size_t> torn;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const auto at = [&, i, j](int di, int dj) -> strain::TearNode {
        const int x = i + di, y = j + dj;
        if (x < 0 || y < 0 || x >= grid.nx || y >= grid.ny) return {missing, missing, 0, 0};
        const std::size_t k = static_cast<std::size_t>(y) * grid.nx + x;
        return {u[k], v[k], field.sigma_u[k], field.sigma_v[k]};
      };
      const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
      if (!std::isnan(u[k]) && strain::is_beside_tear(at, grid.step)) torn.push_back(k);
    }
  for (const std::size_t k : torn) u[k] = v[k] = missing;
}

/// Slopes of the least-squares planes of complete windows, computed for a row of nodes at a time. On a
/// complete window the plane's slopes are sum(i f) and sum(j f) divided by a constant, and both sums are
/// separable. A missing node makes the result NaN, which tells callers that the window was not complete.
class CompleteWindows {
 public:
  CompleteWindows(const Grid& grid, int window)
      : grid_(grid), half_(window / 2), scale_(strain::complete_window_scale(window, grid.step)) {
    column_sum_.resize(grid.nx);
    column_moment_.resize(grid.nx);
  }

  /// Computes d/dx and d/dy of `data` at the nodes of row j; NaN if the window is not complete.
  void slopes(const std::vector<double>& data, int j, std::vector<double>& dx, std::vector<double>& dy) {
    dx.assign(grid_.nx, missing);
    dy.assign(grid_.nx, missing);
    if (j < half_ || j >= grid_.ny - half_) return;
    sum_columns(data.data() + static_cast<std::ptrdiff_t>(j) * grid_.nx);
    for (int i = half_; i < grid_.nx - half_; ++i) {
      double moment_x = 0, moment_y = 0;
      for (int k = -half_; k <= half_; ++k) {
        moment_x += k * column_sum_[i + k];
        moment_y += column_moment_[i + k];
      }
      dx[i] = moment_x * scale_;
      dy[i] = moment_y * scale_;
    }
  }

 private:
  void sum_columns(const double* centre_row) {
    column_sum_.assign(grid_.nx, 0);
    column_moment_.assign(grid_.nx, 0);
    for (int k = -half_; k <= half_; ++k) {
      const double* row = centre_row + static_cast<std::ptrdiff_t>(k) * grid_.nx;
      for (int i = 0; i < grid_.nx; ++i) {
        column_sum_[i] += row[i];
        column_moment_[i] += k * row[i];
      }
    }
  }

  const Grid& grid_;
  int half_;
  double scale_;
  std::vector<double> column_sum_, column_moment_;
};

/// Least-squares planes over windows with missing nodes. Only nodes connected to the centre by steps to one
/// of four neighbours inside the window take part, so that no hole or crack is bridged.
class PartialWindows {
 public:
  PartialWindows(const Grid& grid, const std::vector<double>& u, const std::vector<double>& v, int window)
      : grid_(grid), u_(u), v_(v), window_(window), half_(window / 2), usable_(window), reached_(window) {}

  Gradient gradient(int i, int j) {
    find_usable(i, j);
    find_reached();
    const Moments m = moments(i, j);
    if (!strain::PartialPlane::has_enough(m.nodes.n, window_)) return kNoGradient;
    const strain::PartialPlane plane(m.nodes, grid_.step);
    const auto [ux, uy] = plane.slopes(m.u);
    const auto [vx, vy] = plane.slopes(m.v);
    n_ = m.nodes.n, xx_ = plane.xx(), xy_ = plane.xy(), yy_ = plane.yy();
    return {ux, uy, vx, vy};
  }
  /// Covariance of the slopes of the last window that had a gradient.
  SlopeCovariance covariance(const ErrorCorrelation& errors) const {
    return strain::partial_window_covariance(errors, n_, xx_, xy_, yy_);
  }

 private:
  using Row = unsigned __int128;  // bit b: node i - half + b of a window row

  struct Moments {
    NodeMoments nodes;
    DataMoments u, v;
  };

  /// Index of the first node of window row r around (i, j); it may lie before the grid's row.
  std::ptrdiff_t row_start(int i, int j, int r) const {
    return static_cast<std::ptrdiff_t>(j - half_ + r) * grid_.nx + i - half_;
  }
  static Row bit(int b, bool value = true) { return Row{value} << b; }
  bool in_grid(int j, int r) const { return j - half_ + r >= 0 && j - half_ + r < grid_.ny; }

  void find_usable(int i, int j) {
    const int first = std::max(0, half_ - i), last = std::min(window_, grid_.nx - i + half_);
    for (int r = 0; r < window_; ++r) {
      usable_[r] = 0;
      if (!in_grid(j, r)) continue;
      const std::ptrdiff_t start = row_start(i, j, r);
      for (int b = first; b < last; ++b) usable_[r] |= bit(b, !std::isnan(u_[start + b]));
    }
    usable_[half_] |= bit(half_);  // the search begins at the centre even if that is an outlier
  }

  /// Spreads from the centre along rows and to the rows above and below until nothing changes.
  void find_reached() {
    std::fill(reached_.begin(), reached_.end(), Row{0});
    reached_[half_] = bit(half_);
    for (bool changed = true; changed;) {
      changed = false;
      for (int r = 0; r < window_; ++r) changed |= spread_into(r);
      for (int r = window_ - 1; r >= 0; --r) changed |= spread_into(r);
    }
  }

  bool spread_into(int r) {
    if (reached_[r] == usable_[r]) return false;
    Row row = reached_[r];
    if (r > 0) row |= reached_[r - 1];
    if (r < window_ - 1) row |= reached_[r + 1];
    row = strain::spread_along(row & usable_[r], usable_[r], window_);
    return std::exchange(reached_[r], row) != row;
  }

  Moments moments(int i, int j) {
    // An outlier in the centre connects its neighbours, but its values do not enter the fit.
    if (std::isnan(u_[row_start(i, j, half_) + half_])) reached_[half_] &= ~bit(half_);
    Moments m;
    for (int r = 0; r < window_; ++r) {
      double n = 0, sx = 0, sxx = 0;
      DataMoments u, v;
      const std::ptrdiff_t start = row_start(i, j, r);
      for (int b = 0; b < window_; ++b) {
        if (!(reached_[r] & bit(b))) continue;
        const double x = b - half_, fu = u_[start + b], fv = v_[start + b];
        n += 1, sx += x, sxx += x * x;
        u.sum += fu, u.x += x * fu;
        v.sum += fv, v.x += x * fv;
      }
      const double y = r - half_;
      m.nodes.n += n, m.nodes.x += sx, m.nodes.xx += sxx;
      m.nodes.y += y * n, m.nodes.yy += y * y * n, m.nodes.xy += y * sx;
      m.u.sum += u.sum, m.u.x += u.x, m.u.y += y * u.sum;
      m.v.sum += v.sum, m.v.x += v.x, m.v.y += y * v.sum;
    }
    return m;
  }

  const Grid& grid_;
  const std::vector<double>&u_, &v_;
  int window_, half_;
  std::vector<Row> usable_, reached_;
  double n_ = 0, xx_ = 0, xy_ = 0, yy_ = 0;  ///< nodes and central moments of the last plane
};

StrainField missing_strain(std::size_t nodes) {
  const NodeValues<float> none(nodes, std::numeric_limits<float>::quiet_NaN());
  return {none, none, none, none, none, none, none, none, none};
}

void store(StrainField& field, std::size_t k, const Tensor& tensor) {
  const strain::Values values = strain::values_of(tensor);
  field.exx[k] = values.exx;
  field.eyy[k] = values.eyy;
  field.exy[k] = values.exy;
  field.e1[k] = values.e1;
  field.e2[k] = values.e2;
  field.von_mises[k] = values.von_mises;
}

void store_sigma(StrainField& strain, const Field& field, const StrainOptions& options, std::size_t k,
                 const Gradient& gradient, const SlopeCovariance& covariance) {
  const Grid& grid = field.grid();
  const int i = static_cast<int>(k % grid.nx), j = static_cast<int>(k / grid.nx);
  const strain::NodeVariances variances(options.window, [&](int di, int dj) -> strain::NodeSigmas {
    if (i + di < 0 || i + di >= grid.nx || j + dj < 0 || j + dj >= grid.ny) return kNoSigmas;
    const std::size_t node = static_cast<std::size_t>(j + dj) * grid.nx + i + di;
    return {field.sigma_u[node], field.sigma_v[node]};
  });
  const strain::Sigmas sigmas = strain::sigmas_of(gradient, options.measure, covariance, variances);
  strain.sigma_exx[k] = sigmas.exx;
  strain.sigma_eyy[k] = sigmas.eyy;
  strain.sigma_exy[k] = sigmas.exy;
}

/// Calls visit(node, gradient, partial) for every node that has a gradient, on several threads. partial: the
/// windows that found the gradient, or null if the window is complete.
template <typename Visit>
void for_each_gradient(const Field& field, const std::vector<double>& u, const std::vector<double>& v,
                       int window, core::ThreadPool& pool, const Visit& visit) {
  const Grid& grid = field.grid();
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    CompleteWindows complete(grid, window);
    PartialWindows partial(grid, u, v, window);
    std::vector<double> ux, uy, vx, vy;
    for (int j = static_cast<int>(begin); j < end; ++j) {
      complete.slopes(u, j, ux, uy);
      complete.slopes(v, j, vx, vy);
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (!grid.inside[k] || !has_values(field.status[k])) continue;
        const bool is_complete = !std::isnan(ux[i]);
        const Gradient gradient = is_complete ? Gradient{ux[i], uy[i], vx[i], vy[i]} : partial.gradient(i, j);
        if (!std::isnan(gradient.ux)) visit(k, gradient, is_complete ? nullptr : &partial);
      }
    }
  });
}

/// Sums over square neighbourhoods of nodes.
class SquareSums {
 public:
  SquareSums(const Grid& grid, int radius) : grid_(grid), radius_(radius) {}

  /// Replaces each value by the sum around its node. Values of nodes that do not count must be 0.
  void take(std::vector<double>& values) const {
    along(values, grid_.nx, 1, grid_.ny, grid_.nx);
    along(values, grid_.ny, grid_.nx, grid_.nx, 1);
  }

 private:
  /// Replaces values by sums of neighbours in each of `lines` lines of `count` values.
  void along(std::vector<double>& values, int count, int stride, int lines, int next_line) const {
    std::vector<double> sums(count + 1);
    for (int line = 0; line < lines; ++line) {
      double* first = values.data() + static_cast<std::ptrdiff_t>(line) * next_line;
      for (int i = 0; i < count; ++i) sums[i + 1] = sums[i] + first[static_cast<std::ptrdiff_t>(i) * stride];
      for (int i = 0; i < count; ++i)
        first[static_cast<std::ptrdiff_t>(i) * stride] =
            sums[std::min(count, i + radius_ + 1)] - sums[std::max(0, i - radius_)];
    }
  }

  const Grid& grid_;
  int radius_;
};

/// Covariance of the slopes at every node, from draws of errors. As there are few draws, their squares are
/// summed over the neighbourhood.
std::vector<SlopeCovariance> covariances_of(const Field& field, const StrainOptions& options,
                                            core::ThreadPool& pool, const ErrorDraws& errors) {
  const std::size_t nodes = field.status.size();
  std::vector<double> square(nodes), xx(nodes), xy(nodes), yy(nodes);
  for (std::size_t draw = 0; draw + 1 < errors.draws.size(); draw += 2) {
    const auto component = [&](const NodeValues<float>& values) {
      return fit_data(field, NodeValues<double>(
                                 std::span<const double>(std::vector<double>(values.begin(), values.end()))));
    };
    const std::vector<double> u = component(errors.draws[draw]), v = component(errors.draws[draw + 1]);
    for_each_gradient(field, u, v, options.window, pool,
                      [&](std::size_t k, const Gradient& g, const PartialWindows*) {
                        if (std::isnan(u[k])) return;  // the node is an outlier
                        square[k] += u[k] * u[k] + v[k] * v[k];
                        xx[k] += g.ux * g.ux + g.vx * g.vx;
                        xy[k] += g.ux * g.uy + g.vx * g.vy;
                        yy[k] += g.uy * g.uy + g.vy * g.vy;
                      });
  }
  const SquareSums sums(field.grid(), options.window);
  for (std::vector<double>* values : {&square, &xx, &xy, &yy}) sums.take(*values);
  std::vector<SlopeCovariance> out(nodes);
  for (std::size_t k = 0; k < nodes; ++k)
    out[k] = {static_cast<float>(xx[k] / square[k]), static_cast<float>(xy[k] / square[k]),
              static_cast<float>(yy[k] / square[k])};
  return out;
}

/// Gradient of the displacement with respect to corrected positions, by the chain rule. u, x: gradients of
/// displacements and positions over the same nodes.
Gradient by_positions(const Gradient& u, const Gradient& x) {
  const double det = x.ux * x.vy - x.uy * x.vx;
  return {(u.ux * x.vy - u.uy * x.vx) / det, (u.uy * x.ux - u.ux * x.uy) / det,
          (u.vx * x.vy - u.vy * x.vx) / det, (u.vy * x.ux - u.vx * x.uy) / det};
}

/// Covariance of the slopes of a displacement component with respect to corrected positions.
SlopeCovariance by_positions(const SlopeCovariance& c, const Gradient& x) {
  const double det = x.ux * x.vy - x.uy * x.vx;
  const auto a = static_cast<float>(x.vy / det), b = static_cast<float>(-x.vx / det);
  const auto d = static_cast<float>(-x.uy / det), e = static_cast<float>(x.ux / det);
  return {a * a * c.xx + 2 * a * b * c.xy + b * b * c.yy,
          a * d * c.xx + (a * e + b * d) * c.xy + b * e * c.yy,
          d * d * c.xx + 2 * d * e * c.xy + e * e * c.yy};
}

/// Gradients of the positions of a corrected field at its nodes; empty for other fields.
std::vector<Gradient> position_gradients(const Field& field, int window, core::ThreadPool& pool) {
  if (!field.positions) return {};
  const std::vector<double> x = fit_data(field, field.positions->x), y = fit_data(field, field.positions->y);
  std::vector<Gradient> out(x.size(), kNoGradient);
  for_each_gradient(
      field, x, y, window, pool,
      [&](std::size_t k, const Gradient& gradient, const PartialWindows*) { out[k] = gradient; });
  return out;
}

/// Nodes of a grid by their distance from node (i, j).
struct Neighbourhood {
  const Grid& grid;
  int i, j;

  bool contains(int di, int dj) const {
    return i + di >= 0 && j + dj >= 0 && i + di < grid.nx && j + dj < grid.ny;
  }
  std::size_t node(int di, int dj) const { return static_cast<std::size_t>(j + dj) * grid.nx + i + di; }
};

/// Adds what windows and subsets flatten to the sigmas of a strain. fitted: data of the fits, NaN for nodes
/// that do not take part.
void add_flattening(StrainField& strain, const Field& field, const std::vector<double>& fitted, int window,
                    const MeasuredSubsets& subsets, core::ThreadPool& pool) {
  const Grid& grid = field.grid();
  const auto of_order = [&](int order) {
    return strain::Flattening({subsets.size, order, subsets.weights}, grid.step, window);
  };
  const strain::Flattening of_all = of_order(subsets.order), first = of_order(1), second = of_order(2);
  const auto sigmas_at = [&](std::size_t k) -> strain::Sigmas {
    return {strain.sigma_exx[k], strain.sigma_eyy[k], strain.sigma_exy[k]};
  };
  std::vector<strain::Squares> flattened(strain.exx.size(), strain::no_squares());
  const auto for_each_strain = [&](const auto& visit) {
    pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
      for (int j = static_cast<int>(begin); j < end; ++j)
        for (int i = 0; i < grid.nx; ++i) {
          const Neighbourhood around{grid, i, j};
          if (!std::isnan(strain.exx[around.node(0, 0)])) visit(around.node(0, 0), around);
        }
    });
  };
  for_each_strain([&](std::size_t k, const Neighbourhood& around) {
    const strain::Reach reach(window / 2, [&](int di, int dj) {
      return around.contains(di, dj) && !std::isnan(fitted[around.node(di, dj)]);
    });
    const strain::Flattening& flattening =
        field.order.empty() ? of_all : (field.order[k] == 2 ? second : first);
    flattened[k] = flattening_of(sigmas_at(k), flattening, reach, [&](int di, int dj) -> strain::Components {
      if (!around.contains(di, dj)) return strain::no_components();
      const std::size_t n = around.node(di, dj);
      return {strain.exx[n], strain.eyy[n], strain.exy[n]};
    });
  });
  for_each_strain([&](std::size_t k, const Neighbourhood& around) {
    const strain::Sigmas sigmas = with_flattening(sigmas_at(k), of_all, [&](int di, int dj) {
      return around.contains(di, dj) ? flattened[around.node(di, dj)] : strain::no_squares();
    });
    strain.sigma_exx[k] = sigmas.exx;
    strain.sigma_eyy[k] = sigmas.eyy;
    strain.sigma_exy[k] = sigmas.exy;
  });
}

/// Strain of a field. covariance(node, partial): covariance of the slopes at a node, or nothing; see
/// for_each_gradient(). flattened: subsets whose flattening the sigmas tell, or nothing.
template <typename Covariance>
StrainField strain_of(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                      const std::optional<MeasuredSubsets>& flattened, const Covariance& covariance) {
  StrainField result = missing_strain(field.status.size());
  std::vector<double> u = fit_data(field, field.u), v = fit_data(field, field.v);
  remove_torn(field, u, v);
  const std::vector<Gradient> positions = position_gradients(field, options.window, pool);
  for_each_gradient(field, u, v, options.window, pool,
                    [&](std::size_t k, Gradient gradient, const PartialWindows* partial) {
                      std::optional<SlopeCovariance> slopes = covariance(k, partial);
                      if (!positions.empty()) {
                        gradient = by_positions(gradient, positions[k]);
                        if (slopes) slopes = by_positions(*slopes, positions[k]);
                      }
                      store(result, k, strain::tensor_of(gradient, options.measure));
                      if (slopes) store_sigma(result, field, options, k, gradient, *slopes);
                    });
  if (flattened) add_flattening(result, field, u, options.window, *flattened, pool);
  return result;
}

/// Covariance of the slopes of windows, from the pixels that subsets share.
class WindowCovariance {
 public:
  WindowCovariance(const MeasuredSubsets& subsets, const Grid& grid, int window)
      : grid_(grid),
        errors_(subsets, grid.step, window),
        complete_(strain::complete_window_covariance(errors_, window)) {}
  SlopeCovariance operator()(std::size_t node, const PartialWindows* partial) const {
    const SlopeCovariance whole = partial ? partial->covariance(errors_) : complete_;
    const int i = static_cast<int>(node % grid_.nx), j = static_cast<int>(node / grid_.nx);
    return strain::near_borders(whole, errors_.border, i, j, grid_.nx, grid_.ny);
  }

 private:
  const Grid& grid_;
  ErrorCorrelation errors_;
  SlopeCovariance complete_;
};

/// Share of the points around each node that were measured with order 2.
std::vector<double> shares_of_order_2(const Field& field, int window) {
  std::vector<double> second(field.order.size()), all(field.order.size());
  for (std::size_t k = 0; k < all.size(); ++k) second[k] = field.order[k] == 2, all[k] = field.order[k] != 0;
  const SquareSums sums(field.grid(), window / 2);
  sums.take(second);
  sums.take(all);
  for (std::size_t k = 0; k < all.size(); ++k) second[k] /= all[k];
  return second;
}

/// Covariances of a field with points of both orders. The covariance of a window with both is between those
/// of one order, as the order changes over more than a subset.
class MixedCovariance {
 public:
  MixedCovariance(const Field& field, const MeasuredSubsets& subsets, int window)
      : first_(with_order(subsets, 1), field.grid(), window),
        second_(with_order(subsets, 2), field.grid(), window),
        shares_(shares_of_order_2(field, window)) {}
  SlopeCovariance operator()(std::size_t node, const PartialWindows* partial) const {
    const SlopeCovariance a = first_(node, partial), b = second_(node, partial);
    const auto share = static_cast<float>(shares_[node]);
    return {std::lerp(a.xx, b.xx, share), std::lerp(a.xy, b.xy, share), std::lerp(a.yy, b.yy, share)};
  }

 private:
  static MeasuredSubsets with_order(MeasuredSubsets subsets, int order) {
    subsets.order = order;
    return subsets;
  }

  WindowCovariance first_, second_;
  std::vector<double> shares_;
};

/// Returns use(covariance) with the covariances of the slopes that subsets make.
template <typename Use>
StrainField with_covariance(const Field& field, int window, const MeasuredSubsets& subsets, const Use& use) {
  if (!field.order.empty()) return use(MixedCovariance(field, subsets, window));
  return use(WindowCovariance(subsets, field.grid(), window));
}

/// The same for errors that are known by draws.
template <typename Use>
StrainField with_covariance(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                            const ErrorDraws& errors, const Use& use) {
  const std::vector<SlopeCovariance> covariances = covariances_of(field, options, pool, errors);
  return use([&](std::size_t k, const PartialWindows*) { return covariances[k]; });
}

void check(const StrainOptions& options) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
}

}  // namespace

StrainField compute_strain(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                           const std::optional<MeasuredSubsets>& subsets, StrainErrors errors) {
  check(options);
  if (!subsets)
    return strain_of(field, options, pool, {},
                     [](std::size_t, const PartialWindows*) { return std::optional<SlopeCovariance>(); });
  return with_covariance(field, options.window, *subsets, [&](const auto& covariance) {
    return strain_of(field, options, pool, errors == StrainErrors::noise ? std::nullopt : subsets,
                     covariance);
  });
}

StrainField compute_strain(const Field& field, const StrainOptions& options, core::ThreadPool& pool,
                           const ErrorDraws& errors, const MeasuredSubsets& subsets) {
  check(options);
  return with_covariance(field, options, pool, errors, [&](const auto& covariance) {
    return strain_of(field, options, pool, subsets, covariance);
  });
}

}  // namespace fields

std::vector<std::string> StrainOptions::validate() const {
  if (window >= 3 && window <= strain::largest_window && window % 2 == 1) return {};
  return {"The strain window is " + std::to_string(window) + " points; use an odd number from 3 to " +
          std::to_string(strain::largest_window) + ", for example 5."};
}

std::array<double, 3> strain_from_gradient(const std::array<double, 4>& gradient, StrainMeasure measure) {
  const strain::Tensor tensor =
      strain::tensor_of({gradient[0], gradient[1], gradient[2], gradient[3]}, measure);
  return {tensor.xx, tensor.yy, tensor.xy};
}

StrainField compute_strain(const Field& field, const StrainOptions& options, int threads,
                           const std::optional<MeasuredSubsets>& subsets) {
  core::ThreadPool pool(threads);
  return fields::compute_strain(field, options, pool, subsets);
}

StrainField compute_strain(const Field& field, const StrainOptions& options, int threads,
                           const ErrorDraws& errors) {
  core::ThreadPool pool(threads);
  constexpr MeasuredSubsets unknown = {1, 2};  // only windows flatten
  return fields::compute_strain(field, options, pool, errors, unknown);
}

}  // namespace dic
