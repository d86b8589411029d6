#include "global/global_step.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <limits>
#include <vector>

#include "global/levels.hpp"
#include "global/node_means.hpp"
#include "global/probes.hpp"
#include "global/system.hpp"
#include "global/transfer.hpp"

namespace dic {
namespace global {
namespace {

constexpr int kLevels = 5;
constexpr double kBetweenLevels = 1.5;  ///< ratio of the resolutions of successive levels
constexpr int kErrors = 16;             ///< number of draws of errors
/// Least sigma of a subset, px: the refinement ends with steps of this size, even without noise.
constexpr double kLeastSigma = 1e-4;

/// Largest variance of u by that of v, in units of the usual ratio, that noise explains; v by u likewise.
constexpr double kMostUnequal = 3;

/// Factor of the variance near an edge. Elements bend freely there, so that more is damped before a
/// comparison of levels shows it. Measured with fields of long waves and around holes.
constexpr double kDampedAtEdge = 1.3;

double variance_of(float sigma) {
  const double known = std::isfinite(sigma) ? sigma : 0;
  return std::max(known * known, kLeastSigma * kLeastSigma);
}

double median_of(Eigen::VectorXd values) {
  const auto middle = values.begin() + values.size() / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The `ok` points of a field that take part in the global step.
struct Measurement {
  const Mesh mesh;
  Eigen::MatrixXd values, variances;  ///< columns u and v; px, px^2

  /// sigma_u, sigma_v: sigmas of the subsets, px. What bends within a subset adds much to one of them, but is
  /// no noise: it does not count where it exceeds what the usual ratio of both explains.
  Measurement(const Field& field, const NodeValues<float>& sigma_u, const NodeValues<float>& sigma_v)
      : mesh(field), values(mesh.size(), 2), variances(mesh.size(), 2) {
    for (Eigen::Index row = 0; row < mesh.size(); ++row) {
      const std::int64_t node = mesh.nodes[row];
      values.row(row) << field.u[node], field.v[node];
      variances.row(row) << variance_of(sigma_u[node]), variance_of(sigma_v[node]);
    }
    if (mesh.size() == 0) return;
    const double ratio = median_of(variances.col(0).cwiseQuotient(variances.col(1)));
    const Eigen::VectorXd u = variances.col(0), v = variances.col(1);
    variances.col(0) = u.cwiseMin(kMostUnequal * ratio * v);
    variances.col(1) = v.cwiseMin(kMostUnequal / ratio * u);
  }

  /// Mean of the variances of u and v of each node, px^2.
  Eigen::VectorXd variance() const { return variances.rowwise().mean(); }
  /// Variances of u and of v in the whole field, divided by their mean.
  Eigen::Array2d shares() const { return variances.colwise().mean().transpose() / variances.mean(); }
  /// Weights of the nodes by their variances; 1 for the median.
  Eigen::VectorXd weights() const { return median_of(variance()) * variance().cwiseInverse(); }
};

/// Random errors of the subsets with the mean variance of u and v, one draw per column.
Eigen::MatrixXd draw_errors(const Measurement& measurement, const MeasuredSubsets& subsets,
                            core::ThreadPool& pool) {
  return measurement.variance().cwiseSqrt().asDiagonal() *
         subset_errors(measurement.mesh, subsets, kErrors, pool);
}

/// The global step for the subsets of a measurement.
class Step {
 public:
  Step(const Measurement& measurement, const MeasuredSubsets& subsets)
      : transfer_(subsets, measurement.mesh.step),
        mean_(measurement.mesh.subset_mean(transfer_.curvature_of_mean())),
        system_(measurement.mesh, mean_, measurement.weights()) {}

  /// The values that the subsets should measure of the field in each column.
  Eigen::MatrixXd mean(const Eigen::MatrixXd& fields) const { return mean_ * fields; }
  /// The field that the global step finds from the measurement in each column at a resolution.
  Eigen::MatrixXd left(const Eigen::MatrixXd& columns, double resolution, core::ThreadPool& pool) {
    system_.set_penalty(transfer_.penalty_of(resolution));
    return system_.alternate(columns, pool);
  }

 private:
  Transfer transfer_;
  SparseMatrix mean_;
  System system_;
};

/// The fields that the global step finds from a measurement at some resolutions, and the values that the
/// subsets should measure of the finest one.
struct Solution {
  std::vector<Level> levels;
  Level measured, expected;  ///< expected: values that the subsets should measure of the finest level

  Solution(const Measurement& measurement, const MeasuredSubsets& subsets,
           const std::vector<double>& resolutions, core::ThreadPool& pool) {
    Step step(measurement, subsets);
    Eigen::MatrixXd columns(measurement.mesh.size(), 2 + kErrors);
    columns << measurement.values, draw_errors(measurement, subsets, pool);
    measured = split(0, columns);
    for (const double resolution : resolutions)
      levels.push_back(split(resolution, step.left(columns, resolution, pool)));
    expected = {resolutions.front(), step.mean(levels.front().field), step.mean(levels.front().errors)};
  }

 private:
  static Level split(double resolution, const Eigen::MatrixXd& columns) {
    return {resolution, columns.leftCols(2), columns.rightCols(kErrors)};
  }
};

/// The level of a resolution: 0 for the finest one, fractions between levels.
double level_of(float resolution, double finest) {
  return std::max(0.0, std::log(double{resolution} / finest) / std::log(kBetweenLevels));
}
float resolution_of(double level, double finest) {
  return static_cast<float>(finest * std::pow(kBetweenLevels, level));
}

/// Variances of u and v after the global step, px^2. Means over a neighbourhood make up for the few draws of
/// errors.
Eigen::ArrayXXd variances_left(const Measurement& measurement, const Eigen::MatrixXd& errors,
                               double resolution) {
  const Mesh& mesh = measurement.mesh;
  const Eigen::ArrayXd squares = errors.array().square().rowwise().mean();
  const NodeMeans left(mesh, squares, Among::band), u(mesh, measurement.variances.col(0), Among::band),
      v(mesh, measurement.variances.col(1), Among::band);
  const int radius = std::max(1, static_cast<int>(std::lround(resolution / 4 / mesh.step)));
  Eigen::ArrayXXd out(mesh.size(), 2);
  for (Eigen::Index row = 0; row < mesh.size(); ++row) {
    const double of_u = u.around(row, radius), of_v = v.around(row, radius);
    out.row(row) << of_u, of_v;
    const double factor = mesh.band[row] + 1 < kBands ? kDampedAtEdge : 1;
    out.row(row) *= factor * left.around(row, radius) * 2 / (of_u + of_v);
  }
  return out;
}

/// Square of what even the finest level damps of a measurement, px^2; 0 where this is not certain.
Eigen::ArrayXXd damped(const Mesh& mesh, const Solution& solution, const Eigen::Array2d& shares) {
  const Comparison comparison(mesh, solution.measured, solution.expected, solution.expected.resolution,
                              shares);
  Eigen::ArrayXXd out = comparison.excess.max(0.0);
  for (int k = 0; k < 2; ++k) out.col(k) = comparison.refuted().select(out.col(k), 0.0);
  return out;
}

ErrorDraws draws_of(const Mesh& mesh, const Eigen::MatrixXd& errors, std::int64_t nodes) {
  ErrorDraws out{std::vector(errors.cols(), NodeValues<float>(nodes))};
  for (Eigen::Index k = 0; k < errors.cols(); ++k)
    for (Eigen::Index row = 0; row < mesh.size(); ++row)
      out.draws[k][mesh.nodes[row]] = static_cast<float>(errors(row, k));
  return out;
}

/// Saves the sigmas of the subsets before the step, and creates an empty resolution.
void keep_subset_sigma(Field& field) {
  field.resolution = NodeValues<float>(field.status.size(), std::numeric_limits<float>::quiet_NaN());
  field.subset_sigma_u = field.sigma_u;
  field.subset_sigma_v = field.sigma_v;
}

ErrorDraws solve(Field& field, const MeasuredSubsets& subsets, const std::vector<double>& resolutions,
                 core::ThreadPool& pool) {
  keep_subset_sigma(field);
  const Measurement measurement(field, field.subset_sigma_u, field.subset_sigma_v);
  const Mesh& mesh = measurement.mesh;
  if (mesh.size() == 0) return {};
  const Solution solution(measurement, subsets, resolutions, pool);
  const Eigen::Array2d shares = measurement.shares();
  Blend blend = choose_levels(mesh, solution.levels, shares);
  for (Eigen::Index row = 0; row < mesh.size(); ++row) {
    float& resolution = field.resolution[mesh.nodes[row]];
    resolution = resolution_of(blend.level[row], resolutions.front());
    blend.level[row] = level_of(resolution, resolutions.front());  // level of the rounded resolution
  }
  const Eigen::MatrixXd values = blend.of(solution.levels, &Level::field);
  const Eigen::MatrixXd errors = blend.of(solution.levels, &Level::errors);
  const Eigen::ArrayXXd variances =
      variances_left(measurement, errors, resolutions.front()) + damped(mesh, solution, shares);
  for (Eigen::Index row = 0; row < mesh.size(); ++row) {
    const std::int64_t node = mesh.nodes[row];
    field.u[node] = values(row, 0);
    field.v[node] = values(row, 1);
    field.sigma_u[node] = static_cast<float>(std::sqrt(variances(row, 0)));
    field.sigma_v[node] = static_cast<float>(std::sqrt(variances(row, 1)));
  }
  return draws_of(mesh, errors, field.grid().nodes());
}

ErrorDraws solve_errors(const Field& field, const MeasuredSubsets& subsets,
                        const std::vector<double>& resolutions, core::ThreadPool& pool) {
  const Measurement measurement(field, field.subset_sigma_u, field.subset_sigma_v);
  const Mesh& mesh = measurement.mesh;
  if (mesh.size() == 0) return {};
  Step step(measurement, subsets);
  const Eigen::MatrixXd errors = draw_errors(measurement, subsets, pool);
  std::vector<Level> levels;
  for (const double resolution : resolutions)
    levels.push_back({resolution, {}, step.left(errors, resolution, pool)});
  Blend blend{Eigen::ArrayXd(mesh.size())};
  for (Eigen::Index row = 0; row < mesh.size(); ++row) {
    const double level = level_of(field.resolution[mesh.nodes[row]], resolutions.front());
    blend.level[row] = std::min(level, static_cast<double>(levels.size() - 1));
  }
  return draws_of(mesh, blend.of(levels, &Level::errors), field.grid().nodes());
}

/// Resolutions of the levels, px, the finest first. Throws UsageError.
std::vector<double> resolutions_of(const MeasuredSubsets& subsets, const GlobalOptions& options, int step) {
  const auto problems = options.validate();
  if (!problems.empty()) throw UsageError(problems.front());
  const double least = least_resolution(subsets, step);
  if (options.resolution && *options.resolution < least)
    throw UsageError("The resolution of the global step must be at least " +
                     std::to_string(static_cast<int>(std::ceil(least))) + " px for this subset and step.");
  std::vector<double> resolutions = {options.resolution.value_or(least)};
  while (!options.resolution && resolutions.size() < kLevels)
    resolutions.push_back(kBetweenLevels * resolutions.back());
  return resolutions;
}

}  // namespace

ErrorDraws global_step(Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                       core::ThreadPool& pool) {
  return solve(field, subsets, resolutions_of(subsets, options, field.grid().step), pool);
}

ErrorDraws global_errors(const Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                         core::ThreadPool& pool) {
  if (field.resolution.empty() || field.subset_sigma_u.empty() || field.subset_sigma_v.empty())
    throw UsageError("The field has no results of the global step: call global_step() first.");
  const auto resolutions = resolutions_of(subsets, options, field.grid().step);
  return solve_errors(field, subsets, resolutions, pool);
}

}  // namespace global

std::vector<std::string> GlobalOptions::validate() const {
  if (resolution && !(*resolution > 0))
    return {"The resolution of the global step must be auto or above 0 px."};
  return {};
}

double least_resolution(const MeasuredSubsets& subsets, int step) {
  return global::Transfer(subsets, step).least_resolution();
}

ErrorDraws global_step(Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                       int threads) {
  core::ThreadPool pool(threads);
  return global::global_step(field, subsets, options, pool);
}

ErrorDraws global_errors(const Field& field, const MeasuredSubsets& subsets, const GlobalOptions& options,
                         int threads) {
  core::ThreadPool pool(threads);
  return global::global_errors(field, subsets, options, pool);
}

}  // namespace dic
