#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dic/error.hpp>
#include <dic/fields.hpp>
#include <dic/shared/strain.hpp>
#include <dic/shared/tears.hpp>
#include <limits>
#include <utility>

#include "core/parallel.hpp"

namespace dic {
namespace {

using strain::DataMoments;
using strain::Gradient;
using strain::missing;
using strain::NodeMoments;
using strain::Tensor;

constexpr std::int64_t kRowsPerTask = 8;

constexpr Gradient kNoGradient = {missing, missing, missing, missing};

/// One displacement component with NaN wherever it must not enter a fit.
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

/// Slopes of the least-squares planes of complete windows, a row of nodes at a time. On a complete window the
/// plane's slopes are sum(i f) and sum(j f) over a constant, and both sums are separable. A missing node
/// makes the result NaN: callers see from it that the window was not complete.
class CompleteWindows {
 public:
  CompleteWindows(const Grid& grid, int window)
      : grid_(grid), half_(window / 2), scale_(strain::complete_window_scale(window, grid.step)) {
    column_sum_.resize(grid.nx);
    column_moment_.resize(grid.nx);
  }

  /// d/dx and d/dy of `data` at the nodes of row j; NaN where the window is not complete.
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

/// Least-squares planes over windows with missing nodes. Only nodes take part that are connected with the
/// centre by steps to one of four neighbours inside the window, so that neither a hole nor a crack is
/// bridged.
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
    return {ux, uy, vx, vy};
  }

 private:
  using Row = unsigned __int128;  // bit b: node i - half + b of a window row

  struct Moments {
    NodeMoments nodes;
    DataMoments u, v;
  };

  /// The data of window row r around (i, j), from the window's first column on; may begin before the row
  /// does.
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
    usable_[half_] |= bit(half_);  // the search begins there even where it is an outlier
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
};

StrainField missing_strain(std::size_t nodes) {
  const NodeValues<float> none(nodes, std::numeric_limits<float>::quiet_NaN());
  return {none, none, none, none, none, none};
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

}  // namespace

std::string_view to_string(StrainMeasure measure) {
  switch (measure) {
    case StrainMeasure::green_lagrange:
      return "green-lagrange";
    case StrainMeasure::engineering:
      return "engineering";
    case StrainMeasure::hencky:
      return "hencky";
    case StrainMeasure::almansi:
      break;
  }
  return "almansi";
}

std::vector<std::string> StrainOptions::validate() const {
  if (window >= 3 && window <= strain::largest_window && window % 2 == 1) return {};
  return {"The strain window is " + std::to_string(window) + " points; use an odd number from 3 to " +
          std::to_string(strain::largest_window) + ", for example 5."};
}

std::array<double, 3> strain_from_gradient(const std::array<double, 4>& gradient, StrainMeasure measure) {
  const Tensor tensor = strain::tensor_of({gradient[0], gradient[1], gradient[2], gradient[3]}, measure);
  return {tensor.xx, tensor.yy, tensor.xy};
}

StrainField compute_strain(const Field& field, const StrainOptions& options, int threads) {
  if (const auto problems = options.validate(); !problems.empty()) throw UsageError(problems.front());
  const Grid& grid = field.grid();
  std::vector<double> u = fit_data(field, field.u), v = fit_data(field, field.v);
  remove_torn(field, u, v);
  StrainField result = missing_strain(u.size());

  ThreadPool pool(threads);
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    CompleteWindows complete(grid, options.window);
    PartialWindows partial(grid, u, v, options.window);
    std::vector<double> ux, uy, vx, vy;
    for (int j = static_cast<int>(begin); j < end; ++j) {
      complete.slopes(u, j, ux, uy);
      complete.slopes(v, j, vx, vy);
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (!grid.inside[k] || !has_values(field.status[k])) continue;
        const Gradient gradient =
            std::isnan(ux[i]) ? partial.gradient(i, j) : Gradient{ux[i], uy[i], vx[i], vy[i]};
        if (!std::isnan(gradient.ux)) store(result, k, strain::tensor_of(gradient, options.measure));
      }
    }
  });
  return result;
}

}  // namespace dic
