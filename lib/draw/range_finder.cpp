#include <algorithm>
#include <cmath>
#include <dic/draw.hpp>
#include <limits>

namespace dic {
namespace {

constexpr std::size_t kLargestSample = 1 << 18;

}  // namespace

void RangeFinder::add(std::span<const float> values) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float least = infinity, most = -infinity;  // local, to stay in registers: this loop sees every value
  std::size_t skipped = skipped_;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    least = std::min(least, value);
    most = std::max(most, value);
    if (++skipped < stride_) continue;
    skipped = 0;
    sample_.push_back(value);
    if (sample_.size() == kLargestSample) halve_sample();
  }
  skipped_ = skipped;
  if (least > most) return;
  if (!extremes_) extremes_ = {least, most};
  extremes_->min = std::min<double>(extremes_->min, least);
  extremes_->max = std::max<double>(extremes_->max, most);
}

void RangeFinder::halve_sample() {
  for (std::size_t k = 0; k < sample_.size() / 2; ++k) sample_[k] = sample_[2 * k + 1];
  sample_.resize(sample_.size() / 2);
  stride_ *= 2;
}

std::optional<ValueRange> RangeFinder::range() const {
  if (!extremes_) return {};
  ValueRange range = *extremes_;
  if (!sample_.empty()) {
    std::vector<float> sorted = sample_;
    const auto at = [&](double fraction) {
      const auto nth = sorted.begin() + std::lround(fraction * static_cast<double>(sorted.size() - 1));
      std::nth_element(sorted.begin(), nth, sorted.end());
      return static_cast<double>(*nth);
    };
    range = {at(0.005), at(0.995)};
  }
  // The range is made wide enough for the labels to differ.
  const double least = std::max(2e-6, 1e-3 * std::max(std::abs(range.min), std::abs(range.max)));
  if (range.max - range.min < least) {
    const double middle = (range.min + range.max) / 2;
    range = {middle - least / 2, middle + least / 2};
  }
  return range;
}

std::optional<ValueRange> RangeFinder::extremes() const { return extremes_; }

}  // namespace dic
