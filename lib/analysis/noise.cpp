#include "analysis/noise.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <dic/shared/gaussian.hpp>
#include <dic/shared/subset_window.hpp>
#include <dic/shared/track_rules.hpp>
#include <numbers>
#include <vector>

namespace dic::analysis {
namespace {

/// Centred B-spline of degree 3 or 5.
double b_spline(Interpolation interpolation, double x) {
  x = std::abs(x);
  const auto power = [](double base, int exponent) { return base > 0 ? std::pow(base, exponent) : 0.0; };
  if (interpolation == Interpolation::cubic) return (power(2 - x, 3) - 4 * power(1 - x, 3)) / 6;
  return (power(3 - x, 5) - 6 * power(2 - x, 5) + 15 * power(1 - x, 5)) / 120;
}

constexpr int kReach = 3;  ///< reach of the spline, px
using Taps = std::array<double, 2 * kReach + 1>;

/// Weights of the coefficients around a position between two pixels.
Taps taps_at(Interpolation interpolation, double fraction) {
  Taps taps;
  for (int k = -kReach; k <= kReach; ++k) taps[k + kReach] = b_spline(interpolation, fraction - k);
  return taps;
}

/// Squared amplitude of a wave after the taps.
double power_of(const Taps& taps, double omega) {
  std::complex<double> response = 0;
  const std::complex<double> turn = std::polar(1.0, -omega);
  for (const double tap : taps) response = response * turn + tap;
  return std::norm(response);
}

/// Mean of |interpolation's frequency response|^2 over the power of the noise: Parseval's theorem.
double gain_by_frequency(Interpolation interpolation, const std::vector<double>& low_pass, double fraction) {
  constexpr int kFrequencies = 256;
  const Taps sampled = taps_at(interpolation, fraction), prefilter = taps_at(interpolation, 0);
  double gain = 0, noise = 0;
  for (int f = 0; f < kFrequencies; ++f) {
    const double omega = 2 * std::numbers::pi * f / kFrequencies;
    const double power = std::pow(response_of(low_pass, omega), 2);
    gain += power * power_of(sampled, omega) / power_of(prefilter, omega);
    noise += power;
  }
  return gain / noise;
}

track::NoiseGains gain_table(Interpolation interpolation, double smoothing) {
  constexpr int steps = track::NoiseGains::kSteps;
  const std::vector<double> low_pass = gaussian_taps(smoothing);
  track::NoiseGains table;
  for (int i = 0; i <= steps; ++i)
    table.gain[i] = static_cast<float>(gain_by_frequency(interpolation, low_pass, 0.5 * i / steps));
  return table;
}

/// Standard deviation of noise after a low-pass over the value that noise_variance() finds, which looks at
/// the highest frequencies, where the low-pass removes more. The result is a little larger, because residuals
/// of smooth noise vary more from subset to subset than track::kNormalVariance allows for white noise.
double loss_by_smoothing(double smoothing) {
  if (smoothing == 0) return 1;
  constexpr int frequencies = 256;
  const std::vector<double> low_pass = gaussian_taps(smoothing);
  double all = 0, high = 0, squares = 0;
  for (int k = 0; k < frequencies; ++k) {
    const double omega = 2 * std::numbers::pi * k / frequencies;
    const double power = std::pow(response_of(low_pass, omega), 2);
    all += power;
    high += power * std::pow(2 - 2 * std::cos(omega), 4);
    squares += power * power;
  }
  constexpr double gain = 70;  // mean of the last factor for white noise
  const double variation = frequencies * squares / (all * all);
  const double normal = 1 + (track::kNormalVariance - 1) * variation;
  return gain * all / high * std::sqrt(normal / track::kNormalVariance);
}

/// Share of the variance of white noise that a low-pass leaves.
double variance_after(double smoothing) {
  const std::vector<double> taps = gaussian_taps(smoothing);
  double along_axis = taps[0] * taps[0];
  for (std::size_t k = 1; k < taps.size(); ++k) along_axis += 2 * taps[k] * taps[k];
  return along_axis * along_axis;
}

/// Variance of a subset's displacement by lines that are displaced in both images, px^2. Lines count by their
/// slopes, so that a few of them count most.
float line_variance(double jitter, int subset) {
  constexpr double uneven = 1.2;
  return static_cast<float>(2 * uneven * jitter * jitter / subset);
}

/// Variance of a camera's pattern as it pulls subsets, grey levels^2. The share of it is the measured one
/// (blobs of 1.2 to 3.5 px): the spline and the shape function follow a part of the pattern.
float pattern_variance(double pattern) {
  constexpr double share = 0.75;
  return static_cast<float>(share * pattern * pattern);
}

template <typename T>
double noise_variance(const ImageView& image, const NoisePatch& patch) {
  constexpr int reach = NoisePatch::kReach;
  constexpr int size = 2 * reach, out = size - 4;
  double rows[size][out], sum = 0;
  for (int j = 0; j < size; ++j) {
    const T* row = image.row<T>(patch.y - reach + j) + patch.x - reach;
    for (int i = 0; i < out; ++i)
      rows[j][i] = double(row[i]) - 4 * double(row[i + 1]) + 6 * double(row[i + 2]) - 4 * double(row[i + 3]) +
                   double(row[i + 4]);
  }
  for (int j = 0; j < out; ++j)
    for (int i = 0; i < out; ++i) {
      const double d =
          rows[j][i] - 4 * rows[j + 1][i] + 6 * rows[j + 2][i] - 4 * rows[j + 3][i] + rows[j + 4][i];
      sum += d * d;
    }
  constexpr double gain = 70 * 70;  // sum of the squared weights
  return sum / (out * out * gain);
}

}  // namespace

track::NoiseGains noise_gains(Interpolation interpolation, double smoothing) {
  if (smoothing > 0) return gain_table(interpolation, smoothing);
  if (interpolation == Interpolation::cubic) {
    static const auto cubic = gain_table(Interpolation::cubic, 0);
    return cubic;
  }
  static const auto quintic = gain_table(Interpolation::quintic, 0);
  return quintic;
}

std::vector<NoisePatch> spread_noise_patches(Size image, std::span<const int> x, std::span<const int> y) {
  constexpr int most = 128;
  constexpr int reach = NoisePatch::kReach;
  const auto inside = [&](std::size_t i) {
    return x[i] >= reach && y[i] >= reach && x[i] <= image.width - reach && y[i] <= image.height - reach;
  };
  std::vector<NoisePatch> patches;
  // Multiples of the golden ratio are spread evenly; equal steps could stay in one column of the grid.
  for (int k = 0; k < most && !x.empty(); ++k) {
    const double share = std::fmod((k + 0.5) * std::numbers::phi, 1.0);
    const auto i = static_cast<std::size_t>(share * static_cast<double>(x.size()));
    if (inside(i)) patches.push_back({x[i], y[i]});
  }
  return patches;
}

double image_noise(ImageView image, std::span<const NoisePatch> patches, core::ThreadPool& pool) {
  std::vector<double> variances(patches.size());
  visit_scalar(image.type, [&](auto element) {
    pool.parallel_for(std::ssize(patches), kPatchesAtOnce, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t k = begin; k < end; ++k)
        variances[k] = noise_variance<decltype(element)>(image, patches[k]);
    });
  });
  std::erase_if(variances, [](double v) { return !(v > 0); });  // a saturated or black patch tells nothing
  if (variances.empty()) return 0;
  const auto middle = variances.begin() + std::ssize(variances) / 2;
  std::nth_element(variances.begin(), middle, variances.end());
  return std::sqrt(*middle);
}

track::NoiseModel noise_model(const TrackOptions& options, const ImageView& image,
                              const ImageNoises& noises) {
  track::NoiseModel model;
  model.width = image.width;
  model.height = image.height;
  const double filtered = loss_by_smoothing(options.refine.smoothing) * options.refine.below_mosaic;
  model.reference = noises.reference * filtered;
  model.current = noises.current * filtered;
  model.same_focus = noises.same_focus && options.refine.matching == 0;
  model.gains = noise_gains(options.refine.interpolation, options.refine.smoothing);
  model.correlated = options.refine.smooth_noise_factor;
  if (const double sigma = options.refine.matching; sigma != 0) {
    const track::NoiseShare share{static_cast<float>(variance_after(std::abs(sigma))),
                                  static_cast<float>(options.refine.matching_effect)};
    // The highest frequencies do not show smooth noise. Both images are from one camera, so the noise of the
    // other image is taken.
    if (sigma > 0) {
      model.of_reference = share;
      model.reference = model.current;
    } else {
      model.of_current = share;
      model.current = model.reference;
    }
  }
  model.bias_u = options.refine.interpolation_bias_u;
  model.bias_v = options.refine.interpolation_bias_v;
  model.edge_gradient = options.refine.edge_gradient;
  model.lines_u = line_variance(options.refine.row_jitter, options.refine.subset);
  model.lines_v = line_variance(options.refine.column_jitter, options.refine.subset);
  model.pattern_u = pattern_variance(options.refine.column_pattern);
  model.pattern_v = pattern_variance(options.refine.row_pattern);
  model.radius = options.refine.subset / 2;
  if (options.bending_in_sigma)
    model.mean_square = mean_square_distance(options.refine.weights, options.refine.subset);
  model.reach = track::bend_reach(options.refine.subset, options.step);
  // The bends of order 2 are added after the choice of the order; before, they would hide how far both orders
  // differ.
  const bool added_later = options.automatic_order && options.refine.order == 2;
  model.order = added_later ? 0 : options.refine.order;
  if (options.noise) model.given = *options.noise;
  const bool whole_levels = image.type != ScalarType::f32 && image.type != ScalarType::f64;
  model.least = whole_levels ? 1 / std::sqrt(12.0) : 0;
  // The share by which the noise in the matrix varies falls with the side of the subset. The rest of the
  // matrix must be known to a fifth.
  const double most = options.refine.subset / 8.0;
  model.most_share = most / (1 + most);
  model.inflation =
      options.refine.order == 2 ? 3.5 : 1;  // larger because of the squares, which are not orthogonal to 1
  return model;
}

}  // namespace dic::analysis
