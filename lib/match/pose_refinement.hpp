#pragma once

#include <cmath>
#include <dic/shared/pose_fit.hpp>
#include <functional>
#include <stop_token>
#include <vector>

#include "core/parallel.hpp"
#include "match/pose_kernels.hpp"
#include "match/pose_sigmas.hpp"

namespace dic::match {

struct RefinementPlan : pose::FitPlan {
  std::stop_token stop{};  ///< ends a refinement by Cancelled
  int sigma_groups = 200;  ///< groups of pixels of which standard deviations are made, roughly
};

struct PoseFit : pose::Fit {
  double sigma_x = 0, sigma_y = 0, sigma_radians = 0, sigma_log_scale = 0;  ///< only from `with_sigmas`
  PoseScatter::Matrix
      covariance{};  ///< of the free parameters, but for loose motions. Only from `with_sigmas`
  /// Motions that noise hides, see PoseScatter; empty: all are determined. Only from `with_sigmas`.
  std::vector<PoseScatter::Vector> loose{};
};

/// True if the pose does not rely on hiding pixels: all of them fit, or agree nearly as well as those that
/// do.
inline bool is_whole(const pose::Fit& fit) {
  constexpr double kAgree = 0.9, kFit = 0.99;
  return std::abs(fit.score) >= kAgree * std::abs(fit.fit_score) || fit.visible >= kFit * fit.inside;
}

/// True if a fit hides some pixels inside the image, or few with much of the contrast.
inline bool hides_pixels(const pose::Fit& fit) {
  constexpr double kAll = 0.99;
  return fit.visible < kAll * fit.inside || std::abs(fit.score) < kAll * std::abs(fit.fit_score);
}

/// Groups of pixels from one that counts for standard deviations to the next.
int sigma_stride(const PixelList& pixels, const RefinementPlan& plan);
/// Factor by which the steps of a robust fit are too short for its residuals, since its weights change with
/// them (Huber 1981). weights, slopes: sums over the pixels that count, see pose::biweight_slope().
double weight_slope(double weights, double slopes);
/// Adds standard deviations to a fit. The fit becomes invalid if its pixels do not determine the pose at all.
/// slope: see weight_slope(), 1 if all pixels count alike.
void add_sigmas(const FittedPixels& fitted, double slope, const PixelList& pixels, const RefinementPlan& plan,
                PoseFit& fit);

/// Sets the standard deviations of a fit by its covariance and those of its loose motions, px at the rim.
void set_sigmas(pose::Freedom freedom, double rim, const std::vector<double>& loose, PoseFit& fit);

/// Buffers and results of refinements; one per thread.
class PoseRefiner {
 public:
  /// pool: shares the work on long lists of pixels; results do not depend on its size.
  explicit PoseRefiner(core::ThreadPool& pool) : pool_(&pool) {}
  /// Gauss-Newton steps over the pose, gain and offset (inverse compositional, iteratively reweighted by
  /// Tukey's biweight).
  PoseFit refine(const SampleImage& image, const PixelList& pixels, const pose::Warp& start,
                 const RefinementPlan& plan);
  /// Correlation of the gradients of template and image, over pixels that fit: low where a smooth background
  /// happens to resemble the template, because smooth textures have few edges at the same places.
  /// fit: pose in pixels of the level, gain and offset.
  double gradient_correlation(const SampleImage& image, const PixelList& pixels, const PoseFit& fit);
  /// Share of the template's squared contrast inside the image that fits: low where a few marks are hidden.
  /// fit: as above.
  double contrast_share(const SampleImage& image, const PixelList& pixels, const PoseFit& fit);
  /// Adds standard deviations to the fit that the last `refine` returned, in pixels of the level.
  void with_sigmas(const SampleImage& image, const PixelList& pixels, const RefinementPlan& plan,
                   PoseFit& fit) const;

 private:
  void for_parts(const PixelList& pixels,
                 const std::function<void(std::size_t begin, std::size_t end, std::size_t part)>& body) const;
  ScoreSums sample_all(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp);
  double level_at(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp);
  void weight_all(const SampleImage& image, const PixelList& pixels, const PoseFit& fit);
  float residual_limit(const PixelList& pixels, bool is_near);
  void take_step(const PixelList& pixels, bool is_near, pose::FitSteps& steps);
  double slope() const;
  FittedPixels fitted(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp,
                      int stride) const;

  core::ThreadPool* pool_;
  std::vector<float> values_, inside_, weights_, sorted_;
  double gain_ = 1, offset_ = 0;
  double limit_ = 0;  ///< residual from which pixels of the last step do not count; 0: all count
};

}  // namespace dic::match
