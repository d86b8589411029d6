#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/preview.hpp>
#include <limits>
#include <numbers>

#include "analysis/power_spectrum.hpp"
#include "analysis/prefilter.hpp"
#include "analysis/subset_choice.hpp"

namespace dic {
namespace {

using analysis::PowerSpectrum;
using fields::Points;

constexpr double kDemandedSigma = 0.01;                    ///< demanded sigma unless the user sets it, px
constexpr double kSpecklesAcross = 3;                      ///< speckles that a subset must have across
constexpr int kSmallestSubset = 15, kLargestSubset = 101;  ///< range of recommended subsets, px, odd
constexpr std::int64_t kMapPoints = 1600;                  ///< points of the map of sigma

/// Mean product of a Hann window with itself shifted by `shift` px; 1 at 0.
double window_overlap(int shift) {
  const auto hann = [](int i) {
    return 0.5 - 0.5 * std::cos(2 * std::numbers::pi * (i + 0.5) / PowerSpectrum::kSize);
  };
  double sum = 0, squares = 0;
  for (int i = 0; i < PowerSpectrum::kSize; ++i) {
    squares += hann(i) * hann(i);
    if (i + shift < PowerSpectrum::kSize) sum += hann(i) * hann(i + shift);
  }
  return sum / squares;
}

/// Autocorrelation of the pattern without its noise, `shift` px along x or y; the variance at 0.
double autocorrelation(const PowerSpectrum& spectrum, double noise_variance, int shift, bool along_x) {
  constexpr int n = PowerSpectrum::kSize;
  double sum = 0;
  for (int ky = 0; ky < n; ++ky)
    for (int kx = 0; kx < n; ++kx)
      sum +=
          (spectrum(kx, ky) - noise_variance) * std::cos(PowerSpectrum::frequency(along_x ? kx : ky) * shift);
  return sum / (n * n) / window_overlap(shift);
}

/// Twice the shift at which the autocorrelation falls to half of its height.
double width_at_half(const PowerSpectrum& spectrum, double noise_variance, bool along_x) {
  const double height = autocorrelation(spectrum, noise_variance, 0, along_x);
  if (!(height > noise_variance * 0.1) || !(height > 0)) return std::numeric_limits<double>::quiet_NaN();
  double before = 1;
  for (int shift = 1; shift <= PowerSpectrum::kSize / 4; ++shift) {
    const double now = autocorrelation(spectrum, noise_variance, shift, along_x) / height;
    if (now <= 0.5) return 2 * (shift - 1 + (before - 0.5) / (before - now));
    before = now;
  }
  return PowerSpectrum::kSize / 2.0;
}

/// Mean, contrast and saturation over the region.
void count_greys(Preview& preview, ImageView image, ImageView roi) {
  double n = 0, sum = 0, squares = 0, largest = 0;
  visit_scalar(image.type, [&](auto element) {
    using T = decltype(element);
    const int bits = image.bit_depth > 0 ? image.bit_depth : static_cast<int>(8 * sizeof(T));
    const double limit = std::is_integral_v<T> ? std::pow(2.0, bits) - 1 : HUGE_VAL;
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x) {
        if (!roi.row<std::uint8_t>(y)[x]) continue;
        const auto grey = static_cast<double>(image.row<T>(y)[x]);
        n += 1, sum += grey, squares += grey * grey, largest += grey >= limit;
      }
  });
  preview.mean = sum / n;
  preview.contrast = std::sqrt(std::max(squares / n - preview.mean * preview.mean, 0.0));
  preview.relative_contrast = preview.contrast / preview.mean;
  preview.saturated = largest / n;
}

/// A grid over the region with not much more than kMapPoints nodes.
Grid map_grid(ImageView roi, const Grid& measured) {
  const double share = static_cast<double>(measured.points()) / kMapPoints;
  const int coarser = std::max(1, static_cast<int>(std::ceil(std::sqrt(share))));
  return make_grid(roi, measured.step * coarser);
}

void predict_sigma(Preview& preview, refine::SubsetSigmas& sigmas, int subset, double noise) {
  const Points points(preview.grid);
  const std::vector<double> unit = sigmas.of(subset, points.x, points.y);
  preview.sigma = NodeValues<float>(preview.grid.nodes(), std::numeric_limits<float>::quiet_NaN());
  std::vector<double> sorted;
  for (std::size_t k = 0; k < unit.size(); ++k) {
    preview.sigma[points.nodes->node_of[k]] = static_cast<float>(noise * unit[k]);
    sorted.push_back(noise * unit[k]);
  }
  std::ranges::sort(sorted);
  const auto at = [&](double part) { return sorted[static_cast<std::size_t>(part * (sorted.size() - 1))]; };
  preview.median_sigma = at(0.5);
  preview.ninety_percent_sigma = at(0.9);
}

std::string text(double value, int digits) {
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "%.*f", digits, value);
  return buffer.data();
}

void recommend(Preview& preview, refine::SubsetSigmas& sigmas, const Points& points, double noise,
               double demanded, Size image) {
  const int by_noise =
      analysis::smallest_subset(sigmas, points, noise, demanded, std::min(image.width, image.height));
  const double across = kSpecklesAcross * preview.speckle_size;
  int by_speckle = std::isnan(across) ? kSmallestSubset : static_cast<int>(std::ceil(across)) | 1;
  by_speckle = std::clamp(by_speckle, kSmallestSubset, kLargestSubset);
  preview.subset = std::max(by_noise, by_speckle);
  preview.step = std::max(1, preview.subset / 4);
  const std::string subset = "Subset " + std::to_string(preview.subset) + " px: ";
  const std::string speckles = text(preview.subset / preview.speckle_size, 1);
  if (std::isnan(preview.speckle_size))
    preview.reason = "There is no pattern above the noise here: nothing can be measured well.";
  else if (by_speckle >= by_noise)
    preview.reason =
        subset +
        (across > by_speckle ? "the largest that is recommended, with " + speckles + " speckles across"
         : across > kSmallestSubset
             ? "it holds three speckles of " + text(preview.speckle_size, 1) + " px across"
             : "smaller ones gain little") +
        "; its predicted sigma is below " + text(demanded, 3) + " px.";
  else if (by_noise >= kLargestSubset)
    preview.reason = subset + "not even this one has a predicted sigma below " + text(demanded, 3) +
                     " px; more light, more contrast or less noise is needed.";
  else
    preview.reason = subset + "the smallest whose predicted sigma is below " + text(demanded, 3) +
                     " px at nine of ten points; it holds " + speckles + " speckles across.";
  preview.reason += " Step " + std::to_string(preview.step) +
                    " px: a quarter of the subset, since closer points share most of their pixels.";
  if (preview.speckle_size < 2.5)
    preview.reason +=
        " The speckles are finer than the pixels can show: defocus slightly, or use quintic interpolation.";
  if (preview.saturated > 0.01) preview.reason += " Part of the image is saturated: use less light.";
}

}  // namespace

Preview preview(const TrackOptions& options, ImageView reference, const Roi& roi) {
  for (const std::string& problem : options.validate()) throw UsageError(problem);
  if (options.refine.subset > std::min(reference.width, reference.height))
    throw UsageError("The subset is larger than the image; choose a smaller one.");
  const Image mask = rasterize(roi, reference.size());
  const Points points(grid_around(make_grid(mask, options.step), roi.points));
  const std::optional<PowerSpectrum> spectrum = PowerSpectrum::of(reference, points);
  if (!spectrum) throw UsageError("The image is too small to say something about its speckle.");
  Preview preview;
  preview.points = points.size();
  count_greys(preview, reference, mask);
  const double variance = options.noise ? *options.noise * *options.noise : spectrum->noise_variance();
  preview.noise = std::sqrt(variance);
  preview.speckle_size =
      (width_at_half(*spectrum, variance, true) + width_at_half(*spectrum, variance, false)) / 2;

  TrackOptions chosen = options;
  chosen.prefilter =
      options.prefilter.value_or(analysis::best_prefilter(*spectrum, variance, options.refine.interpolation));
  preview.prefilter = *chosen.prefilter;
  core::ThreadPool pool(options.threads);
  const analysis::Prefilter prefilter(chosen, spectrum, false, pool);
  const Image filtered = prefilter.enabled() ? prefilter(reference) : Image();
  const ImageView measured = prefilter.enabled() ? filtered.view() : reference;
  const double noise =
      analysis::energies_after(*spectrum, variance, options.refine.interpolation, preview.prefilter)
          .noise_by_matrix(variance);
  preview.grid = map_grid(mask, points.grid());
  refine::SubsetSigmas sigmas(options.refine, pool, measured, mask);
  predict_sigma(preview, sigmas, options.refine.subset, noise);
  recommend(preview, sigmas, points, noise, options.sigma_target.value_or(kDemandedSigma), reference.size());
  return preview;
}

}  // namespace dic
