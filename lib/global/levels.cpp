#include "global/levels.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "global/node_means.hpp"

namespace dic::global {
namespace {

/// Share of the nodes whose differences noise alone makes larger than the threshold.
constexpr double kFalseAlarms = 5e-4;
/// Factor on the threshold, because variances are not known better than that.
constexpr double kMargin = 1.3;

using Values = Eigen::ArrayXd;

int nodes_of(double length, const Mesh& mesh) {
  return std::max(1, static_cast<int>(std::lround(length / mesh.step)));
}

Values local_mean(const Mesh& mesh, const Values& values, int radius, Among among = Among::all) {
  return NodeMeans(mesh, values, among).around_all(radius);
}

/// The value that the given share of the values exceeds.
double upper_quantile(std::vector<double>& values, double share) {
  const auto rank = static_cast<std::ptrdiff_t>((1 - share) * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
}

/// The highest level at each node that no comparison refutes, nor any level below it.
Values highest_levels(const Mesh& mesh, const std::vector<Level>& levels, const Eigen::Array2d& variance) {
  Values highest = Values::Zero(mesh.size());
  for (std::size_t coarse = 1; coarse < levels.size(); ++coarse) {
    Values refuted = Values::Zero(mesh.size());
    for (std::size_t fine = 0; fine < coarse; ++fine) {
      const Comparison comparison(mesh, levels[fine], levels[coarse], levels[coarse].resolution, variance);
      refuted = comparison.refuted().select(1.0, refuted);
    }
    // The damping of a level spreads as far as its elements reach.
    const Values around = local_mean(mesh, refuted, nodes_of(levels[coarse].resolution / 4, mesh));
    const double before = static_cast<double>(coarse) - 1;
    highest = (around > 1e-9 || highest < before).select(highest, before + 1);
  }
  return highest;
}

}  // namespace

Comparison::Comparison(const Mesh& mesh, const Level& fine, const Level& coarse, double period,
                       const Eigen::Array2d& variance) {
  const int radius = nodes_of(period / 4, mesh);
  const auto mean_square = [&](const auto& differences) {
    return local_mean(mesh, differences.array().square(), radius, Among::band);
  };
  const Eigen::MatrixXd field = coarse.field - fine.field, errors = coarse.errors - fine.errors;
  const Values expected = local_mean(mesh, errors.array().square().rowwise().mean(), radius, Among::band);
  excess.resize(mesh.size(), 2);
  for (int k = 0; k < 2; ++k) excess.col(k) = mean_square(field.col(k)) - variance[k] * expected;
  ratio = 1 + (excess.col(0) / variance[0] + excess.col(1) / variance[1]) / (2 * expected);
  std::array<std::vector<double>, kBands> usual;
  for (Eigen::Index k = 0; k + 1 < errors.cols(); k += 2) {
    const Values values = (mean_square(errors.col(k)) + mean_square(errors.col(k + 1))) / (2 * expected);
    for (Eigen::Index row = 0; row < mesh.size(); ++row) usual[mesh.band[row]].push_back(values[row]);
  }
  std::array<double, kBands> most = {};
  for (int band = 0; band < kBands; ++band)
    if (!usual[band].empty()) most[band] = kMargin * upper_quantile(usual[band], kFalseAlarms);
  threshold.resize(mesh.size());
  for (Eigen::Index row = 0; row < mesh.size(); ++row) threshold[row] = most[mesh.band[row]];
}

Eigen::MatrixXd Blend::of(const std::vector<Level>& levels, Eigen::MatrixXd Level::*values) const {
  Eigen::MatrixXd out(level.size(), (levels.front().*values).cols());
  for (Eigen::Index row = 0; row < out.rows(); ++row) {
    const auto fine = static_cast<std::size_t>(level[row]);
    const std::size_t coarse = std::min(fine + 1, levels.size() - 1);
    const double part = level[row] - static_cast<double>(fine);
    out.row(row) = (1 - part) * (levels[fine].*values).row(row) + part * (levels[coarse].*values).row(row);
  }
  return out;
}

Blend choose_levels(const Mesh& mesh, const std::vector<Level>& levels, const Eigen::Array2d& variance) {
  const Values highest = highest_levels(mesh, levels, variance);
  // Levels are smoothed, because a jump from level to level would make the field jump.
  const int radius = nodes_of(levels.front().resolution / 4, mesh);
  return {local_mean(mesh, highest, radius).max(0.0).min(static_cast<double>(levels.size() - 1))};
}

}  // namespace dic::global
