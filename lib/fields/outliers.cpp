#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dic/fields.hpp>
#include <limits>
#include <mutex>
#include <utility>

#include "core/parallel.hpp"

namespace dic {
namespace {

// Missing values are padded with infinity: sorting puts them behind the real ones, without branches.
constexpr float kMissing = std::numeric_limits<float>::infinity();
constexpr float kUnknown = std::numeric_limits<float>::quiet_NaN();
constexpr std::int64_t kRowsPerTask = 8;
constexpr int kMinNeighbours = 3;  // a corner has as many

/// Optimal sorting networks (Knuth, The Art of Computer Programming 3, section 5.3.4).
template <std::size_t N>
constexpr auto kNetwork = std::array<std::pair<int, int>, 0>{};
template <>
constexpr auto kNetwork<5> = std::to_array<std::pair<int, int>>(
    {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1}, {2, 4}, {1, 2}, {3, 4}, {2, 3}});
template <>
constexpr auto kNetwork<8> = std::to_array<std::pair<int, int>>({{0, 2},
                                                                 {1, 3},
                                                                 {4, 6},
                                                                 {5, 7},
                                                                 {0, 4},
                                                                 {1, 5},
                                                                 {2, 6},
                                                                 {3, 7},
                                                                 {0, 1},
                                                                 {2, 3},
                                                                 {4, 5},
                                                                 {6, 7},
                                                                 {2, 4},
                                                                 {3, 5},
                                                                 {1, 4},
                                                                 {3, 6},
                                                                 {1, 2},
                                                                 {3, 4},
                                                                 {5, 6}});

/// Median of the finite ones of N values; `missing` of them are padding.
template <std::size_t N>
float median(std::array<float, N> values, int missing) {
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    const auto exchange = [&values](auto pair) {
      const float a = values[pair.first], b = values[pair.second];
      values[pair.first] = std::min(a, b);
      values[pair.second] = std::max(a, b);
    };
    (exchange(kNetwork<N>[K]), ...);
  }
  (std::make_index_sequence<kNetwork<N>.size()>{});
  const int n = static_cast<int>(N) - missing;
  return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/// One displacement component with a border of one missing node. Single precision will do: the test looks for
/// tenths of a pixel.
class Neighbourhoods {
 public:
  Neighbourhoods(const Grid& grid, const Field& field, const std::vector<double>& component)
      : stride_(grid.nx + 2), values_(static_cast<std::size_t>(stride_) * (grid.ny + 2), kMissing) {
    for (int j = 0; j < grid.ny; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const std::size_t k = static_cast<std::size_t>(j) * grid.nx + i;
        if (grid.inside[k] && field.status[k] == Status::ok)
          values_[at(i, j)] = static_cast<float>(component[k]);
      }
  }

  float value(int i, int j) const { return values_[at(i, j)]; }
  void remove(int i, int j) { values_[at(i, j)] = kMissing; }

  /// |value - median of the neighbours| / (median of their own residuals + floor), all after the local slopes
  /// were taken off; NaN where too few neighbours are there to tell.
  float normalized_residual(int i, int j, float value, float floor) const {
    const float* centre = values_.data() + at(i, j);
    const float slope_x = slope(centre, 1, stride_), slope_y = slope(centre, stride_, 1);
    std::array<float, 8> level;
    int missing = 0, k = 0;
    for (int dj = -1; dj <= 1; ++dj)
      for (int di = -1; di <= 1; ++di) {
        if (di == 0 && dj == 0) continue;
        const float neighbour = centre[dj * stride_ + di];
        missing += neighbour == kMissing;
        level[k++] = neighbour - slope_x * static_cast<float>(di) - slope_y * static_cast<float>(dj);
      }
    if (8 - missing < kMinNeighbours || std::isnan(slope_x + slope_y)) return kUnknown;
    const float expected = median(level, missing);
    for (float& residual : level) residual = std::abs(residual - expected);
    return std::abs(value - expected) / (median(level, missing) + floor);
  }

 private:
  std::size_t at(int i, int j) const { return static_cast<std::size_t>(j + 1) * stride_ + i + 1; }

  /// Median slope per step along `along`, from the five differences among the neighbours; NaN where there is
  /// none. The centre takes no part: a wrong value there would bend its own expectation.
  static float slope(const float* centre, std::ptrdiff_t along, std::ptrdiff_t across) {
    std::array<float, 5> slopes;
    int missing = 0, k = 0;
    const auto add = [&](std::ptrdiff_t from, std::ptrdiff_t to, float distance) {
      const bool both = centre[from] != kMissing && centre[to] != kMissing;
      slopes[k++] = both ? (centre[to] - centre[from]) / distance : kMissing;
      missing += !both;
    };
    for (const std::ptrdiff_t side : {-across, across}) {
      add(side - along, side, 1);
      add(side, side + along, 1);
    }
    add(-along, along, 2);
    return missing == 5 ? kUnknown : median(slopes, missing);
  }

  int stride_;
  std::vector<float> values_;
};

/// A point that failed the first test.
struct Suspect {
  int i, j;
  float u, v;
};

/// Every point against all of its neighbours.
std::vector<Suspect> find_suspects(const Grid& grid, const Neighbourhoods& u, const Neighbourhoods& v,
                                   const OutlierOptions& options, int threads) {
  const float floor = static_cast<float>(options.floor);
  std::vector<Suspect> suspects;
  std::mutex mutex;
  ThreadPool pool(threads);
  pool.parallel_for(grid.ny, kRowsPerTask, [&](std::int64_t begin, std::int64_t end, int) {
    for (int j = static_cast<int>(begin); j < end; ++j)
      for (int i = 0; i < grid.nx; ++i) {
        const Suspect point{i, j, u.value(i, j), v.value(i, j)};
        if (point.u == kMissing) continue;
        const float residual = std::hypot(u.normalized_residual(i, j, point.u, floor),
                                          v.normalized_residual(i, j, point.v, floor));
        if (!(residual > options.threshold)) continue;
        const std::lock_guard lock(mutex);
        suspects.push_back(point);
      }
  });
  return suspects;
}

}  // namespace

std::int64_t mark_outliers(const Grid& grid, Field& field, const OutlierOptions& options, int threads) {
  if (!options.enabled) return 0;
  Neighbourhoods u(grid, field, field.u), v(grid, field, field.v);
  const std::vector<Suspect> suspects = find_suspects(grid, u, v, options, threads);

  // A good point with few neighbours falls into suspicion when one of them is wrong: hear it again without
  // the other suspects.
  for (const Suspect& point : suspects) u.remove(point.i, point.j), v.remove(point.i, point.j);
  const float floor = static_cast<float>(options.floor);
  std::int64_t marked = 0;
  for (const auto& [i, j, point_u, point_v] : suspects) {
    const float residual =
        std::hypot(u.normalized_residual(i, j, point_u, floor), v.normalized_residual(i, j, point_v, floor));
    if (residual <= options.threshold) continue;
    field.status[static_cast<std::size_t>(j) * grid.nx + i] = Status::outlier;
    ++marked;
  }
  return marked;
}

}  // namespace dic
