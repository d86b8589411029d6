#include "analysis/interpolation_bias.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <complex>
#include <dic/shared/gaussian.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/subset_window.hpp>
#include <numbers>
#include <utility>

namespace dic::analysis {
namespace {

constexpr int kSize = PowerSpectrum::kSize;
using Responses = std::array<std::complex<double>, kSize>;

/// Fourier transform of the spline that is 1 at a pixel and 0 at all others.
double cardinal_spline(Interpolation interpolation, double omega) {
  const double box = omega == 0 ? 1 : std::sin(omega / 2) / (omega / 2);
  if (interpolation == Interpolation::cubic) return std::pow(box, 4) * 3 / (2 + std::cos(omega));
  return std::pow(box, 6) * 60 / (33 + 26 * std::cos(omega) + std::cos(2 * omega));
}

/// Waves of every frequency after a spline moved them by `shift` px, over the waves moved exactly. The spline
/// adds copies of the spectrum, a whole turn per pixel apart, which move differently.
Responses moved_waves(Interpolation interpolation, double shift) {
  Responses out;
  for (int i = 0; i < kSize; ++i)
    for (int copy = -3; copy <= 3; ++copy) {
      const double turn = 2 * std::numbers::pi * copy;
      out[i] += std::polar(cardinal_spline(interpolation, PowerSpectrum::frequency(i) + turn), turn * shift);
    }
  return out;
}

/// Waves of a pattern, from which the displacement error of a spline follows.
class PatternOnSpline {
 public:
  PatternOnSpline(const PowerSpectrum& spectrum, double noise, Interpolation interpolation, double sigma)
      : power_(static_cast<std::size_t>(kSize) * kSize) {
    const std::vector<double> taps = gaussian_taps(sigma);
    std::array<double, kSize> kept;
    for (int k = 0; k < kSize; ++k) {
      kept[k] = std::pow(response_of(taps, PowerSpectrum::frequency(k)), 2);
      slope_[k] = icgn::gradient_response(interpolation, PowerSpectrum::frequency(k));
    }
    for (int j = 0; j < kSize; ++j)
      for (int i = 0; i < kSize; ++i) power_[j * kSize + i] = (spectrum(i, j) - noise) * kept[i] * kept[j];
  }

  /// The refinement ends where the gradient of the reference is orthogonal to the difference of both images:
  /// averaged over the spectrum, a displacement balances what the spline adds to the imaginary part. 0
  /// without a pattern, or for stripes.
  std::array<double, 2> bias(const Responses& moved_x, const Responses& moved_y) const {
    Eigen::Vector2d added = Eigen::Vector2d::Zero();
    Eigen::Matrix2d balance = Eigen::Matrix2d::Zero();
    for (int j = 0; j < kSize; ++j)
      for (int i = 0; i < kSize; ++i) {
        const double power = power_[j * kSize + i];
        const std::complex<double> wave = moved_x[i] * moved_y[j];
        const Eigen::Vector2d gradient(slope_[i], slope_[j]),
            frequency(PowerSpectrum::frequency(i), PowerSpectrum::frequency(j));
        added += power * wave.imag() * gradient;
        balance += power * wave.real() * gradient * frequency.transpose();
      }
    if (!(balance.determinant() > 1e-6 * balance.squaredNorm())) return {};
    const Eigen::Vector2d bias = -balance.inverse() * added;
    return {bias.x(), bias.y()};
  }

 private:
  std::vector<double> power_;
  std::array<double, kSize> slope_;
};

/// Mean power at one frequency along an axis and low ones along the other.
double power_along_axes(const PowerSpectrum& spectrum, int at) {
  constexpr int near = 4;
  double sum = 0;
  for (int k = -near; k <= near; ++k) {
    const int low = (k + kSize) % kSize;
    sum += (spectrum(at, low) + spectrum(low, at)) / (2 * (2 * near + 1));
  }
  return sum;
}

/// True if the pattern reaches beyond the highest frequency along an axis.
bool is_folded(const PowerSpectrum& spectrum, double noise) {
  constexpr double most = 3e-4;  // share of the largest power, which blobs of 0.9 px reach
  double largest = 0;
  for (int j = 0; j < kSize; ++j)
    for (int i = 0; i < kSize; ++i) largest = std::max(largest, spectrum(i, j));
  return power_along_axes(spectrum, kSize / 2) - noise > most * largest;
}

/// True if the power falls as slowly with the frequency as that of sharp edges: blobs of 0.7 px have 0.05 of
/// the power of half the highest frequency there, printed dots more than 0.1.
bool has_sharp_edges(const PowerSpectrum& spectrum, double noise) {
  constexpr double most = 0.06;
  return power_along_axes(spectrum, kSize / 2) - noise >
         most * (power_along_axes(spectrum, kSize / 4) - noise);
}

/// Slope of a value along the grid at node `at`, per node: from the neighbours that have values.
template <typename Known>
double slope_at(const NodeValues<double>& values, std::int64_t at, std::int64_t stride, bool has_before,
                bool has_after, const Known& known) {
  const bool before = has_before && known(at - stride), after = has_after && known(at + stride);
  if (!before && !after) return 0;
  const std::int64_t from = before ? at - stride : at, to = after ? at + stride : at;
  return (values[to] - values[from]) / (before && after ? 2 : 1);
}

}  // namespace

InterpolationBias::InterpolationBias(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                     double sigma)
    : table_(static_cast<std::size_t>(kSteps + 1) * (kSteps + 1)) {
  const PatternOnSpline pattern(spectrum, noise, interpolation, sigma);
  std::vector<Responses> moved;
  for (int step = 0; step <= kSteps; ++step)
    moved.push_back(moved_waves(interpolation, static_cast<double>(step) / kSteps));
  for (int v = 0; v <= kSteps; ++v)
    for (int u = 0; u <= kSteps; ++u) table_[v * (kSteps + 1) + u] = pattern.bias(moved[u], moved[v]);
}

std::array<double, 2> InterpolationBias::at(double u, double v) const {
  const double x = (u - std::floor(u)) * kSteps, y = (v - std::floor(v)) * kSteps;
  const int i = std::min(static_cast<int>(x), kSteps - 1), j = std::min(static_cast<int>(y), kSteps - 1);
  const double s = x - i, t = y - j;
  const auto* above = &table_[j * (kSteps + 1) + i];
  const auto* below = above + kSteps + 1;
  std::array<double, 2> out;
  for (int c = 0; c < 2; ++c)
    out[c] =
        (1 - t) * ((1 - s) * above[0][c] + s * above[1][c]) + t * ((1 - s) * below[0][c] + s * below[1][c]);
  return out;
}

std::array<double, 2> InterpolationBias::over_subset(double u, double v,
                                                     const std::array<double, 4>& gradient, int subset,
                                                     SubsetWeights weights) const {
  const double radius = 0.5 * subset;
  const double change_u = (std::abs(gradient[0]) + std::abs(gradient[1])) * radius;
  const double change_v = (std::abs(gradient[2]) + std::abs(gradient[3])) * radius;
  if (change_u < 0.02 && change_v < 0.02) return at(u, v);
  if (change_u > 1 || change_v > 1) return {};
  constexpr int samples = 5;
  std::array<double, 2> mean{};
  double total = 0;
  for (int j = 0; j < samples; ++j)
    for (int i = 0; i < samples; ++i) {
      const double dx = radius * (2.0 * i + 1 - samples) / samples,
                   dy = radius * (2.0 * j + 1 - samples) / samples;
      const auto here = at(u + gradient[0] * dx + gradient[1] * dy, v + gradient[2] * dx + gradient[3] * dy);
      const double weight = window_weight(weights, dx, subset) * window_weight(weights, dy, subset);
      for (int c = 0; c < 2; ++c) mean[c] += weight * here[c];
      total += weight;
    }
  return {mean[0] / total, mean[1] / total};
}

void InterpolationBias::subtract_from(Field& field, int subset, SubsetWeights weights,
                                      core::ThreadPool& pool) const {
  const Grid& grid = field.grid();
  const auto known = [&](std::int64_t node) { return has_values(field.status[node]); };
  std::vector<std::array<double, 2>> biases(grid.nodes());
  pool.parallel_for(grid.ny, 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t j = begin; j < end; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::int64_t at = j * grid.nx + i;
        if (!known(at)) continue;
        std::array<double, 4> gradient;
        for (int c = 0; c < 2; ++c) {
          const auto& values = c == 0 ? field.u : field.v;
          gradient[2 * c] = slope_at(values, at, 1, i > 0, i + 1 < grid.nx, known) / grid.step;
          gradient[2 * c + 1] = slope_at(values, at, grid.nx, j > 0, j + 1 < grid.ny, known) / grid.step;
        }
        biases[at] = over_subset(field.u[at], field.v[at], gradient, subset, weights);
      }
  });
  for (std::int64_t at = 0; at < grid.nodes(); ++at) {
    field.u[at] -= biases[at][0];
    field.v[at] -= biases[at][1];
  }
}

std::array<double, 2> largest_bias(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                   double sigma) {
  const PatternOnSpline pattern(spectrum, noise, interpolation, sigma);
  const Responses quarter = moved_waves(interpolation, 0.25), still = moved_waves(interpolation, 0);
  // Sampling folded the spectrum of sharp edges. The spline then displaces less than the spectrum suggests: a
  // third, as measured with printed dots.
  constexpr double folded = 1.0 / 3;
  const double factor = is_folded(spectrum, noise) && has_sharp_edges(spectrum, noise) ? folded : 1;
  return {factor * std::abs(pattern.bias(quarter, still)[0]),
          factor * std::abs(pattern.bias(still, quarter)[1])};
}

double sharp_edge_gradient(const PowerSpectrum& spectrum, double noise, Interpolation interpolation) {
  if (!is_folded(spectrum, noise)) return 0;
  double sum = 0;
  for (int j = 0; j < kSize; ++j)
    for (int i = 0; i < kSize; ++i) {
      const double x = icgn::gradient_response(interpolation, PowerSpectrum::frequency(i));
      const double y = icgn::gradient_response(interpolation, PowerSpectrum::frequency(j));
      sum += (x * x + y * y) * spectrum(i, j);
    }
  return sum / (kSize * kSize);
}

}  // namespace dic::analysis
