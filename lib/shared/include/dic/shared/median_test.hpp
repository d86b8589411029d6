#pragma once

#include <cmath>
#include <dic/shared/host_device.hpp>
#include <limits>
#include <utility>

/// The normalized median test of Westerweel & Scarano (2005) on residuals from a local plane: what CPU and
/// CUDA backend share. Single precision will do: the test looks for tenths of a pixel.
namespace dic::median_test {

/// A value that is not there.
constexpr float missing = std::numeric_limits<float>::infinity();
/// The residual of a point with too few neighbours to tell.
constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
constexpr int min_neighbours = 3;  // a corner has as many

template <int kCount>
struct Values {
  float value[kCount];
};

struct Exchange {
  int low, high;
};
/// Optimal sorting networks (Knuth, The Art of Computer Programming 3, section 5.3.4).
template <int kCount>
struct SortingNetwork;
template <>
struct SortingNetwork<5> {
  static constexpr int size = 9;
  static constexpr Exchange exchanges[size] = {{0, 3}, {1, 4}, {0, 2}, {1, 3}, {0, 1},
                                               {2, 4}, {1, 2}, {3, 4}, {2, 3}};
};
template <>
struct SortingNetwork<8> {
  static constexpr int size = 19;
  static constexpr Exchange exchanges[size] = {{0, 2}, {1, 3}, {4, 6}, {5, 7}, {0, 4}, {1, 5}, {2, 6},
                                               {3, 7}, {0, 1}, {2, 3}, {4, 5}, {6, 7}, {2, 4}, {3, 5},
                                               {1, 4}, {3, 6}, {1, 2}, {3, 4}, {5, 6}};
};

template <int kLow, int kHigh, int kCount>
DIC_HOST_DEVICE void exchange(Values<kCount>& values) {
  const float a = values.value[kLow], b = values.value[kHigh];
  values.value[kLow] = b < a ? b : a;
  values.value[kHigh] = a < b ? b : a;  // as processors define their minimum and maximum
}

template <int kCount, int... kExchange>
DIC_HOST_DEVICE Values<kCount> sorted(Values<kCount> values, std::integer_sequence<int, kExchange...>) {
  using Network = SortingNetwork<kCount>;
  (exchange<Network::exchanges[kExchange].low, Network::exchanges[kExchange].high>(values), ...);
  return values;
}

/// Makes every other missing value negative, so that sorting puts as many before the rest as behind it (one
/// less of an odd number).
template <int kCount>
DIC_HOST_DEVICE void balance_gaps(Values<kCount>& values) {
  float gap = missing;
  DIC_UNROLL
  for (int k = 0; k < kCount; ++k)
    if (values.value[k] == missing) {
      values.value[k] = gap;
      gap = -gap;
    }
}

/// Median of the values that are not missing; `gaps` are, but not all.
template <int kCount>
DIC_HOST_DEVICE float median(Values<kCount> values, int gaps) {
  if (gaps > 1) balance_gaps(values);
  const auto [v] = sorted(values, std::make_integer_sequence<int, SortingNetwork<kCount>::size>());
  const float of_even = (v[(kCount - 1) / 2] + v[kCount / 2]) / 2;
  const float of_odd = (v[(kCount - 2) / 2] + v[(kCount - 1) / 2]) / 2;
  return gaps % 2 == 0 ? of_even : of_odd;
}

/// A difference of two values over `distance` nodes; missing where one of them is.
DIC_HOST_DEVICE inline float slope_between(float from, float to, float distance, int& gaps) {
  const bool both = from != missing && to != missing;
  gaps += !both;
  return both ? (to - from) / distance : missing;
}

/// Median slope per node along a line through the centre, from the five differences among the neighbours; NaN
/// where there is none. at(along, across): a neighbour. The centre takes no part: a wrong value there would
/// bend its own expectation.
template <typename At>
DIC_HOST_DEVICE float slope(const At& at) {
  int gaps = 0;
  const Values<5> slopes = {
      slope_between(at(-1, -1), at(0, -1), 1, gaps), slope_between(at(0, -1), at(1, -1), 1, gaps),
      slope_between(at(-1, 1), at(0, 1), 1, gaps), slope_between(at(0, 1), at(1, 1), 1, gaps),
      slope_between(at(-1, 0), at(1, 0), 2, gaps)};
  return gaps == 5 ? unknown : median(slopes, gaps);
}

/// |value - median of the eight neighbours| / (median of their own residuals + floor), all after the local
/// slopes were taken off; NaN where too few neighbours are there to tell. at(di, dj): the neighbour at that
/// offset, or `missing`.
template <typename At>
DIC_HOST_DEVICE float normalized_residual(const At& at, float value, float floor) {
  const float slope_x = slope([&](int along, int across) { return at(along, across); });
  const float slope_y = slope([&](int along, int across) { return at(across, along); });
  Values<8> level;
  int gaps = 0;
  DIC_UNROLL
  for (int k = 0; k < 8; ++k) {
    const int cell = k < 4 ? k : k + 1, di = cell % 3 - 1, dj = cell / 3 - 1;
    const float neighbour = at(di, dj);
    gaps += neighbour == missing;
    level.value[k] = neighbour - slope_x * static_cast<float>(di) - slope_y * static_cast<float>(dj);
  }
  if (8 - gaps < min_neighbours || std::isnan(slope_x + slope_y)) return unknown;
  const float expected = median(level, gaps);
  DIC_UNROLL
  for (int k = 0; k < 8; ++k) level.value[k] = std::fabs(level.value[k] - expected);
  return std::fabs(value - expected) / (median(level, gaps) + floor);
}

/// Normalized residual of a displacement (u, v).
template <typename AtU, typename AtV>
DIC_HOST_DEVICE float normalized_residual(const AtU& at_u, const AtV& at_v, float u, float v, float floor) {
  return std::hypot(normalized_residual(at_u, u, floor), normalized_residual(at_v, v, floor));
}

/// First stage: every point against all of its neighbours. Points with too few of them are not judged.
DIC_HOST_DEVICE inline bool is_suspect(float residual, double threshold) { return residual > threshold; }
/// Second stage: a good point with few neighbours falls into suspicion when one of them is wrong, so suspects
/// are heard again without the other suspects. Where these leave too few, the suspicion stands.
DIC_HOST_DEVICE inline bool stays_suspect(float residual, double threshold) {
  return !(residual <= threshold);
}

}  // namespace dic::median_test
