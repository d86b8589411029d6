#include "match/pose_refinement.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <dic/error.hpp>
#include <limits>

namespace dic::match {
namespace {

using pose::Freedom;

constexpr std::size_t kPartPixels = 32 * PixelList::kBlock;  ///< pixels of a list that one thread takes
constexpr double kLeastSigma = 2e-4;  ///< standard deviation that no fit is better than, px

std::size_t part_count(const PixelList& pixels) {
  return std::max<std::size_t>(1, (pixels.padded() + kPartPixels - 1) / kPartPixels);
}

}  // namespace

/// Calls body for parts of a list of the same size, several at the same time.
void PoseRefiner::for_parts(
    const PixelList& pixels,
    const std::function<void(std::size_t begin, std::size_t end, std::size_t part)>& body) const {
  const std::size_t parts = part_count(pixels);
  const auto one = [&](std::size_t part) {
    body(part * kPartPixels, std::min((part + 1) * kPartPixels, pixels.padded()), part);
  };
  if (parts == 1) return one(0);
  pool_->parallel_for(static_cast<std::int64_t>(parts), 1,
                      [&](std::int64_t part, std::int64_t, int) { one(part); });
}

ScoreSums PoseRefiner::sample_all(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp) {
  for (auto* buffer : {&values_, &inside_, &weights_}) buffer->resize(pixels.padded());
  std::vector<ScoreSums> sums(part_count(pixels));
  for_parts(pixels, [&](std::size_t begin, std::size_t end, std::size_t part) {
    for (std::size_t k = begin; k < end; k += PixelList::kBlock) {
      sample(image, warp, pixels, k, values_.data() + k, inside_.data() + k);
      add_scores(pixels.t.data() + k, values_.data() + k, inside_.data() + k, sums[part]);
    }
  });
  ScoreSums all;
  for (const ScoreSums& s : sums) {
    all.n += s.n, all.t += s.t, all.tt += s.tt;
    all.v += s.v, all.vv += s.vv, all.tv += s.tv;
  }
  return all;
}

/// Mean grey value of the first pixels.
double PoseRefiner::level_at(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp) {
  for (auto* buffer : {&values_, &inside_}) buffer->resize(pixels.padded());
  sample(image, warp, pixels, 0, values_.data(), inside_.data());
  double sum = 0, n = 0;
  for (int k = 0; k < PixelList::kBlock; ++k) sum += inside_[k] * values_[k], n += inside_[k];
  return n > 0 ? std::round(sum / n) : 0;
}

namespace {

/// The middle one of some values that are not negative, 0 if there are none; changes their order. Only values
/// that agree with it in the upper bits are compared: std::nth_element alone takes several times as long.
float middle_of(std::vector<float>& values) {
  if (values.empty()) return 0;
  // The exponent and 3 bits of the mantissa make a bin, of which there are those of 16 octaves below the
  // largest value; the first one has all smaller values.
  constexpr int kShift = 20, kBins = 128;
  static_assert(2 * pose::kMedianPixels < std::numeric_limits<std::uint16_t>::max());
  const auto upper_bits = [](float value) {
    return static_cast<int>(std::bit_cast<std::uint32_t>(value) >> kShift);
  };
  const int first = upper_bits(std::ranges::max(values)) - kBins + 1;
  const auto bin_of = [&](float value) { return std::clamp(upper_bits(value) - first, 0, kBins - 1); };
  std::array<std::uint16_t, kBins> counts{};
  for (const float value : values) ++counts[bin_of(value)];
  std::size_t rank = values.size() / 2;
  int bin = 0;
  for (; rank >= counts[bin]; ++bin) rank -= counts[bin];
  const auto end = std::partition(values.begin(), values.end(), [&](float v) { return bin_of(v) == bin; });
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(rank);
  std::nth_element(values.begin(), middle, end);
  return *middle;
}

}  // namespace

/// Residual from which pixels do not count.
float PoseRefiner::residual_limit(const PixelList& pixels, bool is_near) {
  const auto gain = static_cast<float>(gain_), offset = static_cast<float>(offset_);
  const int stride = pose::median_stride(pixels.count);
  sorted_.clear();
  for (int k = 0; k < pixels.count; k += stride)
    if (inside_[k] != 0) sorted_.push_back(std::abs(values_[k] - gain * pixels.t[k] - offset));
  return pose::residual_limit(is_near, middle_of(sorted_), pixels.squares, gain_, pixels.count);
}

/// Weights the sampled pixels and takes the step to which they lead.
void PoseRefiner::take_step(const PixelList& pixels, bool is_near, pose::FitSteps& steps) {
  struct Sums {
    double products[pose::kProducts] = {}, fitting = 0;
  };
  gain_ = steps.gain(), offset_ = steps.offset();
  const bool is_robust = steps.is_robust();
  limit_ = is_robust ? residual_limit(pixels, is_near) : 0;
  const WeightRule rule{static_cast<float>(gain_), static_cast<float>(offset_), static_cast<float>(limit_)};
  std::vector<Sums> sums(part_count(pixels));
  for_parts(pixels, [&](std::size_t begin, std::size_t end, std::size_t part) {
    for (std::size_t k = begin; k < end; k += PixelList::kBlock) {
      float* weights = weights_.data() + k;
      if (is_robust)
        weight(pixels, k, rule, values_.data() + k, inside_.data() + k, weights);
      else
        std::copy_n(inside_.data() + k, PixelList::kBlock, weights);
      add_products(pixels, k, values_.data() + k, weights, sums[part].products);
      sums[part].fitting += static_cast<double>(
          std::count_if(weights, weights + PixelList::kBlock, [](float w) { return w > pose::kFits; }));
    }
  });
  Sums all;
  for (const Sums& s : sums) {
    for (int k = 0; k < pose::kProducts; ++k) all.products[k] += s.products[k];
    all.fitting += s.fitting;
  }
  steps.take_products(all.products, all.fitting);
  gain_ = steps.gain(), offset_ = steps.offset();
}

PoseFit PoseRefiner::refine(const SampleImage& image, const PixelList& pixels, const pose::Warp& start,
                            const RefinementPlan& plan) {
  // Grey values relative to one of them keep the digits of a small contrast.
  SampleImage from = image;
  const double origin = level_at(image, pixels, start);
  from.offset -= static_cast<float>(origin);
  pose::FitSteps steps(plan, start, origin, pixels.mean, pixels.count);
  while (steps.begin_step()) {
    if (plan.stop.stop_requested()) throw Cancelled("Template matching was cancelled.");
    if (steps.take_scores(sample_all(from, pixels, steps.warp()))) take_step(pixels, plan.is_near, steps);
  }
  return {steps.result()};
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
Gradients gradients_at(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp, double step,
                       core::ThreadPool& pool) {
  std::vector<float> before(pixels.padded()), inside(pixels.padded());
  const auto difference = [&](double xi, double eta) {
    std::vector<float> after(pixels.padded());
    for (const double side : {-1.0, 1.0}) {
      pose::Warp there = warp;
      there.center_x += side * (there.xx * xi + there.xy * eta);
      there.center_y += side * (there.yx * xi + there.yy * eta);
      std::vector<float>& values = side < 0 ? before : after;
      constexpr std::int64_t kBlocks = 8;  // that one thread takes
      pool.parallel_for(static_cast<std::int64_t>(pixels.padded() / PixelList::kBlock), kBlocks,
                        [&](std::int64_t begin, std::int64_t end, int) {
                          for (std::size_t k = begin * PixelList::kBlock;
                               k < static_cast<std::size_t>(end) * PixelList::kBlock; k += PixelList::kBlock)
                            sample(image, there, pixels, k, values.data() + k, inside.data() + k);
                        });
    }
    const auto scale = static_cast<float>(1 / (2 * step));
    for (std::size_t k = 0; k < after.size(); ++k) after[k] = scale * (after[k] - before[k]);
    return after;
  };
  return {difference(step, 0), difference(0, step)};
}

}  // namespace

/// Weights of the pixels at a fit.
void PoseRefiner::weight_all(const SampleImage& image, const PixelList& pixels, const PoseFit& fit) {
  sample_all(image, pixels, fit.warp);
  gain_ = fit.gain, offset_ = fit.offset + fit.gain * pixels.mean;
  const WeightRule rule{static_cast<float>(gain_), static_cast<float>(offset_),
                        residual_limit(pixels, false)};
  for (std::size_t k = 0; k < pixels.padded(); k += PixelList::kBlock)
    weight(pixels, k, rule, values_.data() + k, inside_.data() + k, weights_.data() + k);
}

double PoseRefiner::gradient_correlation(const SampleImage& image, const PixelList& pixels,
                                         const PoseFit& fit) {
  constexpr double kHalf = 0.5;
  const Gradients around = gradients_at(image, pixels, fit.warp, kHalf, *pool_);
  weight_all(image, pixels, fit);
  double tt = 0, ii = 0, ti = 0;
  for (int k = 0; k < pixels.count; ++k) {
    const double w = weights_[k], gx = around.x[k], gy = around.y[k];
    tt += w * (pixels.tx[k] * pixels.tx[k] + pixels.ty[k] * pixels.ty[k]);
    ii += w * (gx * gx + gy * gy);
    ti += w * (pixels.tx[k] * gx + pixels.ty[k] * gy);
  }
  return tt > 0 && ii > 0 ? ti / std::sqrt(tt * ii) : 0;
}

double PoseRefiner::contrast_share(const SampleImage& image, const PixelList& pixels, const PoseFit& fit) {
  weight_all(image, pixels, fit);
  double inside = 0, fitting = 0;
  for (int k = 0; k < pixels.count; ++k) {
    const double square = static_cast<double>(pixels.t[k]) * pixels.t[k];
    inside += inside_[k] * square;
    if (weights_[k] > pose::kFits) fitting += square;
  }
  return inside > 0 ? fitting / inside : 0;
}

double weight_slope(double weights, double slopes) {
  constexpr double kMost = 2;
  return slopes > 0 ? std::clamp(weights / slopes, 1.0, kMost) : kMost;
}

/// See weight_slope().
double PoseRefiner::slope() const {
  if (limit_ <= 0) return 1;
  double weights = 0, slopes = 0;
  for (std::size_t k = 0; k < weights_.size(); ++k) {
    if (inside_[k] == 0 || weights_[k] == 0) continue;
    weights += weights_[k];
    slopes += pose::biweight_slope(weights_[k]);
  }
  return weight_slope(weights, slopes);
}

/// Some groups of pixels of the last step, which stand for all of a large template, with the image's
/// gradients.
FittedPixels PoseRefiner::fitted(const SampleImage& image, const PixelList& pixels, const pose::Warp& warp,
                                 int stride) const {
  const int whole = stride * FittedPixels::kGroup;
  std::vector<int> indices;
  for (int first = 0; first < pixels.count; first += whole)
    for (int k = first; k < std::min(first + FittedPixels::kGroup, pixels.count); ++k) indices.push_back(k);
  PixelList some;
  some.count = static_cast<int>(indices.size());
  for (auto* array : {&some.xi, &some.eta}) array->resize(whole_blocks(indices.size()));
  FittedPixels fitted;
  fitted.pixels.resize(indices.size());
  const auto gain = static_cast<float>(gain_), offset = static_cast<float>(offset_), one = 1 / gain;
  for (std::size_t n = 0; n < indices.size(); ++n) {
    const int k = indices[n];
    some.xi[n] = pixels.xi[k], some.eta[n] = pixels.eta[k];
    fitted.pixels[n] = {.xi = pixels.xi[k],
                        .eta = pixels.eta[k],
                        .t = pixels.t[k],
                        .tx = pixels.tx[k],
                        .ty = pixels.ty[k],
                        .residual = (values_[k] - offset) * one - pixels.t[k],
                        .weight = weights_[k]};
  }
  constexpr double kStep = 0.25;  // px: differences over longer distances smooth fine textures
  const Gradients gradients = gradients_at(image, some, warp, kStep, *pool_);
  for (std::size_t k = 0; k < fitted.pixels.size(); ++k)
    fitted.pixels[k].ix = gradients.x[k] * one, fitted.pixels[k].iy = gradients.y[k] * one;
  return fitted;
}

void PoseRefiner::with_sigmas(const SampleImage& image, const PixelList& pixels, const RefinementPlan& plan,
                              PoseFit& fit) const {
  add_sigmas(fitted(image, pixels, fit.warp, sigma_stride(pixels, plan)), slope(), pixels, plan, fit);
}

namespace {

int group_count(const PixelList& pixels) {
  return (pixels.count + FittedPixels::kGroup - 1) / FittedPixels::kGroup;
}

}  // namespace

int sigma_stride(const PixelList& pixels, const RefinementPlan& plan) {
  return std::max(1, group_count(pixels) / plan.sigma_groups);
}

void add_sigmas(const FittedPixels& fitted, double slope, const PixelList& pixels, const RefinementPlan& plan,
                PoseFit& fit) {
  const int free = pose::parameters(plan.freedom);
  const int groups = group_count(pixels), stride = sigma_stride(pixels, plan),
            counted = (groups + stride - 1) / stride;
  const auto scatter = scatter_of(fitted, plan.freedom, plan.rim);
  if (!scatter) {
    fit.valid = false;
    return;
  }
  fit.loose = scatter->loose;
  const double share = static_cast<double>(counted) / std::max(1, groups);
  fit.covariance = share * std::pow(slope, 2) * scatter->covariance;
  // Rounding of grey values and of the interpolation is in no residual.
  const double of_rim = kLeastSigma / std::max(1.0, plan.rim);
  for (int i = 0; i < free; ++i) fit.covariance(i, i) += std::pow(i < 2 ? kLeastSigma : of_rim, 2);
  set_sigmas(plan.freedom, plan.rim, std::vector<double>(fit.loose.size(), kLooseSigma), fit);
}

void set_sigmas(Freedom freedom, double rim, const std::vector<double>& loose, PoseFit& fit) {
  PoseScatter::Matrix covariance = fit.covariance;
  for (std::size_t k = 0; k < loose.size(); ++k) {
    PoseScatter::Vector motion = loose[k] * fit.loose[k];
    motion.tail(motion.size() - 2) /= std::max(1.0, rim);
    covariance += motion * motion.transpose();
  }
  const pose::Warp& w = fit.warp;
  const auto variance = [&](double a, double b) {
    return a * a * covariance(0, 0) + 2 * a * b * covariance(0, 1) + b * b * covariance(1, 1);
  };
  fit.sigma_x = std::sqrt(std::max(0.0, variance(w.xx, w.xy)));
  fit.sigma_y = std::sqrt(std::max(0.0, variance(w.yx, w.yy)));
  if (freedom == Freedom::affine) {
    // Terms 2 .. 5 change the matrix; its rotation is (4 - 3) / 2, its scale (2 + 5) / 2.
    fit.sigma_radians = std::sqrt(covariance(3, 3) + covariance(4, 4) - 2 * covariance(3, 4)) / 2;
    fit.sigma_log_scale = std::sqrt(covariance(2, 2) + covariance(5, 5) + 2 * covariance(2, 5)) / 2;
    return;
  }
  if (freedom == Freedom::rotation || freedom == Freedom::similarity)
    fit.sigma_radians = std::sqrt(covariance(2, 2));
  if (freedom == Freedom::similarity) fit.sigma_log_scale = std::sqrt(covariance(3, 3));
  if (freedom == Freedom::scale) fit.sigma_log_scale = std::sqrt(covariance(2, 2));
}

}  // namespace dic::match
