#include "match/pose_refinement.hpp"

#include <algorithm>
#include <cmath>
#include <dic/error.hpp>
#include <optional>

namespace dic::match {
namespace {

using pose::Freedom;

constexpr double kLeastInside = 0.45;  ///< share of the template that must be inside the image
constexpr double kMostStep = 2;        ///< longest step, px of the level at the rim
constexpr double kTukey = 4.685;       ///< limit in standard deviations: 95 % efficiency for Gaussian noise
/// Least limit of the residuals, in contrasts of the template: interpolation misfits at edges must not count
/// as hidden.
constexpr double kLeastLimit = 0.35;
constexpr float kFits = 0.05F;        ///< least weight of a pixel that fits
constexpr double kLoss = 0.02;        ///< loss of quality by which a step is bad
constexpr double kLeastShare = 0.2;   ///< share of a bad step below which no shorter one is tried
constexpr int kMedianPixels = 1024;   ///< pixels of which the median residual is taken
constexpr int kMostGroups = 200;      ///< groups of which standard deviations are made, roughly
constexpr double kLeastSigma = 2e-4;  ///< standard deviation that no fit is better than, px

/// Normal equations of the free parameters, gain and offset.
///
/// The model is the image's grey value, gain * (t + gradient . step) + offset, or, the other way round, the
/// template's, t = amplitude * image + offset - gradient . step. The first one fits noise in the image best.
/// Far from the solution it prefers places where the image has little contrast; the second one maximizes the
/// correlation.
struct Normal {
  double matrix[pose::kTerms - 1][pose::kTerms - 1] = {};
  double right[pose::kTerms - 1] = {};
  int size = 0;

  int known = pose::kGain;  ///< term of the unknown before the last: the template's grey value or the image's

  Normal(Freedom freedom, const double* products, bool of_image)
      : size(pose::parameters(freedom) + 2), known(of_image ? pose::kGain : pose::kImage) {
    const int wanted = of_image ? pose::kImage : pose::kGain;
    for (int i = 0; i < size; ++i) {
      right[i] = of(freedom, i, [&](int term) { return products[pose::product_index(term, wanted)]; });
      for (int j = 0; j <= i; ++j)
        matrix[i][j] = matrix[j][i] = of(freedom, i, [&](int p) {
          return of(freedom, j, [&](int q) { return products[pose::product_index(p, q)]; });
        });
    }
  }

  /// Sum over the terms of an unknown.
  template <typename Value>
  double of(Freedom freedom, int unknown, const Value& value) const {
    const int free = size - 2;
    if (unknown >= free) return value(unknown == free ? known : pose::kOffset);
    double sum = 0;
    for (int term = 0; term < pose::kGeometric; ++term)
      if (const double weight = pose::basis(freedom, unknown, term); weight != 0) sum += weight * value(term);
    return sum;
  }
};

/// Longest motion of a pixel of the template by a step, px.
double length_of(const double (&step)[pose::kGeometric], double rim) {
  const double turn =
      std::sqrt((step[2] * step[2] + step[3] * step[3] + step[4] * step[4] + step[5] * step[5]) / 2);
  return std::hypot(step[0], step[1]) + rim * turn;
}

}  // namespace

void PoseRefiner::sample_all(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp) {
  for (auto* buffer : {&values_, &inside_, &weights_}) buffer->resize(pixels.padded());
  for (std::size_t k = 0; k < pixels.padded(); k += PixelList::kBlock)
    sample(image, warp, pixels, k, values_.data() + k, inside_.data() + k);
}

/// Mean grey value of the first pixels.
double PoseRefiner::level_at(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp) {
  for (auto* buffer : {&values_, &inside_}) buffer->resize(pixels.padded());
  sample(image, warp, pixels, 0, values_.data(), inside_.data());
  double sum = 0, n = 0;
  for (int k = 0; k < PixelList::kBlock; ++k) sum += inside_[k] * values_[k], n += inside_[k];
  return n > 0 ? std::round(sum / n) : 0;
}

void PoseRefiner::score_all(const PixelList& pixels, PoseFit& fit) {
  ScoreSums all;
  for (std::size_t k = 0; k < pixels.padded(); k += PixelList::kBlock)
    add_scores(pixels.t.data() + k, values_.data() + k, inside_.data() + k, all);
  fit.inside = all.n / std::max(1, pixels.count);
  if (all.n < 1) return;
  const double tt = all.tt - all.t * all.t / all.n, vv = all.vv - all.v * all.v / all.n;
  const double tv = all.tv - all.t * all.v / all.n;
  fit.score = tt > 0 && vv > 1e-9 * all.vv ? tv / std::sqrt(tt * vv) : 0;
  gain_ = tt > 0 ? tv / tt : 0;
  offset_ = (all.v - gain_ * all.t) / all.n;
}

void PoseRefiner::set_weights(const PixelList& pixels, bool robust) {
  if (!robust) {
    std::copy(inside_.begin(), inside_.end(), weights_.begin());
    limit_ = 0;
    return;
  }
  const auto gain = static_cast<float>(gain_), offset = static_cast<float>(offset_);
  const int stride = std::max(1, pixels.count / kMedianPixels);
  sorted_.clear();
  double squares = 0;
  for (int k = 0; k < pixels.count; k += stride) {
    squares += static_cast<double>(pixels.t[k]) * pixels.t[k];
    if (inside_[k] != 0) sorted_.push_back(std::abs(values_[k] - gain * pixels.t[k] - offset));
  }
  if (sorted_.empty()) return;
  const double contrast = std::abs(gain_) * std::sqrt(squares * stride / std::max(1, pixels.count));
  const auto middle = sorted_.begin() + static_cast<std::ptrdiff_t>(sorted_.size() / 2);
  std::nth_element(sorted_.begin(), middle, sorted_.end());
  const auto limit = static_cast<float>(std::max(kTukey * 1.4826 * *middle, kLeastLimit * contrast));
  limit_ = limit;
  const float one_limit = 1 / limit;  // Tukey's biweight
  const float *v = values_.data(), *t = pixels.t.data(), *inside = inside_.data();
  float* weights = weights_.data();
  for (std::size_t k = 0; k < pixels.padded(); ++k) {
    const float q = (v[k] - gain * t[k] - offset) * one_limit, rest = std::max(0.0F, 1 - q * q);
    weights[k] = inside[k] * rest * rest;
  }
}

void PoseRefiner::rate(const PixelList& pixels, const double* products, bool robust, PoseFit& fit) const {
  const auto sum = [&](int i, int j) { return products[pose::product_index(i, j)]; };
  const double n = sum(pose::kOffset, pose::kOffset), t = sum(pose::kGain, pose::kOffset);
  const double v = sum(pose::kOffset, pose::kImage);
  const double tt = sum(pose::kGain, pose::kGain) - t * t / n;
  const double vv = sum(pose::kImage, pose::kImage) - v * v / n;
  const double tv = sum(pose::kGain, pose::kImage) - t * v / n;
  fit.fit_score = tt > 0 && vv > 0 ? std::clamp(tv / std::sqrt(tt * vv), -1.0, 1.0) : 0;
  const auto fitting = std::ranges::count_if(weights_, [](float weight) { return weight > kFits; });
  fit.visible = static_cast<double>(fitting) / std::max(1, pixels.count);
  fit.quality = robust ? std::abs(fit.fit_score) * std::sqrt(std::min(1.0, fit.visible / fit.inside))
                       : std::abs(fit.score);
}

namespace {

/// A step of the free parameters.
struct Step {
  double free[pose::kGeometric] = {};
  double length = 0;  ///< motion at the rim, px

  pose::Warp applied(const pose::Warp& warp, const RefinementPlan& plan, double share) const {
    double scaled[pose::kGeometric], step[pose::kGeometric];
    for (int i = 0; i < pose::kGeometric; ++i) scaled[i] = share * free[i];
    pose::geometric_step(plan.freedom, scaled, step);
    return pose::composed(warp, step);
  }
};

/// The line image = gain * template + offset.
void line_of(const double* products, double& gain, double& offset) {
  const auto sum = [&](int i, int j) { return products[pose::product_index(i, j)]; };
  const double n = sum(pose::kOffset, pose::kOffset), t = sum(pose::kGain, pose::kOffset);
  const double v = sum(pose::kOffset, pose::kImage), tt = sum(pose::kGain, pose::kGain) - t * t / n;
  gain = tt > 0 ? (sum(pose::kGain, pose::kImage) - t * v / n) / tt : 0;
  offset = (v - gain * t) / n;
}

/// The step to which the products lead, at most kMostStep long; none if there is no solution.
std::optional<Step> step_of(const RefinementPlan& plan, const double* products, double& gain,
                            double& offset) {
  Normal normal(plan.freedom, products, plan.is_near);
  double unknown[pose::kTerms - 1] = {};
  std::copy_n(normal.right, normal.size, unknown);
  if (!pose::solve(normal.matrix, normal.size, unknown, 1)) return std::nullopt;
  const int free = normal.size - 2;
  const double amplitude = unknown[free];
  if (!(plan.any_polarity ? amplitude != 0 : amplitude > 0)) return std::nullopt;
  if (plan.is_near)
    gain = amplitude, offset = unknown[free + 1];
  else
    line_of(products, gain, offset);
  Step step;
  for (int i = 0; i < free; ++i) step.free[i] = plan.is_near ? unknown[i] / amplitude : -unknown[i];
  double geometric[pose::kGeometric];
  pose::geometric_step(plan.freedom, step.free, geometric);
  step.length = length_of(geometric, plan.rim);
  if (!std::isfinite(step.length)) return std::nullopt;
  if (step.length > kMostStep)
    for (int i = 0; i < free; ++i) step.free[i] *= kMostStep / step.length;
  return step;
}

bool is_within(const pose::Warp& warp, const pose::Warp& start, const RefinementPlan& plan) {
  const double moved = std::hypot(warp.center_x - start.center_x, warp.center_y - start.center_y);
  const double turned = plan.rim * std::max(std::hypot(warp.xx - start.xx, warp.yx - start.yx),
                                            std::hypot(warp.xy - start.xy, warp.yy - start.yy));
  return moved <= plan.most_motion && turned <= plan.most_motion;
}

}  // namespace

PoseFit PoseRefiner::refine(const SampleImage& image, const PixelList& pixels, const pose::Warp& start,
                            const RefinementPlan& plan) {
  PoseFit fit, best;  // best: with the pose from which the last good step began
  Step good;
  double share = 1;    // of the last good step
  double highest = 0;  // quality so far
  fit.warp = start;
  // Grey values relative to one of them keep the digits of a small contrast.
  SampleImage from = image;
  const double origin = level_at(image, pixels, start);
  from.offset -= static_cast<float>(origin);
  bool has_model = plan.gain != 0;  // gain and offset of a weighted fit
  if (has_model) gain_ = plan.gain, offset_ = plan.offset + plan.gain * pixels.mean - origin;
  for (int k = 0; k <= plan.most_steps; ++k) {
    if (plan.stop.stop_requested()) throw Cancelled("Template matching was cancelled.");
    const bool robust = k >= plan.robust_from || plan.gain != 0;
    const double gain = gain_, offset = offset_;
    bool is_good = is_within(fit.warp, start, plan);
    double products[pose::kProducts] = {};
    if (is_good) {
      sample_all(from, pixels, fit.warp);
      score_all(pixels, fit);
      is_good = fit.inside >= kLeastInside;
    }
    if (is_good) {
      if (has_model) gain_ = gain, offset_ = offset;
      set_weights(pixels, robust);
      for (std::size_t at = 0; at < pixels.padded(); at += PixelList::kBlock)
        add_products(pixels, at, values_.data() + at, weights_.data() + at, products);
      rate(pixels, products, robust, fit);
      if (k == plan.robust_from) highest = 0;  // the quality has another meaning from here on
      is_good = fit.quality >= highest - kLoss;
    }
    const std::optional<Step> next = is_good ? step_of(plan, products, gain_, offset_) : std::nullopt;
    if (!next) {
      if (!plan.keeps_best || !best.valid || share < kLeastShare) return best;
      gain_ = gain, offset_ = offset;
      share /= 2;
      fit.warp = good.applied(best.warp, plan, share);
      continue;
    }
    has_model = true;
    share = 1;
    good = *next;
    fit.valid = true;
    fit.gain = gain_, fit.offset = offset_ + origin - gain_ * pixels.mean;
    highest = std::max(highest, fit.quality);
    best = fit;
    const bool is_last = good.length < plan.tolerance || k == plan.most_steps;
    if (good.length >= plan.tolerance * 0.1) fit.warp = good.applied(fit.warp, plan, 1);
    if (!is_last) continue;
    return is_within(fit.warp, start, plan) ? fit : best;
  }
  return best;
}

namespace {

std::size_t whole_blocks(std::size_t count) {
  return (count + PixelList::kBlock - 1) / PixelList::kBlock * PixelList::kBlock;
}

/// Gradients of the image in template coordinates.
struct Gradients {
  std::vector<float> x, y;
};

/// Central differences between places `step` px of the template away.
Gradients gradients_at(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp,
                       double step) {
  std::vector<float> before(pixels.padded()), inside(pixels.padded());
  const auto difference = [&](double xi, double eta) {
    std::vector<float> after(pixels.padded());
    for (const double side : {-1.0, 1.0}) {
      pose::Warp there = warp;
      there.center_x += side * (there.xx * xi + there.xy * eta);
      there.center_y += side * (there.yx * xi + there.yy * eta);
      for (std::size_t k = 0; k < pixels.padded(); k += PixelList::kBlock)
        sample(image, there, pixels, k, (side < 0 ? before : after).data() + k, inside.data() + k);
    }
    const auto scale = static_cast<float>(1 / (2 * step));
    for (std::size_t k = 0; k < after.size(); ++k) after[k] = scale * (after[k] - before[k]);
    return after;
  };
  return {difference(step, 0), difference(0, step)};
}

}  // namespace

double PoseRefiner::gradient_correlation(const SampleImage& image, const PixelList& pixels,
                                         const PoseFit& fit) {
  constexpr double kHalf = 0.5;
  const Gradients around = gradients_at(image, pixels, fit.warp, kHalf);
  sample_all(image, pixels, fit.warp);
  gain_ = fit.gain, offset_ = fit.offset + fit.gain * pixels.mean;
  set_weights(pixels, true);
  double tt = 0, ii = 0, ti = 0;
  for (int k = 0; k < pixels.count; ++k) {
    const double w = weights_[k], gx = around.x[k], gy = around.y[k];
    tt += w * (pixels.tx[k] * pixels.tx[k] + pixels.ty[k] * pixels.ty[k]);
    ii += w * (gx * gx + gy * gy);
    ti += w * (pixels.tx[k] * gx + pixels.ty[k] * gy);
  }
  return tt > 0 && ii > 0 ? ti / std::sqrt(tt * ii) : 0;
}

/// Factor by which the steps of the robust fit are too short for its residuals, since its weights change with
/// them (Huber 1981).
double PoseRefiner::weight_slope() const {
  if (limit_ <= 0) return 1;
  double weights = 0, slopes = 0;  // w = (1 - q^2)^2; slope of r w(r) = (1 - q^2) (1 - 5 q^2)
  for (std::size_t k = 0; k < weights_.size(); ++k) {
    if (inside_[k] == 0 || weights_[k] == 0) continue;
    const double rest = std::sqrt(static_cast<double>(weights_[k]));
    weights += weights_[k];
    slopes += rest * (5 * rest - 4);
  }
  constexpr double kMost = 2;
  return slopes > 0 ? std::clamp(weights / slopes, 1.0, kMost) : kMost;
}

/// Some groups of pixels of the last step, which stand for all of a large template, with the image's
/// gradients.
FittedPixels PoseRefiner::fitted(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp,
                                 int stride) const {
  PixelList some;
  FittedPixels fitted;
  const auto gain = static_cast<float>(gain_), offset = static_cast<float>(offset_);
  for (int first = 0; first < pixels.count; first += stride * FittedPixels::kGroup)
    for (int k = first; k < std::min(first + FittedPixels::kGroup, pixels.count); ++k) {
      some.xi.push_back(pixels.xi[k]), some.eta.push_back(pixels.eta[k]);
      fitted.pixels.push_back({.xi = pixels.xi[k],
                               .eta = pixels.eta[k],
                               .t = pixels.t[k],
                               .tx = pixels.tx[k],
                               .ty = pixels.ty[k],
                               .residual = (values_[k] - offset) / gain - pixels.t[k],
                               .weight = weights_[k]});
    }
  some.count = static_cast<int>(some.xi.size());
  some.xi.resize(whole_blocks(some.xi.size())), some.eta.resize(some.xi.size());
  constexpr double kStep = 0.25;  // px: differences over longer distances smooth fine textures
  const Gradients gradients = gradients_at(image, some, warp, kStep);
  for (std::size_t k = 0; k < fitted.pixels.size(); ++k)
    fitted.pixels[k].ix = gradients.x[k] / gain, fitted.pixels[k].iy = gradients.y[k] / gain;
  return fitted;
}

void PoseRefiner::with_sigmas(const SampleImage& image, const PixelList& pixels, const RefinementPlan& plan,
                              PoseFit& fit) const {
  const int free = pose::parameters(plan.freedom);
  const int groups = (pixels.count + FittedPixels::kGroup - 1) / FittedPixels::kGroup;
  const int stride = std::max(1, groups / kMostGroups), counted = (groups + stride - 1) / stride;
  const auto scatter = scatter_of(fitted(image, pixels, fit.warp, stride), plan.freedom, plan.rim);
  if (!scatter) {
    fit.valid = false;
    return;
  }
  fit.loose.clear();
  if (scatter->loose) fit.loose.assign(scatter->loose->begin(), scatter->loose->end());
  const double share = static_cast<double>(counted) / std::max(1, groups);
  PoseScatter::Matrix covariance = share * std::pow(weight_slope(), 2) * scatter->covariance;
  // Rounding of grey values and of the interpolation is in no residual.
  for (int i = 0; i < 2; ++i) covariance(i, i) += kLeastSigma * kLeastSigma;
  for (int i = 2; i < free; ++i) covariance(i, i) += std::pow(kLeastSigma / std::max(1.0, plan.rim), 2);
  const pose::Warp& w = fit.warp;
  const auto variance = [&](double a, double b) {
    return a * a * covariance(0, 0) + 2 * a * b * covariance(0, 1) + b * b * covariance(1, 1);
  };
  fit.sigma_x = std::sqrt(std::max(0.0, variance(w.xx, w.xy)));
  fit.sigma_y = std::sqrt(std::max(0.0, variance(w.yx, w.yy)));
  if (plan.freedom == Freedom::affine) {
    // Terms 2 .. 5 change the matrix; its rotation is (4 - 3) / 2, its scale (2 + 5) / 2.
    fit.sigma_radians = std::sqrt(covariance(3, 3) + covariance(4, 4) - 2 * covariance(3, 4)) / 2;
    fit.sigma_log_scale = std::sqrt(covariance(2, 2) + covariance(5, 5) + 2 * covariance(2, 5)) / 2;
    return;
  }
  if (plan.freedom == Freedom::rotation || plan.freedom == Freedom::similarity)
    fit.sigma_radians = std::sqrt(covariance(2, 2));
  if (plan.freedom == Freedom::similarity) fit.sigma_log_scale = std::sqrt(covariance(3, 3));
  if (plan.freedom == Freedom::scale) fit.sigma_log_scale = std::sqrt(covariance(2, 2));
}

}  // namespace dic::match
