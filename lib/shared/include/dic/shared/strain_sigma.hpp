#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <dic/shared/field_options.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/strain.hpp>
#include <dic/shared/subset_window.hpp>
#include <vector>

/// Effect of the displacements' noise on the strain, for CPU and GPU (docs/theory.md, "Uncertainty of
/// strain").
namespace dic::strain {

/// Kernel that gives a subset's error from the noise at its pixels (i, j from the centre): weight(i)
/// weight(j) (flat + curved * (square(i) + square(j))). It is the least-squares estimate of a displacement at
/// the centre, for pixels of even texture. The sum of its squares is 1.
struct ErrorKernel {
  MeasuredSubsets subsets;
  int radius;
  double total = 0;  ///< sum of the weights of a row
  double mean_square = 0, flat = 0, curved = 0;

  explicit ErrorKernel(const MeasuredSubsets& of) : subsets(of), radius(of.size / 2) {
    for (int i = -radius; i <= radius; ++i) total += weight(i);
    for (int i = -radius; i <= radius; ++i) mean_square += weight(i) * i * i / total;
    double spread = 0;
    for (int i = -radius; i <= radius; ++i) spread += weight(i) * square(i) * square(i);
    const double mean = 1 / (total * total);
    const double parabola = subsets.order < 2 ? 0 : -mean_square / (total * spread);
    double plain = 0, mixed = 0, squares = 0;  // moments of the squared weights
    for (int i = -radius; i <= radius; ++i) {
      const double w = weight(i) * weight(i);
      plain += w, mixed += w * square(i), squares += w * square(i) * square(i);
    }
    const double length = std::sqrt(mean * mean * plain * plain + 4 * mean * parabola * plain * mixed +
                                    2 * parabola * parabola * (plain * squares + mixed * mixed));
    flat = mean / length;
    curved = parabola / length;
  }
  double weight(int i) const { return window_weight<double>(subsets.weights, i, subsets.size); }
  /// i^2 minus its mean over the subset.
  double square(int i) const { return double(i) * i - mean_square; }
};

/// Largest distance, nodes, from a border of the grid for which the effect of cut subsets is computed;
/// windows with a centre farther away are treated as if no subset were cut.
inline constexpr int most_border_nodes = 128;

/// Ratio of the variance of a slope, or of a mean, along an axis near a border of image or ROI to that of
/// whole subsets, by the distance of the window's centre from the border, in nodes.
struct BorderFactors {
  int nodes = 0;  ///< number of entries; farther from the border the ratio is 1
  float slope[most_border_nodes], mean[most_border_nodes];
};

/// Sums over the pixels of an axis that two subsets share: f = products of the kernels of the mean, c =
/// products of the mean with what the fit of slopes and curvatures adds to it, d = products of the latter.
struct AxisProducts {
  double f = 0, c = 0, d = 0;

  AxisProducts& add(double weight, const AxisProducts& other) {
    f += weight * other.f, c += weight * other.c, d += weight * other.d;
    return *this;
  }
  /// Covariance of two displacements with these products along one axis and `across` along the other.
  double with(const AxisProducts& across) const {
    return f * across.f + 2 * (c * across.f + f * across.c) + d * across.f + f * across.d + 2 * c * across.c;
  }
};

/// Kernel along one axis of a subset whose pixels beyond a border are missing: for pixels of even texture,
/// the least-squares estimate of the displacement at its node weights pixel i by mean(i) + rest(i).
class AxisKernel {
 public:
  /// before: distance from the node to the border, px.
  AxisKernel(const MeasuredSubsets& subsets, std::int64_t before)
      : subsets_(subsets), first_(static_cast<int>(-std::min<std::int64_t>(before, subsets.size / 2))) {
    for (int i = first_; i <= last(); ++i) total_ += weight(i), centre_ += weight(i) * i;
    centre_ /= total_;
    for (int i = first_; i <= last(); ++i)
      square_ += weight(i) * power(i, 2), cube_ += weight(i) * power(i, 3);
    square_ /= total_, cube_ /= total_;
    for (int i = first_; i <= last(); ++i) spread_ += weight(i) * bent(i) * bent(i) / total_;
  }
  int first() const { return first_; }
  int last() const { return subsets_.size / 2; }
  double mean(int i) const { return weight(i) / total_; }
  double rest(int i) const {
    double sum = 0;
    if (subsets_.order > 0) sum -= centre_ * (i - centre_) / square_;
    if (subsets_.order > 1) sum += bent(0) * bent(i) / spread_;
    return weight(i) / total_ * sum;
  }

 private:
  double weight(int i) const { return window_weight<double>(subsets_.weights, i, subsets_.size); }
  double power(int i, int exponent) const { return std::pow(i - centre_, exponent); }
  /// A parabola that is orthogonal to the mean and to the slope.
  double bent(int i) const { return power(i, 2) - square_ - cube_ / square_ * (i - centre_); }

  const MeasuredSubsets& subsets_;
  int first_;
  double total_ = 0, centre_ = 0, square_ = 0, cube_ = 0, spread_ = 0;
};

/// Products of two kernels, with b's node `apart` px after a's.
inline AxisProducts products_of(const AxisKernel& a, const AxisKernel& b, std::int64_t apart) {
  AxisProducts sum;
  for (std::int64_t i = std::max<std::int64_t>(a.first(), b.first() + apart); i <= a.last(); ++i) {
    const int near = static_cast<int>(i), far = static_cast<int>(i - apart);
    if (far > b.last()) break;
    sum.f += a.mean(near) * b.mean(far);
    sum.c += 0.5 * (a.mean(near) * b.rest(far) + a.rest(near) * b.mean(far));
    sum.d += a.rest(near) * b.rest(far);
  }
  return sum;
}

/// Products of the subsets of all pairs of nodes in a row that starts at a border.
class RowProducts {
 public:
  /// cut: true if the border cuts subsets.
  RowProducts(const MeasuredSubsets& subsets, int step, int nodes, bool cut)
      : nodes_(nodes), products_(static_cast<std::size_t>(nodes) * nodes) {
    std::vector<AxisKernel> kernels;
    for (std::int64_t k = 0; k < nodes; ++k)
      kernels.emplace_back(subsets, cut ? k * step : std::int64_t{subsets.size});
    for (int a = 0; a < nodes; ++a)
      for (int b = a; b < nodes && std::int64_t{b - a} * step < subsets.size; ++b)
        products_[static_cast<std::size_t>(a) * nodes + b] =
            products_of(kernels[a], kernels[b], std::int64_t{b - a} * step);
  }
  const AxisProducts& of(int a, int b) const {
    return products_[static_cast<std::size_t>(std::min(a, b)) * nodes_ + std::max(a, b)];
  }
  AxisProducts slope(int first, int last) const {
    const double centre = 0.5 * (first + last), n = last - first + 1, square = n * (n * n - 1) / 12;
    return sum(first, last, [=](int k) { return (k - centre) / square; });
  }
  AxisProducts mean(int first, int last) const {
    const double n = last - first + 1;
    return sum(first, last, [=](int) { return 1 / n; });
  }

 private:
  template <typename Weight>
  AxisProducts sum(int first, int last, const Weight& weight) const {
    AxisProducts out;
    for (int a = first; a <= last; ++a)
      for (int b = first; b <= last; ++b) out.add(weight(a) * weight(b), of(a, b));
    return out;
  }

  int nodes_;
  std::vector<AxisProducts> products_;
};

/// Number of rows, and of columns, of a window whose nodes tell its noise: all of up to 5, otherwise 5.
DIC_HOST_DEVICE constexpr int variance_offsets(int window) { return window < 5 ? 3 : 5; }
/// The k-th of these rows, in nodes from the centre.
DIC_HOST_DEVICE constexpr int variance_offset(int window, int k) {
  const int distance = k > 2 ? window / 4 : window / 2;
  return k == 0 ? 0 : k % 2 == 0 ? distance : -distance;
}

inline BorderFactors border_factors(const MeasuredSubsets& subsets, int step, int window) {
  BorderFactors factors;
  const int half = window / 2, cut = (subsets.size / 2 + step - 1) / step;
  factors.nodes = std::min(half + cut, most_border_nodes);
  const int nodes = factors.nodes + half;
  const RowProducts near(subsets, step, nodes, true), whole(subsets, step, std::max(nodes, window), false);
  const AxisProducts slope_across = whole.slope(0, window - 1), mean_across = whole.mean(0, window - 1);
  const AxisProducts& across = whole.of(0, 0);
  // Variance at the nodes used by strain::NodeVariances, relative to that of a whole subset.
  const auto growth = [&](int k) { return near.of(k, k).with(across) / across.with(across); };
  for (int k = 0; k < factors.nodes; ++k) {
    const int first = std::max(0, k - half), last = k + half;
    double seen = 0, count = 0;
    for (int n = 0; n < variance_offsets(window); ++n) {
      const int at = k + variance_offset(window, n);
      if (at >= 0) seen += growth(std::min(at, nodes - 1)), count += 1;
    }
    seen /= count;
    factors.slope[k] = static_cast<float>(near.slope(first, last).with(mean_across) /
                                          whole.slope(first, last).with(mean_across) / seen);
    factors.mean[k] = static_cast<float>(near.mean(first, last).with(slope_across) /
                                         whole.mean(first, last).with(slope_across) / seen);
  }
  return factors;
}

/// Correlation of the errors of subsets at different nodes: that of their kernels over the shared pixels. It
/// is a sum of products of functions of the lag along x and along y, in nodes: ff F F + 2 fc (F C + C F) + cc
/// (F D + D F + 2 C C).
struct ErrorCorrelation {
  float per_square_px = 1;  ///< 1 / step^2
  float ff = 1, fc = 0, cc = 0;
  bool is_box = true;  ///< fc and cc are 0
  float f[largest_window], c[largest_window], d[largest_window];
  BorderFactors border;

  ErrorCorrelation(const MeasuredSubsets& subsets, int step_px, int window)
      : border(border_factors(subsets, step_px, window)) {
    const ErrorKernel kernel(subsets);
    per_square_px = static_cast<float>(1.0 / (double(step_px) * step_px));
    is_box = kernel.curved == 0;
    ff = static_cast<float>(kernel.flat * kernel.flat), fc = static_cast<float>(kernel.flat * kernel.curved);
    cc = static_cast<float>(kernel.curved * kernel.curved);
    for (int lag = 0; lag < largest_window; ++lag) fill(kernel, lag, lag * step_px);
  }

  /// Correlation between nodes with these lags, both below largest_window.
  double at(int lag_x, int lag_y) const {
    const double fx = f[lag_x], cx = c[lag_x], dx = d[lag_x], fy = f[lag_y], cy = c[lag_y], dy = d[lag_y];
    return ff * fx * fy + 2 * fc * (fx * cy + cx * fy) + cc * (fx * dy + dx * fy + 2 * cx * cy);
  }

 private:
  void fill(const ErrorKernel& kernel, int lag, std::int64_t pixels) {
    double flat = 0, mixed = 0, curved = 0;
    for (std::int64_t i = pixels - kernel.radius; i <= kernel.radius; ++i) {
      const int near = static_cast<int>(i), far = static_cast<int>(i - pixels);
      const double weight = kernel.weight(near) * kernel.weight(far);
      flat += weight, mixed += weight * kernel.square(near);
      curved += weight * kernel.square(near) * kernel.square(far);
    }
    f[lag] = static_cast<float>(flat), c[lag] = static_cast<float>(mixed),
    d[lag] = static_cast<float>(curved);
  }
};

/// Covariance of the slopes d/dx and d/dy of a plane fitted to a window, for errors of variance 1, 1/px^2.
struct SlopeCovariance {
  float xx, xy, yy;
};

/// Variances of a slope and of a mean over a row of nodes, for each function of the correlation.
struct RowVariances {
  float slope_f = 0, slope_c = 0, slope_d = 0, mean_f = 0, mean_c = 0, mean_d = 0;

  /// width: of the row, nodes, above 1; fractions interpolate.
  DIC_HOST_DEVICE RowVariances(const ErrorCorrelation& errors, float width) {
    for (int lag = 0; static_cast<float>(lag) < width && lag < largest_window; ++lag) {
      const float distance = static_cast<float>(lag), pairs = (lag > 0 ? 2 : 1) * (width - distance);
      // Sum of i (i + lag) over pairs of nodes of the row, i counted from its centre.
      const float slope = pairs * ((width - distance) * (width - distance) - 1 - 3 * distance * distance);
      slope_f += slope * errors.f[lag], mean_f += pairs * errors.f[lag];
      if (errors.is_box) continue;
      slope_c += slope * errors.c[lag], mean_c += pairs * errors.c[lag];
      slope_d += slope * errors.d[lag], mean_d += pairs * errors.d[lag];
    }
    const float sum = width * (width * width - 1), of_slope = 12 / (sum * sum), of_mean = 1 / (width * width);
    slope_f *= of_slope, slope_c *= of_slope, slope_d *= of_slope;
    mean_f *= of_mean, mean_c *= of_mean, mean_d *= of_mean;
  }
};

/// Variance of the product of a functional of a rectangle's rows and one of its columns, for errors of
/// variance 1.
DIC_HOST_DEVICE inline float combined(const ErrorCorrelation& errors, float f_x, float c_x, float d_x,
                                      float f_y, float c_y, float d_y) {
  return errors.ff * f_x * f_y + 2 * errors.fc * (c_x * f_y + f_x * c_y) +
         errors.cc * (d_x * f_y + f_x * d_y + 2 * c_x * c_y);
}
/// Variance of the slope along one axis, per node^2, of a window with these row variances along and across
/// it.
DIC_HOST_DEVICE inline float rectangle_slope(const ErrorCorrelation& errors, const RowVariances& along,
                                             const RowVariances& across) {
  return combined(errors, along.slope_f, along.slope_c, along.slope_d, across.mean_f, across.mean_c,
                  across.mean_d);
}

inline SlopeCovariance complete_window_covariance(const ErrorCorrelation& errors, int window) {
  const RowVariances row(errors, static_cast<float>(window));
  const float variance = rectangle_slope(errors, row, row) * errors.per_square_px;
  return {variance, 0, variance};
}

/// Covariance for a window with missing nodes: that of a rectangle with the same moments and single missing
/// nodes. xx, xy, yy: sums of the central second moments of its n nodes, in nodes.
DIC_HOST_DEVICE inline SlopeCovariance partial_window_covariance(const ErrorCorrelation& errors, double n,
                                                                 double xx, double xy, double yy) {
  const auto nodes = static_cast<float>(n);
  const float spread_x = static_cast<float>(xx) / nodes, spread_y = static_cast<float>(yy) / nodes;
  const float width = std::sqrt(12 * spread_x + 1), height = std::sqrt(12 * spread_y + 1);
  const RowVariances row(errors, width), column(errors, height);
  float x = rectangle_slope(errors, row, column), y = rectangle_slope(errors, column, row);
  // Errors that lie on a plane over the whole window are unchanged for the remaining nodes. The other errors
  // count more, the fewer nodes remain.
  const float mean =
      combined(errors, row.mean_f, row.mean_c, row.mean_d, column.mean_f, column.mean_c, column.mean_d);
  const float off_plane = fmaxf(1 - mean - x * spread_x - y * spread_y, 0.0F);
  const float sparse = fmaxf(1 / nodes - 1 / (width * height), 0.0F) * off_plane;
  x += sparse / spread_x, y += sparse / spread_y;
  const float skew = static_cast<float>(xy) / std::sqrt(static_cast<float>(xx) * static_cast<float>(yy));
  const float scale = errors.per_square_px / (1 - skew * skew);
  return {x * scale, -skew * std::sqrt(x * y) * scale, y * scale};
}

/// Covariance at node (i, j) of a grid of nx x ny nodes, corrected for subsets that borders cut.
DIC_HOST_DEVICE inline SlopeCovariance near_borders(SlopeCovariance covariance, const BorderFactors& border,
                                                    int i, int j, int nx, int ny) {
  float slope_x = 1, slope_y = 1, mean_x = 1, mean_y = 1;
  const auto add = [&border](int nodes, float& slope, float& mean) {
    if (nodes < border.nodes) slope *= border.slope[nodes], mean *= border.mean[nodes];
  };
  add(i, slope_x, mean_x), add(nx - 1 - i, slope_x, mean_x);
  add(j, slope_y, mean_y), add(ny - 1 - j, slope_y, mean_y);
  const float x = slope_x * mean_y, y = slope_y * mean_x;
  return {covariance.xx * x, covariance.xy * std::sqrt(x * y), covariance.yy * y};
}

struct NodeSigmas {
  float u, v;
};

/// Variances of u and v around a node: means over the measured ones among up to 25 nodes of its window.
/// sigma_at(di, dj): the sigmas of a node, NaN if not measured.
struct NodeVariances {
  float u = 0, v = 0;

  template <typename SigmaAt>
  DIC_HOST_DEVICE NodeVariances(int window, const SigmaAt& sigma_at) {
    float count = 0;
    const int offsets = variance_offsets(window);
    for (int row = 0; row < offsets; ++row)
      for (int column = 0; column < offsets; ++column) {
        const NodeSigmas sigma = sigma_at(variance_offset(window, column), variance_offset(window, row));
        if (std::isnan(sigma.u) || std::isnan(sigma.v)) continue;
        u += sigma.u * sigma.u, v += sigma.v * sigma.v;
        count += 1;
      }
    u /= count, v /= count;  // NaN if nothing is measured
  }
};

/// Change of the Green-Lagrange strain if the deformation gradient F changes by d.
DIC_HOST_DEVICE inline Tensor green_lagrange_change(const Gradient& f, const Gradient& d) {
  return {f.ux * d.ux + f.vx * d.vx, f.uy * d.uy + f.vy * d.vy,
          (f.ux * d.uy + f.uy * d.ux + f.vx * d.vy + f.vy * d.vx) / 2};
}

/// Change of the Hencky strain: in the principal axes of C, the logarithm acts on each component by a divided
/// difference.
DIC_HOST_DEVICE inline Tensor hencky_change(const Gradient& f, const Gradient& d) {
  const Tensor c = right_cauchy_green(f), half = green_lagrange_change(f, d);  // C and half of its change
  const double mean = (c.xx + c.yy) / 2, difference = (c.xx - c.yy) / 2;
  const double radius = std::hypot(difference, c.xy), det = f.ux * f.vy - f.uy * f.vx;
  const double larger = mean + radius, smaller = det * det / larger;
  const bool isotropic = radius <= 1e-7 * mean;
  // Cosine and sine of twice the angle of the principal axes.
  const double cos = isotropic ? 1 : difference / radius, sin = isotropic ? 0 : c.xy / radius;
  const double shear_factor = isotropic ? 1 / mean : (std::log(larger) - std::log(smaller)) / (2 * radius);
  const double centre = (half.xx + half.yy) / 2, half_difference = (half.xx - half.yy) / 2;
  const double axial = half_difference * cos + half.xy * sin;
  const double shear = (half.xy * cos - half_difference * sin) * shear_factor;
  const double first = (centre + axial) / larger, second = (centre - axial) / smaller;
  const double new_centre = (first + second) / 2, new_axial = (first - second) / 2;
  const double turned = new_axial * cos - shear * sin;
  return {new_centre + turned, new_centre - turned, new_axial * sin + shear * cos};
}

/// Change of the Almansi strain: e = (I - B) / 2 with B = F^-T F^-1 changes by (L^T B + B L) / 2, L = d F^-1.
DIC_HOST_DEVICE inline Tensor almansi_change(const Gradient& f, const Gradient& d) {
  const double det = f.ux * f.vy - f.uy * f.vx;
  const Gradient g = {f.vy / det, -f.uy / det, -f.vx / det, f.ux / det};
  const Tensor b = right_cauchy_green(g);
  const Gradient l = {d.ux * g.ux + d.uy * g.vx, d.ux * g.uy + d.uy * g.vy, d.vx * g.ux + d.vy * g.vx,
                      d.vx * g.uy + d.vy * g.vy};
  return {b.xx * l.ux + b.xy * l.vx, b.xy * l.uy + b.yy * l.vy,
          (b.xx * l.uy + b.xy * l.vy + b.xy * l.ux + b.yy * l.vx) / 2};
}

DIC_HOST_DEVICE inline Tensor change_of(const Gradient& f, const Gradient& d, StrainMeasure measure) {
  switch (measure) {
    case StrainMeasure::engineering:
      return {d.ux, d.vy, (d.uy + d.vx) / 2};
    case StrainMeasure::hencky:
      return hencky_change(f, d);
    case StrainMeasure::almansi:
      return almansi_change(f, d);
    case StrainMeasure::green_lagrange:
      break;
  }
  return green_lagrange_change(f, d);
}

struct Sigmas {
  float exx, eyy, exy;
};

/// Standard deviations of the strain at a displacement gradient, to first order of the noise; the errors of u
/// and v are taken as independent.
DIC_HOST_DEVICE inline Sigmas sigmas_of(const Gradient& gradient, StrainMeasure measure,
                                        const SlopeCovariance& unit, const NodeVariances& variances) {
  const Gradient f = {1 + gradient.ux, gradient.uy, gradient.vx, 1 + gradient.vy};
  Tensor sum = {0, 0, 0};
  const auto add = [&](const Tensor& x, const Tensor& y, double variance) {
    const auto of = [&](double dx, double dy) {
      return variance * (dx * dx * unit.xx + 2 * dx * dy * unit.xy + dy * dy * unit.yy);
    };
    sum.xx += of(x.xx, y.xx), sum.yy += of(x.yy, y.yy), sum.xy += of(x.xy, y.xy);
  };
  add(change_of(f, {1, 0, 0, 0}, measure), change_of(f, {0, 1, 0, 0}, measure), variances.u);
  add(change_of(f, {0, 0, 1, 0}, measure), change_of(f, {0, 0, 0, 1}, measure), variances.v);
  return {static_cast<float>(std::sqrt(sum.xx)), static_cast<float>(std::sqrt(sum.yy)),
          static_cast<float>(std::sqrt(sum.xy))};
}

}  // namespace dic::strain
