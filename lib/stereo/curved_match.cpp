#include "stereo/curved_match.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <dic/shared/strain_sigma.hpp>
#include <utility>

namespace dic::stereo {
namespace {

/// Sides of the windows of nodes, as reaches in halves of subsets: the polynomial must reach further than a
/// subset for its second derivatives to add little noise. The wide one adds nearly none, the narrow one
/// follows surfaces whose curvature changes.
constexpr double kNarrow = 1.5, kWide = 3;
int window_of(double reach, const MeasuredSubsets& subsets, int step) {
  const int half_subset = subsets.size / 2;
  const int half = static_cast<int>(std::ceil(reach * half_subset / step));
  return 2 * std::clamp(half, 2, kMostBendWindow / 2) + 1;
}

/// Memory of the steps for a field.
struct Memory {
  explicit Memory(std::size_t nodes)
      : usable(nodes),
        row_is_complete(nodes),
        rows(nodes),
        narrow(nodes),
        wide(nodes),
        sources{std::vector<std::int32_t>(nodes), std::vector<std::int32_t>(nodes),
                std::vector<std::int32_t>(nodes)},
        biases{std::vector<double>(nodes), std::vector<double>(nodes)},
        floats{std::vector<float>(nodes), std::vector<float>(nodes), std::vector<float>(nodes),
               std::vector<float>(nodes)},
        bent(nodes) {}

  void serve(BendJob& job) {
    job.usable = usable.data(), job.row_is_complete = row_is_complete.data();
    job.rows = rows.data(), job.narrow_bends = narrow.data(), job.wide_bends = wide.data();
    job.narrow_source = sources[0].data(), job.wide_source = sources[1].data();
    job.other_narrow = job.other_wide = sources[2].data();
    job.bias_u = biases[0].data(), job.bias_v = biases[1].data();
    job.difference_u = floats[0].data(), job.difference_v = floats[1].data();
    job.row_squares = floats[2].data(), job.row_counts = floats[3].data();
    job.bent = bent.data();
  }

  std::vector<std::uint8_t> usable, row_is_complete;
  std::vector<RowSums> rows;
  std::vector<Bends> narrow, wide;
  std::vector<std::int32_t> sources[3];
  std::vector<double> biases[2];
  std::vector<float> floats[4];
  std::vector<std::uint8_t> bent;
};

class Steps {
 public:
  Steps(BendJob job, core::ThreadPool& pool) : job_(job), pool_(pool) {}

  template <typename Step>
  void run(const Step& step) {
    core::for_each_index(pool_, job_.grid.nodes(), [&](std::int64_t k) { step(k); });
  }
  void spread(const std::uint8_t* takes, int most_steps, std::int32_t* source) {
    std::int32_t *from = source, *to = job_.other_narrow;
    for (int step = 0; step < most_steps; ++step, std::swap(from, to)) {
      std::atomic<bool> found = false;
      const SpreadBends spread{job_.grid, takes, from, to};
      run([&](std::int64_t k) {
        if (spread(k)) found.store(true, std::memory_order_relaxed);
      });
      if (!found) break;  // both are equal
    }
    if (from != source) std::copy_n(from, job_.grid.nodes(), source);
  }

 private:
  BendJob job_;
  core::ThreadPool& pool_;
};

}  // namespace

NodeGrid node_grid_of(const Grid& grid) { return {grid.nx, grid.ny, grid.x0, grid.y0, grid.step}; }

BendFilter::BendFilter(const MeasuredSubsets& subsets, int step)
    : narrow(window_of(kNarrow, subsets, step)), wide(window_of(kWide, subsets, step)) {
  // The bias for even texture: a mean over the subset.
  const double factor = (double(subsets.size) * subsets.size - 1) / (24.0 * step * step);
  const strain::ErrorCorrelation correlation(subsets, step, 3);
  // Weights of the nodes of a window in the correction, placed in the middle of the wide one.
  const auto correction = [&](int window) {
    const int half = window / 2, margin = (wide - window) / 2;
    const double n = window, mean_square = (n * n - 1) / 12;
    double fourths = 0;  // sum of the squares of i^2 - mean_square
    for (int i = -half; i <= half; ++i) fourths += std::pow(double(i) * i - mean_square, 2);
    std::vector<double> weights(static_cast<std::size_t>(wide) * wide);
    for (int j = -half; j <= half; ++j)
      for (int i = -half; i <= half; ++i)
        weights[static_cast<std::size_t>(j + half + margin) * wide + i + half + margin] =
            -factor * 2 * (double(i) * i + double(j) * j - 2 * mean_square) / (n * fourths);
    return weights;
  };
  const auto variance = [&](const std::vector<double>& weights) {
    const int reach = std::min((subsets.size - 1) / step, wide - 1);
    double sum = 0;
    for (int k = 0; k < wide * wide; ++k)
      for (int y = std::max(k / wide - reach, 0); y <= std::min(k / wide + reach, wide - 1); ++y)
        for (int x = std::max(k % wide - reach, 0); x <= std::min(k % wide + reach, wide - 1); ++x)
          sum += weights[k] * weights[static_cast<std::size_t>(y) * wide + x] *
                 correlation.at(std::abs(x - k % wide), std::abs(y - k / wide));
    return sum;
  };
  std::vector<double> of_wide = correction(wide), of_narrow = correction(narrow), difference = of_wide;
  for (std::size_t k = 0; k < difference.size(); ++k) difference[k] -= of_narrow[k];
  difference_variance = variance(difference);
  of_wide[of_wide.size() / 2] += 1, of_narrow[of_narrow.size() / 2] += 1;
  wide_variance = variance(of_wide), narrow_variance = variance(of_narrow);
}

BendJob bend_job_of(const Grid& grid, const BendFilter& filter, int order) {
  BendJob job{};
  job.grid = node_grid_of(grid);
  job.narrow = filter.narrow, job.wide = filter.wide, job.match_order = order;
  job.noise = {filter.narrow_variance, filter.wide_variance, filter.difference_variance};
  return job;
}

NeighbourSummary subtract_bends(Field& field, const MeasuredSubsets& subsets, const BendFilter& filter,
                                const std::vector<BendResponse>& responses, core::ThreadPool& pool) {
  const auto nodes = static_cast<std::size_t>(field.grid().nodes());
  NeighbourSummary summary{LocalMaps(4 * nodes), std::vector<std::uint8_t>(nodes)};
  BendJob job = bend_job_of(field.grid(), filter, subsets.order);
  Memory memory(nodes);
  memory.serve(job);
  job.u = field.u.data(), job.v = field.v.data();
  job.sigma_u = field.sigma_u.data(), job.sigma_v = field.sigma_v.data();
  job.status = field.status.data();
  job.order = field.order.empty() ? nullptr : field.order.data();
  job.responses = responses.empty() ? nullptr : responses.front().data();
  job.maps = summary.maps.data(), job.known = summary.is_known.data();

  Steps steps(job, pool);
  steps.run(FindUsable{job});
  steps.run(SumRows{job, job.narrow});
  steps.run(FitComplete{job, true});
  steps.run(FitPartial{job});
  const auto count = static_cast<std::int64_t>(nodes);
  if (core::count_where(pool, count, [&](std::int64_t k) { return job.is_corrected(k); }) == 0)
    return summary;
  steps.spread(job.known, job.narrow, job.narrow_source);
  steps.run(SumRows{job, job.wide});
  steps.run(FitComplete{job, false});
  steps.spread(job.usable, job.wide, job.wide_source);
  steps.run(FindBias{job});
  steps.run(SumDifferences{job});
  steps.run(SubtractBias{job});
  const auto measured = core::count_where(pool, count, [&](std::int64_t k) { return job.usable[k] != 0; }),
             bent = core::count_where(pool, count, [&](std::int64_t k) { return job.bent[k] != 0; });
  summary.bent = measured > 0 ? static_cast<double>(bent) / static_cast<double>(measured) : 0;
  return summary;
}

}  // namespace dic::stereo
