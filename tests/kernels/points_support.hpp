#pragma once

#include <dic/kernels/follow_peaks.hpp>
#include <dic/kernels/points.hpp>
#include <functional>

#include "kernels/points_state.hpp"
#include "support/gpu_test.hpp"

namespace dic::test {

using kernels::RefineTask;
using kernels::RelativeShape;
using kernels::Stream;
using kernels::TrackedPoint;

using List = std::vector<std::int32_t>;

constexpr PointsCase cases[] = {
    {1, 1, false, false}, {1, 1}, {1, 9}, {17, 1}, {2, 2}, {31, 33}, {31, 33, false, false}, {310, 240},
};

/// Runs `check` on every case.
inline void on_all(const std::function<void(PointsState&, const DevicePoints&, const Stream&)>& check) {
  unsigned seed = 1;
  for (const PointsCase& c : cases) {
    SCOPED_TRACE(testing::Message() << c);
    const Stream stream;
    PointsState state(c, seed++);
    check(state, DevicePoints(state, stream), stream);
    if (testing::Test::HasFatalFailure()) return;
  }
}

inline double value_at(std::int32_t whole, const float* c, double dx, double dy) {
  return whole + (double{c[0]} + c[1] * dx + c[2] * dy + c[3] * dx * dx + c[4] * dx * dy + c[5] * dy * dy);
}

inline void expect_continued(const float* got, std::int32_t got_whole, const float* from, std::int32_t whole,
                             double dx, double dy) {
  constexpr double tolerance = 1e-6;
  ASSERT_LE(std::abs(got[0]), 0.5 + tolerance);
  ASSERT_NEAR(got_whole + double{got[0]}, value_at(whole, from, dx, dy), tolerance);
  ASSERT_NEAR(got[1], from[1] + 2.0 * from[3] * dx + from[4] * dy, tolerance);
  ASSERT_NEAR(got[2], from[2] + from[4] * dx + 2.0 * from[5] * dy, tolerance);
  for (int k = 3; k < 6; ++k) ASSERT_FLOAT_EQ(got[k], from[k]);
}

/// Expects (u, v, shape) to be the shape of `from`, continued from point a to point b.
inline void expect_start(const PointsState& s, std::int32_t u, std::int32_t v, const RelativeShape& shape,
                         int a, int b) {
  const TrackedPoint& from = s.tracked[a];
  const double dx = s.x[b] - s.x[a], dy = s.y[b] - s.y[a];
  expect_continued(shape.u, u, from.result.shape.u, from.u, dx, dy);
  expect_continued(shape.v, v, from.result.shape.v, from.v, dx, dy);
}

/// Efforts of all kinds, by point.
inline std::vector<track::Effort> some_efforts(PointsState& s) {
  std::vector<track::Effort> efforts(static_cast<std::size_t>(s.count()));
  for (track::Effort& effort : efforts) effort = static_cast<track::Effort>(s.integer(0, 2));
  return efforts;
}

inline bool trackable(const PointsState& s, int i) { return s.subsets[i].status == Status::ok; }
inline bool measured(const PointsState& s, int i) { return s.tracked[i].result.status == Status::ok; }
inline float zncc(const PointsState& s, int i) { return s.tracked[i].result.zncc; }

inline int naive_best_neighbour(const PointsState& s, int i) {
  int best = -1;
  for (const int n : s.neighbours(i))
    if (measured(s, n) && (best < 0 || zncc(s, n) > zncc(s, best))) best = n;
  return best;
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

using Points = GpuTest;

inline std::vector<RefineTask> sorted(const DeviceArray<RefineTask>& tasks,
                                      const DeviceArray<std::int32_t>& count, const Stream& stream) {
  auto all = tasks.values(stream);
  const std::int32_t n = count.value(stream);
  EXPECT_TRUE(n >= 0 && n <= std::ssize(all)) << n;
  all.resize(std::clamp<std::ptrdiff_t>(n, 0, std::ssize(all)));
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.point < b.point; });
  return all;
}

}  // namespace dic::test
