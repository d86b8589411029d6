#pragma once

#include <dic/shared/pose.hpp>
#include <stop_token>
#include <vector>

#include "match/pose_kernels.hpp"
#include "match/pose_sigmas.hpp"

namespace dic::match {

/// Start and limits of a refinement at one level.
struct RefinementPlan {
  pose::Freedom freedom = pose::Freedom::rotation;
  bool any_polarity = false;  ///< the gain may be negative
  int robust_from = 1;        ///< step from which pixels that do not fit lose their weight
  bool is_near = false;    ///< the start is near the solution: the fit is the best one for noise in the image
  bool keeps_best = true;  ///< steps that make the fit worse are taken back; otherwise they end in failure
  int most_steps = 5;
  double tolerance = 0.01;  ///< px of the level at the template's rim
  double rim = 1;           ///< of the template at this level, px
  double most_motion = 3;   ///< largest motion of the centre and of the rim from the start, px of the level
  /// Gain and offset from an earlier fit, from which the weights of the first step are made; gain 0: none.
  double gain = 0, offset = 0;
  std::stop_token stop{};  ///< ends a refinement by Cancelled
};

struct PoseFit {
  bool valid = false;    ///< false: diverged, or too little is visible
  pose::Warp warp;       ///< in pixels of the level
  double score = 0;      ///< correlation of all pixels inside the image
  double fit_score = 0;  ///< correlation with the weights of the last step
  double quality = 0;    ///< |score|, or |fit_score| times the root of the share of pixels inside that fit
  double gain = 1, offset = 0;  ///< image = gain * template + offset
  double visible = 0;           ///< share of the template's pixels that are inside the image and fit
  double inside = 0;            ///< share that is inside the image
  double sigma_x = 0, sigma_y = 0, sigma_radians = 0, sigma_log_scale = 0;  ///< only from `with_sigmas`
  /// Motion that noise hides, see PoseScatter; empty: all are determined. Only from `with_sigmas`.
  std::vector<double> loose{};
};

/// Buffers and results of refinements; one per thread.
class PoseRefiner {
 public:
  /// Gauss-Newton steps over the pose, gain and offset (inverse compositional, iteratively reweighted by
  /// Tukey's biweight).
  PoseFit refine(const SampleImage& image, const PixelList& pixels, const pose::Warp& start,
                 const RefinementPlan& plan);
  /// Correlation of the gradients of template and image, over pixels that fit: low where a smooth background
  /// happens to resemble the template, because smooth textures have few edges at the same places.
  /// fit: pose in pixels of the level, gain and offset.
  double gradient_correlation(const SampleImage& image, const PixelList& pixels, const PoseFit& fit);
  /// Adds standard deviations to the fit that the last `refine` returned, in pixels of the level. The fit
  /// becomes invalid if its pixels do not determine the pose at all.
  void with_sigmas(const SampleImage& image, const PixelList& pixels, const RefinementPlan& plan,
                   PoseFit& fit) const;

 private:
  void sample_all(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp);
  double level_at(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp);
  void score_all(const PixelList& pixels, PoseFit& fit);
  void set_weights(const PixelList& pixels, bool robust);
  void rate(const PixelList& pixels, const double* products, bool robust, PoseFit& fit) const;
  double weight_slope() const;
  FittedPixels fitted(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp,
                      int stride) const;

  std::vector<float> values_, inside_, weights_, sorted_;
  double gain_ = 1, offset_ = 0;
  double limit_ = 0;  ///< residual from which pixels of the last step do not count; 0: all count
};

}  // namespace dic::match
