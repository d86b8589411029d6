#include "stereo/epipolar_check.hpp"

#include <Eigen/Cholesky>
#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace dic::stereo {
namespace {

template <typename T>
double median_of(std::vector<T> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return static_cast<double>(*middle);
}

/// Robust standard deviation about 0.
double scatter_of(const Eigen::VectorXd& values) {
  std::vector<double> sizes(static_cast<std::size_t>(values.size()));
  Eigen::Map<Eigen::VectorXd>(sizes.data(), values.size()) = values.cwiseAbs();
  return kFromMedian * median_of(std::move(sizes));
}

using Terms = Eigen::Matrix<double, Eigen::Dynamic, kCommonTerms>;
using Coefficients = Eigen::Matrix<double, kCommonTerms, 1>;

/// One step of iteratively reweighted least squares. False if it changes hardly anything.
bool improve(const Terms& terms, const Eigen::VectorXd& px, Coefficients& coefficients) {
  constexpr double kHardly = 1e-3;  // of the limit: far below the errors of the fit
  const Eigen::VectorXd offsets = px - terms * coefficients;
  const double limit = 3 * std::max(scatter_of(offsets), 1e-6);
  // Tukey's biweight
  const Eigen::ArrayXd rest = (1 - (offsets.array() / limit).square()).max(0.0), weights = rest.square();
  const Terms weighted = terms.array().colwise() * weights;
  Eigen::Matrix<double, kCommonTerms, kCommonTerms> normal = weighted.transpose() * terms;
  normal.diagonal().array() += 1e-6;
  const Coefficients before = coefficients;
  coefficients = normal.ldlt().solve(weighted.transpose() * px);
  return (coefficients - before).lpNorm<1>() > kHardly * limit;
}

}  // namespace

CommonDistance common_distance(std::span<const EpipolarSample> samples) {
  constexpr std::size_t kFewPoints = 20 * kCommonTerms;
  const auto count = static_cast<Eigen::Index>(samples.size());
  Terms terms(count, kCommonTerms);
  Eigen::VectorXd px(count), sigma(count);
  for (Eigen::Index n = 0; n < count; ++n) {
    const EpipolarSample& sample = samples[static_cast<std::size_t>(n)];
    const CommonTerms at(sample.x, sample.y);
    for (int k = 0; k < kCommonTerms; ++k) terms(n, k) = at.at[k];
    px[n] = sample.px, sigma[n] = sample.sigma;
  }
  Coefficients coefficients = Coefficients::Zero();
  coefficients[0] = median_of(std::vector<double>(px.begin(), px.end()));
  constexpr int kRounds = 8;
  if (samples.size() >= kFewPoints)
    for (int round = 0; round < kRounds; ++round)
      if (!improve(terms, px, coefficients)) break;
  CommonDistance common{};
  std::ranges::copy(coefficients, common.coefficients);
  common.scale = std::max(1.0, scatter_of((px - terms * coefficients).cwiseQuotient(sigma)));
  return common;
}

EpipolarSummary mark_contradictions(const EpipolarJob& job, core::ThreadPool& pool) {
  const std::int64_t nodes = job.grid.nodes();
  const std::vector<std::int64_t> known =
      core::indices_where(pool, nodes, [&](std::int64_t k) { return job.has_distance(k); });
  const std::int64_t count = std::ssize(known);
  std::vector<EpipolarSample> samples;
  for (int n = 0; n < std::min<std::int64_t>(count, kMostSamples); ++n)
    samples.push_back(job.sample(known[count <= kMostSamples ? n : sample_number(n, count)]));
  const CommonDistance common = common_distance(samples);
  core::for_each_index(pool, nodes, [&](std::int64_t k) { FindOffset{job, common}(k); });
  core::for_each_index(pool, nodes, [&](std::int64_t k) { MarkContradiction{job, common.scale}(k); });
  std::vector<float> sizes(known.size()), offsets(known.size());
  core::for_each_index(pool, count, [&](std::int64_t n) {
    sizes[n] = std::abs(job.px[known[n]]), offsets[n] = std::abs(job.offset[known[n]]);
  });
  return {median_of(std::move(sizes)), kFromMedian * median_of(std::move(offsets))};
}

}  // namespace dic::stereo
