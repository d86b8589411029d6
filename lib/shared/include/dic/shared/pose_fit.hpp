#pragma once

#include <dic/shared/pose.hpp>

/// The decisions of a fit of a pose, gain and offset, for CPU and GPU: inverse compositional Gauss-Newton
/// steps, iteratively reweighted by Tukey's biweight. Callers compute grey values, weights and sums.
namespace dic::pose {

/// Start and limits of a fit at one level.
struct FitPlan {
  Freedom freedom = Freedom::rotation;
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
};

/// A pose that was fitted.
struct Fit {
  bool valid = false;    ///< false: diverged, or too little is visible
  Warp warp;             ///< in pixels of the level
  double score = 0;      ///< correlation of all pixels inside the image
  double fit_score = 0;  ///< correlation with the weights of the last step
  double quality = 0;    ///< |score|, or |fit_score| times the root of the share of pixels inside that fit
  double gain = 1, offset = 0;  ///< image = gain * template + offset
  double visible = 0;           ///< share of the template's pixels that are inside the image and fit
  double inside = 0;            ///< share that is inside the image
};

/// Sums from which a correlation follows: t of the template, v of the image.
struct ScoreSums {
  double n = 0, t = 0, tt = 0, v = 0, vv = 0, tv = 0;
};

constexpr double kLeastInside = 0.45;  ///< share of the template that must be inside the image
constexpr double kMostStep = 2;        ///< longest step, px of the level at the rim

/// Residual from which a pixel does not count.
struct ResidualLimit {
  double deviations;  ///< in standard deviations, but
  double least;  ///< in contrasts of the template: interpolation misfits at edges must not count as hidden
};
/// Far from the solution: 95 % efficiency for Gaussian noise.
constexpr ResidualLimit kFarLimit{4.685, 0.35};
/// Near the solution: 85 %. With the wider limit, what hides a part fits by chance at so many of its pixels
/// that it moves the pose by many standard deviations.
constexpr ResidualLimit kNearLimit{3.44, 0.35};
constexpr float kFits = 0.05F;       ///< least weight of a pixel that fits
constexpr double kLoss = 0.02;       ///< loss of quality by which a step is bad
constexpr double kLeastShare = 0.2;  ///< share of a bad step below which no shorter one is tried
constexpr int kMedianPixels = 512;   ///< pixels of which the median residual is taken, at most twice as many

/// Distance between the pixels of which the median residual is taken.
DIC_HOST_DEVICE inline int median_stride(int pixels) {
  return pixels < kMedianPixels ? 1 : pixels / kMedianPixels;
}

/// Residual from which pixels do not count, grey levels. median: of the absolute residuals; squares: the
/// template's squared contrast times the number of its pixels `median_stride` apart.
DIC_HOST_DEVICE inline float residual_limit(bool is_near, float median, double squares, double gain,
                                            int pixels) {
  const ResidualLimit limit = is_near ? kNearLimit : kFarLimit;
  const double share = squares * median_stride(pixels) / (pixels > 1 ? pixels : 1);
  const double of_contrast = limit.least * std::abs(gain) * std::sqrt(share);
  const double of_noise = limit.deviations * 1.4826 * static_cast<double>(median);
  constexpr double least = 1e-20;  // of an image without contrast
  return static_cast<float>(std::fmax(std::fmax(of_noise, of_contrast), least));
}

/// Tukey's biweight of a residual divided by its limit.
DIC_HOST_DEVICE inline float biweight(float q) {
  const float rest = 1 - q * q;
  return rest > 0 ? rest * rest : 0.0F;
}

/// Slope of a weighted residual, r w(r), for a weight w = (1 - q^2)^2: (1 - q^2) (1 - 5 q^2).
DIC_HOST_DEVICE inline double biweight_slope(float weight) {
  const double rest = std::sqrt(static_cast<double>(weight));
  return rest * (5 * rest - 4);
}

/// Normal equations of the free parameters, gain and offset.
///
/// The model is the image's grey value, gain * (t + gradient . step) + offset, or, the other way round, the
/// template's, t = amplitude * image + offset - gradient . step. The first one fits noise in the image best.
/// Far from the solution it prefers places where the image has little contrast; the second one maximizes the
/// correlation.
struct NormalEquations {
  double matrix[kTerms - 1][kTerms - 1] = {};
  double unknown[kTerms - 1] = {};
  int size = 0;
  int known = kGain;  ///< term of the unknown before the last: the template's grey value or the image's

  DIC_HOST_DEVICE void start(Freedom freedom, bool of_image) {
    size = parameters(freedom) + 2, known = of_image ? kGain : kImage;
  }
  DIC_HOST_DEVICE static constexpr int entries(int size) { return size * (size + 1) / 2 + size; }
  /// Fills one of the entries of the lower triangle and of the right-hand side, so that several threads can
  /// share the work.
  DIC_HOST_DEVICE void fill(Freedom freedom, const double* products, int entry) {
    int row = 0, before = 0;
    for (; row < size && before + row + 1 <= entry; ++row) before += row + 1;
    const int column = entry - before;
    if (row == size) {
      const int wanted = known == kGain ? kImage : kGain;
      unknown[column] = of(freedom, column, [&](int term) { return products[product_index(term, wanted)]; });
      return;
    }
    matrix[row][column] = of(freedom, row, [&](int p) {
      return of(freedom, column, [&](int q) { return products[product_index(p, q)]; });
    });
  }

  /// Solves the equations; false if there is no solution.
  DIC_HOST_DEVICE bool solve_all() {
    switch (size) {
      case parameters(Freedom::shift) + 2:
        return solve_small<parameters(Freedom::shift) + 2>();
      case parameters(Freedom::rotation) + 2:
        return solve_small<parameters(Freedom::rotation) + 2>();
      case parameters(Freedom::similarity) + 2:
        return solve_small<parameters(Freedom::similarity) + 2>();
      default:
        return solve(matrix, size, unknown, 1);
    }
  }

  /// Sum over the terms of the unknown of this index. Beside the shift, a similarity has the rotation
  /// (radians), whose term is -eta tx + xi ty, and the logarithm of the scale, xi tx + eta ty.
  template <typename Value>
  DIC_HOST_DEVICE double of(Freedom freedom, int index, const Value& value) const {
    const int free = size - 2;
    if (index >= free) return value(index == free ? known : kOffset);
    if (index < 2 || freedom == Freedom::affine) return value(index);
    const bool is_rotation = index == 2 && freedom != Freedom::scale;
    return is_rotation ? value(4) - value(3) : value(2) + value(5);
  }

 private:
  /// solve() with a constant size, so that a GPU keeps the equations in registers.
  template <int kSize>
  DIC_HOST_DEVICE bool solve_small() {
    double factor[kSize][kSize], solution[kSize];
    DIC_UNROLL
    for (int row = 0; row < kSize; ++row) {
      solution[row] = unknown[row];
      DIC_UNROLL
      for (int column = 0; column <= row; ++column) factor[row][column] = matrix[row][column];
    }
    if (!solve(factor, kSize, solution, 1)) return false;
    DIC_UNROLL
    for (int row = 0; row < kSize; ++row) unknown[row] = solution[row];
    return true;
  }
};

/// A step of the free parameters.
struct FitStep {
  double free[kGeometric] = {};
  double length = 0;  ///< motion at the rim, px
};

/// Longest motion of a pixel of the template by a step, px.
DIC_HOST_DEVICE inline double length_of(const double (&step)[kGeometric], double rim) {
  const double turn =
      std::sqrt((step[2] * step[2] + step[3] * step[3] + step[4] * step[4] + step[5] * step[5]) / 2);
  return std::sqrt(step[0] * step[0] + step[1] * step[1]) + rim * turn;
}

/// The line image = gain * template + offset.
DIC_HOST_DEVICE inline void line_of(const double* products, double& gain, double& offset) {
  const auto sum = [&](int i, int j) { return products[product_index(i, j)]; };
  const double n = sum(kOffset, kOffset), t = sum(kGain, kOffset);
  const double v = sum(kOffset, kImage), tt = sum(kGain, kGain) - t * t / n;
  gain = tt > 0 ? (sum(kGain, kImage) - t * v / n) / tt : 0;
  offset = (v - gain * t) / n;
}

/// The steps of one fit. Callers loop: while begin_step(), they sample the image at warp() and pass the sums
/// of all pixels inside to take_scores(); if that is true, they weight the pixels by gain() and offset() and
/// pass the products to take_products().
class FitSteps {
 public:
  /// origin: is subtracted from the image's grey values; mean: of the template; pixels: of its list.
  DIC_HOST_DEVICE FitSteps(const FitPlan& plan, const Warp& start, double origin, double mean, int pixels)
      : plan_(plan), start_(start), origin_(origin), mean_(mean), pixels_(pixels > 1 ? pixels : 1) {
    fit_.warp = start;
    normal_.start(plan.freedom, plan.is_near);
    has_model_ = plan.gain != 0;
    if (has_model_) gain_ = plan.gain, offset_ = plan.offset + plan.gain * mean - origin;
  }

  /// Prepares the next step; false if there is none.
  DIC_HOST_DEVICE bool begin_step() {
    for (++k_; k_ <= plan_.most_steps && !is_over_; ++k_) {
      former_gain_ = gain_, former_offset_ = offset_;
      if (is_within(fit_.warp)) return true;
      take_back();
    }
    return false;
  }
  /// False if too little is inside the image: the step is over.
  DIC_HOST_DEVICE bool take_scores(const ScoreSums& all) {
    fit_.inside = all.n / pixels_;
    if (all.n >= 1) {
      const double tt = all.tt - all.t * all.t / all.n, vv = all.vv - all.v * all.v / all.n;
      const double tv = all.tv - all.t * all.v / all.n;
      fit_.score = tt > 0 && vv > 1e-9 * all.vv ? tv / std::sqrt(tt * vv) : 0;
      gain_ = tt > 0 ? tv / tt : 0;
      offset_ = (all.v - gain_ * all.t) / all.n;
    }
    if (!(fit_.inside >= kLeastInside)) {
      take_back();
      return false;
    }
    if (has_model_) gain_ = former_gain_, offset_ = former_offset_;
    return true;
  }
  /// fitting: number of pixels whose weight is above kFits.
  DIC_HOST_DEVICE void take_products(const double* products, double fitting) {
    for (int entry = 0; entry < equations(); ++entry) fill_equations(products, entry);
    take_filled(products, fitting);
  }
  /// take_products() in parts: threads that share a fit fill the entries of the equations, then one of them
  /// takes the step.
  DIC_HOST_DEVICE int equations() const { return NormalEquations::entries(normal_.size); }
  DIC_HOST_DEVICE void fill_equations(const double* products, int entry) {
    normal_.fill(plan_.freedom, products, entry);
  }
  DIC_HOST_DEVICE void take_filled(const double* products, double fitting) {
    rate(products, fitting);
    if (k_ == plan_.robust_from) highest_ = 0;  // the quality has another meaning from here on
    // The limit of residuals follows their median, so that fewer pixels fit while the others come to fit
    // better.
    const bool fits_better = plan_.is_near && std::abs(fit_.fit_score) > std::abs(best_.fit_score);
    if (!(fit_.quality >= highest_ - kLoss || fits_better) || !solve_step(products)) return take_back();
    has_model_ = true;
    share_ = 1;
    good_ = next_;
    fit_.valid = true;
    fit_.gain = gain_, fit_.offset = offset_ + origin_ - gain_ * mean_;
    highest_ = fit_.quality > highest_ ? fit_.quality : highest_;
    best_ = fit_;
    const bool is_last = good_.length < plan_.tolerance || k_ == plan_.most_steps;
    if (good_.length >= plan_.tolerance * 0.1) fit_.warp = applied(fit_.warp, 1);
    if (!is_last) return;
    is_over_ = true;
    if (is_within(fit_.warp)) best_ = fit_;
  }

  DIC_HOST_DEVICE const Warp& warp() const { return fit_.warp; }
  DIC_HOST_DEVICE bool is_robust() const { return k_ >= plan_.robust_from || plan_.gain != 0; }
  DIC_HOST_DEVICE double gain() const { return gain_; }  ///< of grey values minus origin and mean
  DIC_HOST_DEVICE double offset() const { return offset_; }
  DIC_HOST_DEVICE const Fit& result() const { return best_; }

 private:
  DIC_HOST_DEVICE bool is_within(const Warp& warp) const {
    const auto squares = [](double x, double y) { return x * x + y * y; };
    const double moved = squares(warp.center_x - start_.center_x, warp.center_y - start_.center_y);
    const double a = squares(warp.xx - start_.xx, warp.yx - start_.yx);
    const double b = squares(warp.xy - start_.xy, warp.yy - start_.yy);
    const double most = plan_.most_motion * plan_.most_motion;
    return moved <= most && plan_.rim * plan_.rim * (a > b ? a : b) <= most;
  }
  /// Tries a shorter step from the best pose, or ends.
  DIC_HOST_DEVICE void take_back() {
    if (!plan_.keeps_best || !best_.valid || share_ < kLeastShare) {
      is_over_ = true;
      return;
    }
    gain_ = former_gain_, offset_ = former_offset_;
    share_ /= 2;
    fit_.warp = applied(best_.warp, share_);
  }
  /// A warp after a share of the last good step.
  DIC_HOST_DEVICE Warp applied(const Warp& warp, double share) {
    for (int i = 0; i < kGeometric; ++i) scaled_[i] = share * good_.free[i];
    geometric_step(plan_.freedom, scaled_, geometric_);
    return composed(warp, geometric_);
  }
  /// Computes the step to which the products lead, at most kMostStep long, with gain and offset. False if
  /// there is no solution.
  DIC_HOST_DEVICE bool solve_step(const double* products) {
    if (!normal_.solve_all()) return false;
    const int free = normal_.size - 2;
    const double amplitude = normal_.unknown[free];
    if (!(plan_.any_polarity ? amplitude != 0 : amplitude > 0)) return false;
    if (plan_.is_near)
      gain_ = amplitude, offset_ = normal_.unknown[free + 1];
    else
      line_of(products, gain_, offset_);
    for (int i = 0; i < kGeometric; ++i) next_.free[i] = 0;
    for (int i = 0; i < free; ++i)
      next_.free[i] = plan_.is_near ? normal_.unknown[i] / amplitude : -normal_.unknown[i];
    geometric_step(plan_.freedom, next_.free, geometric_);
    next_.length = length_of(geometric_, plan_.rim);
    if (!(next_.length < 1e300)) return false;
    if (next_.length > kMostStep)
      for (int i = 0; i < free; ++i) next_.free[i] *= kMostStep / next_.length;
    return true;
  }
  DIC_HOST_DEVICE void rate(const double* products, double fitting) {
    const auto sum = [&](int i, int j) { return products[product_index(i, j)]; };
    const double n = sum(kOffset, kOffset), t = sum(kGain, kOffset), v = sum(kOffset, kImage);
    const double tt = sum(kGain, kGain) - t * t / n, vv = sum(kImage, kImage) - v * v / n;
    const double tv = sum(kGain, kImage) - t * v / n;
    double score = tt > 0 && vv > 0 ? tv / std::sqrt(tt * vv) : 0;
    score = score > 1 ? 1 : score < -1 ? -1 : score;
    fit_.fit_score = score;
    fit_.visible = fitting / pixels_;
    const double share = fit_.visible < fit_.inside ? fit_.visible / fit_.inside : 1;
    fit_.quality = is_robust() ? std::abs(score) * std::sqrt(share) : std::abs(fit_.score);
  }

  FitPlan plan_;
  Warp start_;
  double origin_, mean_;
  int pixels_;
  Fit fit_, best_;  // best: with the pose from which the last good step began
  FitStep good_, next_;
  // Work space: members, because a GPU keeps arrays in shared memory only then.
  NormalEquations normal_;
  double scaled_[kGeometric] = {}, geometric_[kGeometric] = {};
  double share_ = 1;    // of the last good step
  double highest_ = 0;  // quality so far
  double gain_ = 1, offset_ = 0, former_gain_ = 1, former_offset_ = 0;
  int k_ = -1;
  bool has_model_ = false;  // gain and offset of a weighted fit
  bool is_over_ = false;
};

}  // namespace dic::pose
