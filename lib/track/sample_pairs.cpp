#include "track/sample_pairs.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

namespace dic::track {
namespace {

/// Keys' cubic convolution: it blurs much less than linear interpolation.
std::array<double, 4> cubic_weights(double t) {
  return {((-0.5 * t + 1) * t - 0.5) * t, (1.5 * t - 2.5) * t * t + 1, ((-1.5 * t + 2) * t + 0.5) * t,
          (0.5 * t - 0.5) * t * t};
}

/// Variance of white noise after the interpolation along one axis.
double noise_gain_at(double x) {
  double gain = 0;
  for (const double weight : cubic_weights(x - std::floor(x))) gain += weight * weight;
  return gain;
}

double value_at(ImageView image, double x, double y) {
  const int i = static_cast<int>(std::floor(x)), j = static_cast<int>(std::floor(y));
  const auto along_x = cubic_weights(x - i), along_y = cubic_weights(y - j);
  double sum = 0;
  visit_scalar(image.type, [&](auto element) {
    for (int b = 0; b < 4; ++b) {
      const auto* row = image.row<decltype(element)>(j + b - 1) + i - 1;
      double line = 0;
      for (int a = 0; a < 4; ++a) line += along_x[a] * static_cast<double>(row[a]);
      sum += along_y[b] * line;
    }
  });
  return sum;
}

double pixel_at(ImageView image, int x, int y) {
  return visit_scalar(image.type,
                      [&](auto element) { return static_cast<double>(image.row<decltype(element)>(y)[x]); });
}

std::optional<Pair> pair_at(ImageView reference, ImageView current, const Field& field, int i, int j,
                            int full) {
  const Grid& grid = field.grid();
  const std::int64_t at = std::int64_t{j} * grid.nx + i;
  for (const std::int64_t node : {at, at - 1, at + 1, at - grid.nx, at + grid.nx})
    if (field.status[node] != Status::ok) return std::nullopt;
  const double apart = 2.0 * grid.step;
  const double ux = (field.u[at + 1] - field.u[at - 1]) / apart,
               vx = (field.v[at + 1] - field.v[at - 1]) / apart;
  const double uy = (field.u[at + grid.nx] - field.u[at - grid.nx]) / apart;
  const double vy = (field.v[at + grid.nx] - field.v[at - grid.nx]) / apart;
  const int cx = grid.x(i), cy = grid.y(j);
  const auto inside = [&](ImageView image, double x, double y) {
    return x >= 1 && y >= 1 && x < image.width - 2 && y < image.height - 2;
  };
  Pair pair{at, Patch(full), Patch(full), std::sqrt(std::abs((1 + ux) * (1 + vy) - uy * vx))};
  for (int dy = -full; dy <= full; ++dy)
    for (int dx = -full; dx <= full; ++dx) {
      const double x = cx + dx + field.u[at] + ux * dx + uy * dy,
                   y = cy + dy + field.v[at] + vx * dx + vy * dy;
      if (!inside(reference, cx + dx, cy + dy) || !inside(current, x, y)) return std::nullopt;
      pair.reference.at(dx, dy) = pixel_at(reference, cx + dx, cy + dy);
      pair.current.at(dx, dy) = value_at(current, x, y);
      pair.noise_gain += noise_gain_at(x) * noise_gain_at(y) / (pair.current.side() * pair.current.side());
    }
  return pair;
}

}  // namespace

std::vector<Pair> sample_pairs(ImageView reference, ImageView current, const Field& field,
                               const PairSampling& how) {
  const Grid& grid = field.grid();
  std::vector<Pair> pairs;
  if (grid.nx < 3 || grid.ny < 3) return pairs;
  for (int k = 0; k < 4 * how.most && std::ssize(pairs) < how.most; ++k) {
    // Multiples of the golden ratio are spread evenly along rows and columns.
    const double share = std::fmod((k + 0.5) * std::numbers::phi, 1.0);
    const auto node = static_cast<std::int64_t>(share * static_cast<double>(grid.nodes()));
    const int i = static_cast<int>(node % grid.nx), j = static_cast<int>(node / grid.nx);
    if (i < 1 || j < 1 || i + 1 >= grid.nx || j + 1 >= grid.ny) continue;
    if (auto pair = pair_at(reference, current, field, i, j, how.radius)) pairs.push_back(std::move(*pair));
  }
  return pairs;
}

}  // namespace dic::track
