#include "stereo/epipolar_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace dic::stereo {
namespace {

/// The median; NaN if there are no values. The values are put into another order.
float median_of(std::vector<float>& values) {
  if (values.empty()) return std::numeric_limits<float>::quiet_NaN();
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

CommonDistance common_distance(std::span<const EpipolarSample> samples) {
  std::vector<double> offsets(samples.size());
  std::vector<float> sizes(samples.size());
  const auto median_of_sizes = [&](const auto& size) {
    for (std::size_t n = 0; n < samples.size(); ++n) sizes[n] = static_cast<float>(size(n));
    return median_of(sizes);
  };
  CommonDistance common{};
  const auto find_offsets = [&] {
    std::ranges::transform(samples, offsets.begin(), [&](const EpipolarSample& sample) {
      return sample.px - common.at(sample.x, sample.y);
    });
  };
  common.coefficients[0] = double(median_of_sizes([&](std::size_t n) { return samples[n].px; }));
  find_offsets();
  const bool is_polynomial = samples.size() >= CommonFit::kFewPoints;
  bool is_settled = !is_polynomial;
  for (int round = 0; round < CommonFit::kRounds && !is_settled; ++round) {
    const double limit =
        CommonFit::limit(median_of_sizes([&](std::size_t n) { return std::abs(offsets[n]); }));
    CommonSums sums = CommonSums::zero();
    for (std::size_t n = 0; n < samples.size(); ++n)
      sums.add(samples[n], CommonFit::weight(offsets[n], limit));
    is_settled = CommonFit::settle(common, sums.coefficients(), limit);
    find_offsets();
  }
  common.scale = CommonFit::scale(
      median_of_sizes([&](std::size_t n) { return std::abs(offsets[n] / samples[n].sigma); }));
  return common;
}

EpipolarSummary mark_contradictions(const EpipolarJob& job, core::ThreadPool& pool) {
  const std::int64_t nodes = job.grid.nodes();
  const std::vector<std::int64_t> known =
      core::indices_where(pool, nodes, [&](std::int64_t k) { return job.has_distance(k); });
  const std::int64_t count = std::ssize(known);
  std::vector<EpipolarSample> samples;
  for (int n = 0; n < std::min<std::int64_t>(count, kMostSamples); ++n)
    samples.push_back(job.sample(known[count <= kMostSamples ? n : sample_number(n, count)]));
  const CommonDistance common = common_distance(samples);
  core::for_each_index(pool, nodes, [&](std::int64_t k) { FindOffset{job, &common}(k); });
  core::for_each_index(pool, nodes, [&](std::int64_t k) { MarkContradiction{job, &common}(k); });
  std::vector<float> sizes(known.size()), offsets(known.size());
  core::for_each_index(pool, count, [&](std::int64_t n) {
    sizes[n] = std::abs(job.px[known[n]]), offsets[n] = std::abs(job.offset[known[n]]);
  });
  return {double(median_of(sizes)), kFromMedian * double(median_of(offsets))};
}

}  // namespace dic::stereo
