#include <algorithm>
#include <bitset>
#include <cmath>
#include <cstddef>
#include <dic/error.hpp>
#include <dic/fields.hpp>
#include <limits>
#include <utility>

#include "core/parallel.hpp"

namespace dic {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kRowsPerTask = 8;
constexpr int kMaxStrainWindow = 127;

using Gradient = std::array<double, 4>;  // du/dx, du/dy, dv/dx, dv/dy
constexpr Gradient kNoGradient = {kMissing, kMissing, kMissing, kMissing};

/// One displacement component with NaN wherever it must not enter a fit.
std::vector<double> fit_data(const Grid& grid, const Field& field, const std::vector<double>& component) {
  std::vector<double> data(component.size());
  for (std::size_t k = 0; k < data.size(); ++k)
    data[k] = grid.inside[k] && field.status[k] == Status::ok ? component[k] : kMissing;
  return data;
}

/// Slopes of the least-squares planes of complete windows, a row of nodes at a time. On a complete window the
/// plane's slopes are sum(i f) and sum(j f) over a constant, and both sums are separable. A missing node
/// makes its NaN the result, which is how callers learn that the window was not complete.
class CompleteWindows {
 public:
  CompleteWindows(const Grid& grid, int window) : grid_(grid), half_(window / 2) {
    double squares = 0;
    for (int i = -half_; i <= half_; ++i) squares += i * i;
    scale_ = 1 / (squares * window * grid.step);
    column_sum_.resize(grid.nx);
    column_moment_.resize(grid.nx);
  }

  /// d/dx and d/dy of `data` at the nodes of row j; NaN where the window is not complete.
  void slopes(const std::vector<double>& data, int j, std::vector<double>& dx, std::vector<double>& dy) {
    dx.assign(grid_.nx, kMissing);
    dy.assign(grid_.nx, kMissing);
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
  double scale_ = 0;
  std::vector<double> column_sum_, column_moment_;
};

/// Least-squares planes over windows with missing nodes: only what 4-neighbour steps inside the window
/// connect with the centre takes part, so that neither a hole nor a crack is bridged.
class PartialWindows {
 public:
  PartialWindows(const Grid& grid, const std::vector<double>& u, const std::vector<double>& v, int window)
      : grid_(grid), u_(u), v_(v), window_(window), half_(window / 2), usable_(window), reached_(window) {}

  Gradient gradient(int i, int j) {
    find_usable(i, j);
    find_reached();
    const Moments m = moments(i, j);
    // Half of the window never fits on one line, so the normal equations cannot be singular.
    if (2 * m.n < window_ * window_) return kNoGradient;
    const double xx = m.xx - m.x * m.x / m.n, xy = m.xy - m.x * m.y / m.n, yy = m.yy - m.y * m.y / m.n;
    const double scale = 1 / ((xx * yy - xy * xy) * grid_.step);
    const auto slopes = [&](const DataMoments& f) {
      const double xf = f.x - m.x * f.sum / m.n, yf = f.y - m.y * f.sum / m.n;
      return std::array{(yy * xf - xy * yf) * scale, (xx * yf - xy * xf) * scale};
    };
    const auto du = slopes(m.u), dv = slopes(m.v);
    return {du[0], du[1], dv[0], dv[1]};
  }

 private:
  using Row = std::bitset<kMaxStrainWindow + 1>;  // bit b: node i - half + b of a window row

  struct DataMoments {
    double sum = 0, x = 0, y = 0;  // sums of f, x f, y f
  };
  struct Moments {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    DataMoments u, v;
  };

  /// The data of window row r around (i, j), from the window's first column on; may begin before the row
  /// does.
  std::ptrdiff_t row_start(int i, int j, int r) const {
    return static_cast<std::ptrdiff_t>(j - half_ + r) * grid_.nx + i - half_;
  }
  bool in_grid(int j, int r) const { return j - half_ + r >= 0 && j - half_ + r < grid_.ny; }

  void find_usable(int i, int j) {
    const int first = std::max(0, half_ - i), last = std::min(window_, grid_.nx - i + half_);
    for (int r = 0; r < window_; ++r) {
      usable_[r].reset();
      if (!in_grid(j, r)) continue;
      const std::ptrdiff_t start = row_start(i, j, r);
      for (int b = first; b < last; ++b) usable_[r][b] = !std::isnan(u_[start + b]);
    }
    usable_[half_].set(half_);  // the centre starts the search even where it is an outlier itself
  }

  /// Spreads from the centre along rows and to the rows above and below until nothing changes.
  void find_reached() {
    for (Row& row : reached_) row.reset();
    reached_[half_].set(half_);
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
    row &= usable_[r];
    Row up = usable_[r], down = usable_[r];  // runs of usable nodes of doubling length
    for (int distance = 1; distance < window_; distance *= 2) {
      row |= (up & row << distance) | (down & row >> distance);
      up &= up << distance;
      down &= down >> distance;
    }
    return std::exchange(reached_[r], row) != row;
  }

  Moments moments(int i, int j) {
    // The centre of an outlier was a step on the way only.
    if (std::isnan(u_[row_start(i, j, half_) + half_])) reached_[half_].reset(half_);
    Moments m;
    for (int r = 0; r < window_; ++r) {
      double n = 0, sx = 0, sxx = 0;
      DataMoments u, v;
      const std::ptrdiff_t start = row_start(i, j, r);
      for (int b = 0; b < window_; ++b) {
        if (!reached_[r][b]) continue;
        const double x = b - half_, fu = u_[start + b], fv = v_[start + b];
        n += 1, sx += x, sxx += x * x;
        u.sum += fu, u.x += x * fu;
        v.sum += fv, v.x += x * fv;
      }
      const double y = r - half_;
      m.n += n, m.x += sx, m.xx += sxx, m.y += y * n, m.yy += y * y * n, m.xy += y * sx;
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
  const std::vector<float> missing(nodes, std::numeric_limits<float>::quiet_NaN());
  return {missing, missing, missing, missing, missing, missing};
}

void store(StrainField& strain, std::size_t k, const std::array<double, 3>& components) {
  const auto [exx, eyy, exy] = components;
  const double mean = (exx + eyy) / 2, difference = (exx - eyy) / 2;
  const double radius = std::sqrt(difference * difference + exy * exy);
  strain.exx[k] = static_cast<float>(exx);
  strain.eyy[k] = static_cast<float>(eyy);
  strain.exy[k] = static_cast<float>(exy);
  strain.e1[k] = static_cast<float>(mean + radius);
  strain.e2[k] = static_cast<float>(mean - radius);
  strain.von_mises[k] = static_cast<float>(std::sqrt(exx * exx + eyy * eyy - exx * eyy + 3 * exy * exy));
}

/// A symmetric 2x2 tensor.
struct Tensor {
  double xx, yy, xy;
};

Tensor right_cauchy_green(const Gradient& f) {  // F^T F
  return {f[0] * f[0] + f[2] * f[2], f[1] * f[1] + f[3] * f[3], f[0] * f[1] + f[2] * f[3]};
}

/// ln(C) / 2, through the eigenvalues of C, which stay on its axes.
std::array<double, 3> hencky(const Tensor& c, double det_f) {
  const double mean = (c.xx + c.yy) / 2;
  const double radius = std::hypot((c.xx - c.yy) / 2, c.xy);
  const double larger = mean + radius;
  const double smaller = det_f * det_f / larger;  // mean - radius would cancel
  const double h1 = std::log(larger) / 2, h2 = std::log(smaller) / 2;
  // Isotropic C: the quotient's limit.
  const double slope = radius > 1e-12 * mean ? (h1 - h2) / (2 * radius) : 1 / (2 * mean);
  const double trace_half = (h1 + h2) / 2;
  return {trace_half + slope * (c.xx - mean), trace_half + slope * (c.yy - mean), slope * c.xy};
}

/// (I - F^-T F^-1) / 2.
std::array<double, 3> almansi(const Gradient& f, double det_f) {
  const Gradient inverse = {f[3] / det_f, -f[1] / det_f, -f[2] / det_f, f[0] / det_f};
  const Tensor b = right_cauchy_green(inverse);
  return {(1 - b.xx) / 2, (1 - b.yy) / 2, -b.xy / 2};
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

std::vector<std::string> StrainOptions::problems() const {
  if (window >= 3 && window <= kMaxStrainWindow && window % 2 == 1) return {};
  return {"The strain window is " + std::to_string(window) + " points; use an odd number from 3 to " +
          std::to_string(kMaxStrainWindow) + ", for example 5."};
}

std::array<double, 3> strain_from_gradient(const std::array<double, 4>& gradient, StrainMeasure measure) {
  const auto [ux, uy, vx, vy] = gradient;
  if (measure == StrainMeasure::engineering) return {ux, vy, (uy + vx) / 2};
  if (measure == StrainMeasure::green_lagrange)  // (F^T F - I) / 2, written without the 1s that would cancel
    return {ux + (ux * ux + vx * vx) / 2, vy + (uy * uy + vy * vy) / 2, (uy + vx + ux * uy + vx * vy) / 2};

  const Gradient f = {1 + ux, uy, vx, 1 + vy};
  const double det_f = f[0] * f[3] - f[1] * f[2];
  if (!(det_f > 0)) return {kMissing, kMissing, kMissing};  // folded or flattened: not a deformation
  return measure == StrainMeasure::hencky ? hencky(right_cauchy_green(f), det_f) : almansi(f, det_f);
}

StrainField compute_strain(const Grid& grid, const Field& field, const StrainOptions& options, int threads) {
  if (const auto problems = options.problems(); !problems.empty()) throw UsageError(problems.front());
  const std::vector<double> u = fit_data(grid, field, field.u), v = fit_data(grid, field, field.v);
  StrainField strain = missing_strain(u.size());

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
        if (!std::isnan(gradient[0])) store(strain, k, strain_from_gradient(gradient, options.measure));
      }
    }
  });
  return strain;
}

}  // namespace dic
