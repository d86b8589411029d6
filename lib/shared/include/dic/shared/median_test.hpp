#pragma once

#include <cmath>
#include <dic/shared/field_options.hpp>
#include <dic/shared/host_device.hpp>
#include <limits>
#include <utility>

/// The normalized median test of Westerweel & Scarano (2005) on residuals from a local plane, for CPU and
/// GPU. Single precision is enough: the test looks for tenths of a pixel.
namespace dic::median_test {

/// Marks a missing value.
constexpr float missing = std::numeric_limits<float>::infinity();
/// Residual of a point with too few neighbours.
constexpr float unknown = std::numeric_limits<float>::quiet_NaN();
constexpr int min_neighbours = 3;  // number of neighbours of a corner

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
  values.value[kHigh] = a < b ? b : a;  // compiles to the minimum and maximum instructions of processors
}

template <int kCount, int... kExchange>
DIC_HOST_DEVICE Values<kCount> sorted(Values<kCount> values, std::integer_sequence<int, kExchange...>) {
  using Network = SortingNetwork<kCount>;
  (exchange<Network::exchanges[kExchange].low, Network::exchanges[kExchange].high>(values), ...);
  return values;
}

/// Makes every other missing value negative infinity, so that sorting puts equally many of them first and
/// last (one more last, if their number is odd).
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

/// Median of the values that are not missing. gaps: number of missing ones, less than kCount.
template <int kCount>
DIC_HOST_DEVICE float median(Values<kCount> values, int gaps) {
  if (gaps > 1) balance_gaps(values);
  const auto [v] = sorted(values, std::make_integer_sequence<int, SortingNetwork<kCount>::size>());
  const float even_median = (v[(kCount - 1) / 2] + v[kCount / 2]) / 2;
  const float odd_median = (v[(kCount - 2) / 2] + v[(kCount - 1) / 2]) / 2;
  return gaps % 2 == 0 ? even_median : odd_median;
}

/// Slope between two values that are `distance` nodes apart; missing if one of them is.
DIC_HOST_DEVICE inline float slope_between(float from, float to, float distance, int& gaps) {
  const bool both = from != missing && to != missing;
  gaps += !both;
  return both ? (to - from) / distance : missing;
}

/// Median slope per node along a line through the centre, from the five differences among the neighbours; NaN
/// if there are none. at(along, across): a neighbour. The centre is not used, because a wrong value would
/// change its own expectation.
template <typename At>
DIC_HOST_DEVICE float slope(const At& at) {
  int gaps = 0;
  const Values<5> slopes = {
      slope_between(at(-1, -1), at(0, -1), 1, gaps), slope_between(at(0, -1), at(1, -1), 1, gaps),
      slope_between(at(-1, 1), at(0, 1), 1, gaps), slope_between(at(0, 1), at(1, 1), 1, gaps),
      slope_between(at(-1, 0), at(1, 0), 2, gaps)};
  return gaps == 5 ? unknown : median(slopes, gaps);
}

/// Normalized residual |value - median of the eight neighbours| / (median of their own residuals + floor),
/// after subtracting the local slopes; NaN if there are too few neighbours. at(di, dj): the neighbour at that
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

/// First stage: tests every point against all of its neighbours. Points with too few neighbours are no
/// suspects.
DIC_HOST_DEVICE inline bool is_suspect(float residual, double threshold) { return residual > threshold; }
/// Second stage: tests suspects again, without other suspects as neighbours, because a good point with few
/// neighbours becomes a suspect if one of them is wrong. With too few neighbours left (NaN), it stays a
/// suspect.
DIC_HOST_DEVICE inline bool stays_suspect(float residual, double threshold) {
  return !(residual <= threshold);
}

/// Largest accepted distance, px, from a plane in `fits_side`: the one that the median test allows among
/// exact neighbours.
DIC_HOST_DEVICE inline float side_limit(const OutlierOptions& options) {
  return static_cast<float>(options.threshold * options.floor);
}

/// True if the centre lies on a plane with its five neighbours towards (dx, dy), within `limit`. This holds
/// at the edge of a body, where the neighbours on the other side move differently. False if neighbours are
/// missing.
template <typename At>
DIC_HOST_DEVICE bool fits_side(const At& at, float value, int dx, int dy, float limit) {
  const int px = -dy, py = dx;  // along the edge
  const auto near = [limit](float difference) { return std::fabs(difference) <= limit; };
  if (dx == 0 || dy == 0) {
    const float before = at(-px, -py), after = at(px, py), middle = at(dx, dy);
    const float far_before = at(dx - px, dy - py), far_after = at(dx + px, dy + py);
    return near(before + after - 2 * value) && near(far_before + far_after - 2 * middle) &&
           near(value - middle - before + far_before) && near(value - middle - after + far_after);
  }
  const float before = at(-px, -py), after = at(px, py);
  const float beside_before = at((dx - px) / 2, (dy - py) / 2),
              beside_after = at((dx + px) / 2, (dy + py) / 2);
  return near(value + at(dx, dy) - beside_before - beside_after) &&
         near(before + beside_after - beside_before - value) &&
         near(after + beside_before - beside_after - value);
}

/// True if a suspect fits one of its eight sides.
template <typename AtU, typename AtV>
DIC_HOST_DEVICE bool fits_a_side(const AtU& at_u, const AtV& at_v, float u, float v, float limit) {
  for (int cell = 0; cell < 9; ++cell) {
    const int dx = cell % 3 - 1, dy = cell / 3 - 1;
    if (cell != 4 && fits_side(at_u, u, dx, dy, limit) && fits_side(at_v, v, dx, dy, limit)) return true;
  }
  return false;
}

}  // namespace dic::median_test
