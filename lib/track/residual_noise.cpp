#include "track/residual_noise.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "track/sample_pairs.hpp"

namespace dic::track {
namespace {

constexpr int kSamples = 24;             ///< number of subsets that are looked at, at most
constexpr int kLeastSamples = 12;        ///< number of subsets that are enough
constexpr int kLargestRadius = 16;       ///< largest radius of these subsets, px
constexpr int kSlopeReach = 2;           ///< px that the slope of a pixel needs around it
constexpr double kLeastVariance = 0.05;  ///< grey levels^2: residuals below it are those of equal images
/// Factors up to these are within the error of the estimate, which is larger at edges that are sharper than
/// the pixels.
constexpr double kLeastFactor = 1.3, kLeastFactorOfEdges = 1.45;
constexpr double kLargestFactor = 4;
constexpr double kOneDirection = 2;  ///< coherence along the lines of a scan over that across them, at least
constexpr int kFrames = 3;           ///< number of frames that may give the factors

/// A subset: what a residual displaces it by, and its own residual.
struct Sample {
  Eigen::VectorXd influence_u, influence_v;  ///< displacement, px, by one grey level at each pixel
  Eigen::VectorXd residual;
  double variance;    ///< of the residual, grey levels^2
  double noise_gain;  ///< variance of the current image's noise after interpolation over the one before
  double sigma_u, sigma_v;
};

double slope(const Patch& patch, int x, int y, int dx, int dy) {
  return (8 * (patch.at(x + dx, y + dy) - patch.at(x - dx, y - dy)) -
          (patch.at(x + 2 * dx, y + 2 * dy) - patch.at(x - 2 * dx, y - 2 * dy))) /
         12;
}

/// The linear model of a subset: columns for the shape parameters, u first, and for offset and gain.
Eigen::MatrixXd model_of(const Patch& reference, int radius, int order) {
  const int side = 2 * radius + 1, terms = (order + 1) * (order + 2) / 2;
  Eigen::MatrixXd columns(side * side, 2 * terms + 2);
  int row = 0;
  for (int y = -radius; y <= radius; ++y)
    for (int x = -radius; x <= radius; ++x, ++row) {
      const double a = double(x) / radius, b = double(y) / radius;
      const std::array<double, 6> monomials{1, a, b, a * a, a * b, b * b};
      const double dx = slope(reference, x, y, 1, 0), dy = slope(reference, x, y, 0, 1);
      for (int k = 0; k < terms; ++k) {
        columns(row, k) = dx * monomials[k];
        columns(row, terms + k) = dy * monomials[k];
      }
      columns(row, 2 * terms) = 1;
      columns(row, 2 * terms + 1) = reference.at(x, y);
    }
  return columns;
}

std::optional<Sample> sample_of(const Pair& pair, const Field& field, int radius, int order) {
  const Eigen::MatrixXd columns = model_of(pair.reference, radius, order);
  const Eigen::Index terms = columns.cols() / 2 - 1, pixels = columns.rows();
  const Eigen::LDLT<Eigen::MatrixXd> normal(columns.transpose() * columns);
  if (normal.info() != Eigen::Success || !(normal.rcond() > 1e-12)) return std::nullopt;
  Eigen::VectorXd difference(pixels);
  Eigen::Index row = 0;
  for (int y = -radius; y <= radius; ++y)
    for (int x = -radius; x <= radius; ++x)
      difference[row++] = pair.current.at(x, y) - pair.reference.at(x, y);
  const auto influence = [&](Eigen::Index k) -> Eigen::VectorXd {
    return columns * normal.solve(Eigen::VectorXd::Unit(columns.cols(), k));
  };
  Sample sample;
  sample.influence_u = pair.stretch * influence(0);
  sample.influence_v = pair.stretch * influence(terms);
  sample.residual = difference - columns * normal.solve(columns.transpose() * difference);
  sample.variance = sample.residual.squaredNorm() / static_cast<double>(pixels - columns.cols());
  sample.noise_gain = pair.noise_gain;
  sample.sigma_u = field.sigma_u[pair.node];
  sample.sigma_v = field.sigma_v[pair.node];
  return sample;
}

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Variance of a displacement by the residuals of other places, over that by white noise of equal strength. A
/// subset's own residual no longer contains what displaced it.
double correlation(const std::vector<Sample>& samples, Eigen::VectorXd Sample::*influence) {
  double sum = 0;
  for (const Sample& at : samples)
    for (const Sample& of : samples) {
      if (&at == &of) continue;
      const double moved = (at.*influence).dot(of.residual);
      sum += moved * moved * (1 + of.noise_gain) / (2 * of.variance * (at.*influence).squaredNorm());
    }
  const auto n = static_cast<double>(samples.size());
  return sum / (n * (n - 1));
}

/// How much more variance the residuals have at pixels that displace much.
double coincidence(const std::vector<Sample>& samples, Eigen::VectorXd Sample::*influence) {
  std::vector<double> shares;
  for (const Sample& s : samples) {
    const Eigen::ArrayXd weights = (s.*influence).array().square();
    const Eigen::ArrayXd squares = s.residual.array().square();
    shares.push_back((weights * squares).sum() / (weights.sum() * squares.mean()));
  }
  return median_of(std::move(shares));
}

/// Variance of a displacement by residuals that go with the slopes along whole lines of the image, as where a
/// scanned line is displaced, over that by white noise of equal strength. along_rows: rows, else columns.
double coherence(const std::vector<Sample>& samples, Eigen::VectorXd Sample::*influence, bool along_rows) {
  std::vector<double> shares;
  for (const Sample& s : samples) {
    const auto side = static_cast<Eigen::Index>(std::lround(std::sqrt(double(s.residual.size()))));
    const Eigen::VectorXd moved = (s.*influence).cwiseProduct(s.residual);
    const Eigen::Map<const Eigen::MatrixXd> lines(moved.data(), side, side);  // a column is a row of pixels
    const double sums =
        along_rows ? lines.colwise().sum().squaredNorm() : lines.rowwise().sum().squaredNorm();
    shares.push_back(sums /
                     ((s.*influence).squaredNorm() * s.residual.squaredNorm() / double(s.residual.size())));
  }
  return median_of(std::move(shares));
}

double factor(const std::vector<Sample>& samples, Eigen::VectorXd Sample::*influence, double Sample::*sigma,
              bool sharp_edges) {
  std::vector<double> if_white;
  for (const Sample& s : samples)
    if_white.push_back(2 * s.variance / (1 + s.noise_gain) * (s.*influence).squaredNorm() /
                       (s.*sigma * s.*sigma));
  const double noise = correlation(samples, influence) * coincidence(samples, influence);
  const double rows = coherence(samples, influence, true), columns = coherence(samples, influence, false);
  const double more = std::max(rows, columns), less = std::min(rows, columns);
  // What a spline misses of sharp edges is coherent too, and sigma knows it.
  const double lines = !sharp_edges && more > kOneDirection * less ? more : 0;
  const double by = std::sqrt(std::max(lines, noise) * median_of(std::move(if_white)));
  return by < (sharp_edges ? kLeastFactorOfEdges : kLeastFactor) ? 1 : std::min(by, kLargestFactor);
}

void make_less_certain(Field& field, const SigmaFactors& by) {
  for (std::int64_t node = 0; node < field.grid().nodes(); ++node) {
    if (!has_values(field.status[node])) continue;
    field.sigma_u[node] *= static_cast<float>(by.u);
    field.sigma_v[node] *= static_cast<float>(by.v);
    const bool is_certain = field.sigma_u[node] <= kLargestSigma && field.sigma_v[node] <= kLargestSigma;
    if (field.status[node] == Status::ok && !is_certain) clear_node(field, node, Status::low_correlation);
  }
}

}  // namespace

std::optional<SigmaFactors> sigma_factors(ImageView reference, ImageView current, const Field& field,
                                          const RefineOptions& options) {
  const int radius = std::min(options.subset / 2, kLargestRadius);
  std::vector<Sample> samples;
  for (const Pair& pair : sample_pairs(reference, current, field, {radius + kSlopeReach, kSamples}))
    if (auto sample = sample_of(pair, field, radius, options.order);
        sample && sample->variance > kLeastVariance * 1e-3)
      samples.push_back(std::move(*sample));
  if (std::ssize(samples) < kLeastSamples) return std::nullopt;
  std::vector<double> variances;
  for (const Sample& s : samples) variances.push_back(s.variance);
  const bool whole_levels = reference.type != ScalarType::f32 && reference.type != ScalarType::f64;
  if (whole_levels && median_of(std::move(variances)) < kLeastVariance) return std::nullopt;
  return SigmaFactors{factor(samples, &Sample::influence_u, &Sample::sigma_u, options.edge_gradient > 0),
                      factor(samples, &Sample::influence_v, &Sample::sigma_v, options.edge_gradient > 0)};
}

ResidualNoise::ResidualNoise(ImageView reference, const TrackOptions& options)
    : reference_(copy_of(reference)),
      options_(options),
      frames_left_(options.reference_strategy == ReferenceStrategy::first ? kFrames : 1) {}

FieldStep ResidualNoise::step(std::shared_ptr<const Image> current) {
  return [this, current = std::move(current)](MeasuredFrame& frame) {
    Field& field = frame.result.field;
    if (!factors_ && current)
      factors_ = sigma_factors(reference_.view(), current->view(), field, options_.refine);
    if (!factors_ || std::max(factors_->u, factors_->v) == 1) return;
    change_displacements(frame, "refine", [&](Field& changed) { make_less_certain(changed, *factors_); });
  };
}

}  // namespace dic::track
