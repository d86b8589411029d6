#include "global/transfer.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace dic::global {
namespace {

constexpr double kOvershoot = 0.01;
constexpr double kLeastNodes = 5;  // nodes per period; fewer do not support second differences

double wave_number(double period) { return 2 * std::numbers::pi / period; }

}  // namespace

/// A subset of order 0 or 1 measures its mean, one of order 2 the least-squares parabola at its centre.
double Transfer::of_subset(double period) const {
  const double k = wave_number(period);
  const int radius = subsets_.size / 2;
  double count = 0, second = 0, fourth = 0, mean = 0, curved = 0;
  for (int i = -radius; i <= radius; ++i) {
    const double weight = window_weight<double>(subsets_.weights, i, subsets_.size);
    const double square = double(i) * i, wave = weight * std::cos(k * i);
    count += weight, second += weight * square, fourth += weight * square * square;
    mean += wave, curved += square * wave;
  }
  if (subsets_.order < 2) return mean / count;
  return (fourth * mean - second * curved) / (count * fourth - second * second);
}

/// The share that the global step expects the subsets to measure.
double Transfer::forward(double period) const {
  const double s = 2 * std::sin(wave_number(period) * step_ / 2) / step_;
  return 1 - curvature_of_mean() * s * s;
}

/// The square of the penalty's second difference for an amplitude of 1.
double Transfer::bending(double period) const {
  return std::pow(2 * std::sin(wave_number(period) * step_ / 2), 4);
}

double Transfer::of_global(double penalty, double period) const {
  const double expected = forward(period), bent = penalty * bending(period);
  const double damped = bent / (expected * expected + bent);
  if (expected == 0) return 0;
  return of_subset(period) / expected * (1 - std::pow(damped, kAlternations));
}

double Transfer::penalty_of(double period) const {
  const double expected = forward(period), left = 1 - kResolved * expected / of_subset(period);
  if (!(expected > 0 && left > 0 && left < 1)) return -1;
  const double damped = std::pow(left, 1.0 / kAlternations);
  return damped * expected * expected / ((1 - damped) * bending(period));
}

double Transfer::least_resolution() const {
  const auto overshoots = [&](double penalty) {
    for (double period = 2.0 * step_; period < 10.0 * subsets_.size; period *= 1.02)
      if (of_global(penalty, period) > 1 + kOvershoot) return true;
    return false;
  };
  double resolution = std::max<double>(subsets_.size, kLeastNodes * step_);
  for (double penalty; (penalty = penalty_of(resolution)) < 0 || overshoots(penalty);) resolution *= 1.02;
  return resolution;
}

}  // namespace dic::global
