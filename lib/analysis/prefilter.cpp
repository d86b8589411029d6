#include "analysis/prefilter.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <dic/shared/gaussian.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/reflect.hpp>
#include <limits>
#include <utility>

#include "analysis/host_pixels.hpp"

namespace dic::analysis {
namespace {

constexpr std::array kCandidates = {0.5, 0.7, 1.0, 1.4, 2.0};  ///< standard deviations, px
/// Factor by which the filter must reduce the sigma, because it costs resolution of fine speckle and a little
/// time.
constexpr double kWorthwhile = 0.9;
/// Smallest energy of a pattern's gradient over that of the noise. Below it nothing counts as a pattern,
/// because the spectrum is known to a few percent of the noise.
constexpr double kLeastPattern = 0.2;

/// Convolves a line with the taps. The line has `reach` more values on both sides.
void filter_line(const float* line, const std::vector<float>& taps, int count, float* out) {
  const int reach = static_cast<int>(taps.size()) - 1;
  for (int i = 0; i < count; ++i) out[i] = taps[0] * line[i];
  for (int k = 1; k <= reach; ++k)
    for (int i = 0; i < count; ++i) out[i] += taps[k] * (line[i - k] + line[i + k]);
}

/// Filters the rows of an image along x.
Image filter_rows(ImageView image, const std::vector<float>& taps, core::ThreadPool& pool) {
  const int reach = static_cast<int>(taps.size()) - 1, width = image.width;
  Image out(image.size(), ScalarType::f32);
  pool.parallel_for(image.height, 32, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<float> line(width + 2 * reach);
    float* const first = line.data() + reach;
    for (int y = static_cast<int>(begin); y < end; ++y) {
      visit_scalar(image.type, [&](auto element) {
        const auto* row = image.row<decltype(element)>(y);
        std::transform(row, row + width, first, [](auto value) { return static_cast<float>(value); });
      });
      for (int k = 1; k <= reach; ++k)
        for (const int x : {-k, width - 1 + k})
          first[x] = point_reflected([&](int i) { return first[i]; }, width, x);
      filter_line(first, taps, width, out.row<float>(y));
    }
  });
  return out;
}

/// Filters the columns of an image along y.
Image filter_columns(const Image& image, const std::vector<float>& taps, core::ThreadPool& pool) {
  const int reach = static_cast<int>(taps.size()) - 1, width = image.width(), height = image.height();
  Image out(image.size(), ScalarType::f32);
  const auto add = [&](float* to, float tap, int y) {
    if (y >= 0 && y < height) {
      const float* from = image.row<float>(y);
      for (int x = 0; x < width; ++x) to[x] += tap * from[x];
      return;
    }
    for (int x = 0; x < width; ++x)
      to[x] += tap * point_reflected([&](int i) { return image.row<float>(i)[x]; }, height, y);
  };
  pool.parallel_for(height, 32, [&](std::int64_t begin, std::int64_t end, int) {
    for (int y = static_cast<int>(begin); y < end; ++y)
      for (int k = -reach; k <= reach; ++k) add(out.row<float>(y), taps[std::abs(k)], y + k);
  });
  return out;
}

}  // namespace

double FilteredEnergies::variance(double noise_variance) const {
  if (!(gradient > kLeastPattern * noise_variance * noise_gradient))
    return std::numeric_limits<double>::infinity();
  return noise_variance * (2 * gradient_twice + noise_variance * noise_gradient_twice) /
         (gradient * gradient);
}

double FilteredEnergies::noise_by_matrix(double noise_variance) const {
  return std::sqrt(0.5 * variance(noise_variance) * (gradient + noise_variance * noise_gradient));
}

FilteredEnergies energies_after(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                double sigma) {
  constexpr int n = PowerSpectrum::kSize;
  const std::vector<double> taps = gaussian_taps(sigma);
  std::array<double, n> kept, slope;  // squared responses of low-pass and gradient along an axis
  for (int k = 0; k < n; ++k) {
    kept[k] = std::pow(response_of(taps, PowerSpectrum::frequency(k)), 2);
    slope[k] = std::pow(icgn::gradient_response(interpolation, PowerSpectrum::frequency(k)), 2);
  }
  FilteredEnergies sum;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i) {
      const double once = kept[i] * kept[j], steep = slope[i] + slope[j];
      const double pattern = spectrum(i, j) - noise;
      sum.gradient += pattern * once * steep;
      sum.gradient_twice += pattern * once * once * steep;
      sum.noise += once;
      sum.noise_gradient += once * steep;
      sum.noise_gradient_twice += once * once * steep;
    }
  for (double* total :
       {&sum.gradient, &sum.gradient_twice, &sum.noise, &sum.noise_gradient, &sum.noise_gradient_twice})
    *total /= n * n;
  return sum;
}

double best_prefilter(const PowerSpectrum& spectrum, double noise, Interpolation interpolation) {
  double best = 0;
  double least =
      energies_after(spectrum, noise, interpolation, 0).variance(noise) * kWorthwhile * kWorthwhile;
  for (const double sigma : kCandidates) {
    const double variance = energies_after(spectrum, noise, interpolation, sigma).variance(noise);
    if (!(variance < least)) continue;
    least = variance;
    best = sigma;
  }
  return best;
}

Prefilter::Prefilter(const TrackOptions& chosen, const std::optional<PowerSpectrum>& spectrum, bool on_gpu,
                     core::ThreadPool& pool)
    : sigma_(chosen.prefilter.value_or(0)), on_gpu_(on_gpu), pool_(pool) {
  if (!enabled()) return;
  gpu_low_pass_ = std::make_unique<GpuLowPass>(sigma_);
  const std::vector<double> taps = gaussian_taps(sigma_);
  double along_axis = taps[0] * taps[0];
  for (std::size_t k = 1; k < taps.size(); ++k) along_axis += 2 * taps[k] * taps[k];
  noise_gain_ = along_axis;
  if (!spectrum) return;
  const double noise = chosen.noise ? *chosen.noise * *chosen.noise : spectrum->noise_variance();
  const FilteredEnergies e = energies_after(*spectrum, noise, chosen.refine.interpolation, sigma_);
  const double if_white = e.noise * (2 * e.gradient + noise * e.noise_gradient);
  const double really = 2 * e.gradient_twice + noise * e.noise_gradient_twice;
  if (if_white > 0 && really > 0) sigma_factor_ = std::sqrt(really / if_white);
}

Image low_pass(ImageView image, double sigma, core::ThreadPool& pool) {
  const std::vector<double> weights = gaussian_taps(sigma);
  const std::vector<float> taps(weights.begin(), weights.end());
  return filter_columns(filter_rows(image, taps, pool), taps, pool);
}

Image Prefilter::operator()(ImageView image) const {
  return low_pass(HostPixels(image, on_gpu_).view(), sigma_, pool_);
}

ImageView Prefilter::on_gpu(ImageView image) const {
  return gpu_low_pass_->takes(image.type) ? (*gpu_low_pass_)(image) : ImageView();
}

ImageView Prefilter::view_of(ImageView image) const {
  if (enabled()) image.type = ScalarType::f32;
  return image;
}

TrackOptions Prefilter::for_backend(TrackOptions options) const {
  options.refine.smoothing = sigma_;
  options.refine.smooth_noise_factor *= sigma_factor_;
  if (options.noise) *options.noise *= noise_gain_;
  return options;
}

}  // namespace dic::analysis
