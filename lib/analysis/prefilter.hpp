#pragma once

#include <dic/image.hpp>
#include <dic/track.hpp>
#include <memory>
#include <optional>

#include "analysis/gpu_images.hpp"
#include "analysis/power_spectrum.hpp"
#include "core/parallel.hpp"

namespace dic::analysis {

/// The Gaussian low-pass that chosen options ask for (their `prefilter` has a value), and what it does to
/// noise. A backend gets filtered images, and learns about their noise by `for_backend`.
class Prefilter {
 public:
  /// spectrum: of the reference before the filter, if it is known. on_gpu: images may be in the memory of a
  /// GPU. pool: must outlive this object.
  Prefilter(const TrackOptions& chosen, const std::optional<PowerSpectrum>& spectrum, bool on_gpu,
            core::ThreadPool& pool);

  bool enabled() const { return sigma_ > 0; }
  double sigma() const { return sigma_; }
  /// The filtered image, f32, on the host. The image is continued beyond its edges by point reflection. One
  /// call at a time.
  Image operator()(ImageView image) const;
  /// Filters an image in the memory of a GPU. The result stays there until the next call; it has no data if a
  /// GPU cannot filter this type, or with this filter. One call at a time.
  ImageView on_gpu(ImageView image) const;
  /// Size and type of the images that the backend gets, without pixels.
  ImageView view_of(ImageView image) const;
  /// The options that the backend gets.
  TrackOptions for_backend(TrackOptions options) const;
  /// Standard deviation of white noise after the filter over the one before it.
  double noise_gain() const { return noise_gain_; }

 private:
  double sigma_;
  bool on_gpu_;
  double noise_gain_ = 1;    ///< value of noise_gain()
  double sigma_factor_ = 1;  ///< factor of the sigma of displacements, from the correlation of the noise
  core::ThreadPool& pool_;
  std::unique_ptr<GpuLowPass> gpu_low_pass_;
};

/// The image after a Gaussian low-pass of standard deviation sigma px, f32, continued beyond its edges by
/// point reflection. sigma = 0: the image itself.
Image low_pass(ImageView image, double sigma, core::ThreadPool& pool);

/// The standard deviation, px, of the low-pass with the smallest predicted sigma; 0 = none, if it does not
/// reduce sigma by a tenth. noise: variance, grey levels^2.
double best_prefilter(const PowerSpectrum& spectrum, double noise, Interpolation interpolation);

/// Energies of an image after a low-pass, means per pixel.
struct FilteredEnergies {
  double gradient = 0;        ///< energy of the pattern's gradient, grey levels^2 / px^2
  double gradient_twice = 0;  ///< energy of the gradient after a second low-pass
  double noise = 0;           ///< energy of white noise of variance 1
  double noise_gradient = 0;  ///< energy of the gradient of that noise
  double noise_gradient_twice = 0;

  /// Variance of a displacement for this variance of the noise, times the pixels of a subset. Infinite if
  /// there is no pattern beside the noise.
  double variance(double noise_variance) const;
  /// Standard deviation of the noise, grey levels, that would cause this variance of a displacement by the
  /// Gauss-Newton matrix of the filtered images alone, which contains the gradients of the noise too.
  double noise_by_matrix(double noise_variance) const;
};
FilteredEnergies energies_after(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                double sigma);

}  // namespace dic::analysis
