#pragma once

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <dic/refine.hpp>

/// Splines computed in double from their definition.
namespace dic::test {

inline int degree_of(Interpolation interpolation) { return interpolation == Interpolation::cubic ? 3 : 5; }
/// Factor of the library's coefficients.
inline double coefficient_scale(Interpolation interpolation) {
  return interpolation == Interpolation::cubic ? 36 : 14400;
}

/// Centred B-spline, by truncated powers.
inline double bspline(int degree, double x) {
  double sum = 0, binomial = 1, factorial = 1;
  for (int k = 0; k <= degree + 1; ++k) {
    sum += (k % 2 ? -binomial : binomial) * std::pow(std::max(0.0, x + 0.5 * (degree + 1) - k), degree);
    binomial = binomial * (degree + 1 - k) / (k + 1);
  }
  for (int k = 2; k <= degree; ++k) factorial *= k;
  return sum / factorial;
}
inline double bspline_derivative(int degree, double x) {
  return bspline(degree - 1, x + 0.5) - bspline(degree - 1, x - 0.5);
}

/// Coefficients by solving the interpolation conditions; natural boundary: coefficients beyond the edge are
/// point-reflected about the coefficient at the edge.
class NaiveSpline {
 public:
  NaiveSpline(const Image& image, Interpolation interpolation) : degree_(degree_of(interpolation)) {
    Eigen::MatrixXd values(image.height(), image.width());
    for (int y = 0; y < image.height(); ++y)
      for (int x = 0; x < image.width(); ++x) values(y, x) = image.row<float>(y)[x];
    const Eigen::MatrixXd columns = conditions(image.height()).partialPivLu().solve(values);
    coefficients_ = conditions(image.width()).partialPivLu().solve(columns.transpose()).transpose();
  }

  double at(double x, double y) const { return sum(x, y, bspline, bspline); }
  double dx(double x, double y) const { return sum(x, y, bspline_derivative, bspline); }
  double dy(double x, double y) const { return sum(x, y, bspline, bspline_derivative); }
  double coefficient(int x, int y) const {
    const int w = static_cast<int>(coefficients_.cols()), h = static_cast<int>(coefficients_.rows());
    if (w == 1) x = 0;
    if (h == 1) y = 0;
    if (x < 0) return 2 * coefficient(0, y) - coefficient(-x, y);
    if (x >= w) return 2 * coefficient(w - 1, y) - coefficient(2 * (w - 1) - x, y);
    if (y < 0) return 2 * coefficient(x, 0) - coefficient(x, -y);
    if (y >= h) return 2 * coefficient(x, h - 1) - coefficient(x, 2 * (h - 1) - y);
    return coefficients_(y, x);
  }

 private:
  static void add_tap(Eigen::MatrixXd& out, int row, int tap, double weight) {
    const int n = static_cast<int>(out.cols());
    if (n == 1) tap = 0;
    if (tap >= 0 && tap < n) {
      out(row, tap) += weight;
      return;
    }
    const int end = tap < 0 ? 0 : n - 1;
    out(row, end) += 2 * weight;
    add_tap(out, row, 2 * end - tap, -weight);
  }
  Eigen::MatrixXd conditions(int n) const {
    Eigen::MatrixXd out = Eigen::MatrixXd::Zero(n, n);
    for (int k = 0; k < n; ++k)
      for (int tap = k - degree_ / 2; tap <= k + degree_ / 2; ++tap)
        add_tap(out, k, tap, bspline(degree_, k - tap));
    return out;
  }
  template <typename BasisX, typename BasisY>
  double sum(double x, double y, const BasisX& basis_x, const BasisY& basis_y) const {
    const int x0 = static_cast<int>(std::floor(x)) - degree_ / 2, taps = degree_ + 1;
    const int y0 = static_cast<int>(std::floor(y)) - degree_ / 2;
    std::array<double, 6> wx{}, wy{};
    for (int k = 0; k < taps; ++k) {
      wx[k] = basis_x(degree_, x - x0 - k);
      wy[k] = basis_y(degree_, y - y0 - k);
    }
    double out = 0;
    for (int r = 0; r < taps; ++r)
      for (int c = 0; c < taps; ++c) out += wy[r] * wx[c] * coefficient(x0 + c, y0 + r);
    return out;
  }

  int degree_;
  Eigen::MatrixXd coefficients_;
};

}  // namespace dic::test
