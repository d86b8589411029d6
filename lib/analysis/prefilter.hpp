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
/// noise. A backend gets filtered images, and by `for_backend` what it has to know of their noise.
class Prefilter {
 public:
  /// spectrum: of the reference before the filter, if it is known. on_gpu: images may be in the memory of a
  /// GPU. pool: lives longer.
  Prefilter(const TrackOptions& chosen, const std::optional<PowerSpectrum>& spectrum, bool on_gpu,
            ThreadPool& pool);

  bool enabled() const { return sigma_ > 0; }
  double sigma() const { return sigma_; }
  /// The filtered image, f32, on the host; beyond the edges it goes on by point reflection. One call at a
  /// time.
  Image operator()(ImageView image) const;
  /// The same of an image in the memory of a GPU, there, until the next call; no data where its type or the
  /// filter are none for a GPU. One call at a time.
  ImageView on_gpu(ImageView image) const;
  /// Size and type of what the backend gets, without the pixels.
  ImageView view_of(ImageView image) const;
  /// What the backend gets.
  TrackOptions for_backend(TrackOptions options) const;
  /// Standard deviation of white noise after the filter over that before it.
  double noise_gain() const { return noise_gain_; }

 private:
  double sigma_;
  bool on_gpu_;
  double noise_gain_ = 1;    ///< see noise_gain()
  double sigma_factor_ = 1;  ///< of a displacement: what the correlation of the noise makes of it
  ThreadPool& pool_;
  std::unique_ptr<GpuLowPass> gpu_low_pass_;
};

/// The image after a Gaussian low-pass of standard deviation sigma px, f32; beyond the edges it goes on by
/// point reflection. sigma = 0: the image itself.
Image low_pass(ImageView image, double sigma, ThreadPool& pool);

/// The standard deviation, px, of the low-pass with the smallest predicted sigma; 0 = none where that is not
/// smaller by a tenth. noise: variance, grey levels^2.
double best_prefilter(const PowerSpectrum& spectrum, double noise, Interpolation interpolation);

/// Energies of an image after a low-pass, means per pixel.
struct FilteredEnergies {
  double gradient = 0;        ///< of the pattern's gradient, grey levels^2 / px^2
  double gradient_twice = 0;  ///< the same after a second low-pass
  double noise = 0;           ///< of white noise of variance 1
  double noise_gradient = 0;  ///< of its gradient
  double noise_gradient_twice = 0;

  /// Variance of a displacement by this variance of the noise, but for a factor: 1 / (pixels of a subset).
  /// Infinite where there is no pattern beside the noise.
  double variance(double noise_variance) const;
  /// Standard deviation of a noise, grey levels, that has this variance of a displacement if all of it
  /// follows from the Gauss-Newton matrix of the filtered images, in which the gradients of the noise count,
  /// too.
  double noise_by_matrix(double noise_variance) const;
};
FilteredEnergies energies_after(const PowerSpectrum& spectrum, double noise, Interpolation interpolation,
                                double sigma);

}  // namespace dic::analysis
