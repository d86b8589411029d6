#include <algorithm>
#include <cmath>
#include <dic/kernels/follow_peaks.hpp>
#include <dic/kernels/points.hpp>
#include <dic/shared/trust_rules.hpp>
#include <limits>

#include "kernels/points_state.hpp"
#include "kernels/points_support.hpp"
#include "support/gpu_test.hpp"

// Tests the recovery of lost points from their neighbours, on one GPU and on several.
namespace dic::test {
namespace {

using kernels::GridPoints;
using kernels::PointStart;
using kernels::RefineResult;
using kernels::RefineTask;
using kernels::Stream;
using kernels::TrackedPoint;

bool naive_agree(const PointsState& s, int a, int b) {
  if (!measured(s, a) || !measured(s, b)) return false;
  const TrackedPoint &p = s.tracked[a], &q = s.tracked[b];
  const double dx = s.x[b] - s.x[a], dy = s.y[b] - s.y[a];
  return std::hypot(value_at(p.u, p.result.shape.u, dx, dy) - (q.u + double{q.result.shape.u[0]}),
                    value_at(p.v, p.result.shape.v, dx, dy) - (q.v + double{q.result.shape.v[0]})) <= 2;
}

RefineTask naive_task(const PointsState& s, int i, int order) {
  RefineTask task{i, s.starts[i].u, s.starts[i].v, s.starts[i].shape};
  for (int k = order == 0 ? 1 : order == 1 ? 3 : 6; k < 6; ++k) task.start.u[k] = task.start.v[k] = 0;
  return task;
}

TEST_F(Points, BeginUnrefined) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.starts, stream);
    for (const int order : {0, 1, 2}) {
      const DeviceArray<TrackedPoint> tracked(s.count(), stream);
      const DeviceArray<RefineTask> tasks(s.count(), stream);
      const DeviceArray<std::int32_t> count(1, stream);
      kernels::launch_initial_tasks(device.points, starts.data(), 0.4f, order, tracked.data(),
                                    {tasks.data(), count.data()}, stream.handle());
      std::vector<TrackedPoint> want(s.count());
      std::vector<RefineTask> want_tasks(s.count());
      for (int i = 0; i < s.count(); ++i) {
        want[i].result.status = trackable(s, i) ? Status::low_correlation : s.subsets[i].status;
        want[i].result.zncc = std::max(0.0f, s.starts[i].score);
        const bool wanted = trackable(s, i) && s.starts[i].score >= 0.4f;
        want_tasks[i] =
            wanted ? naive_task(s, i, order) : RefineTask{.point = kernels::no_point, .start = {}};
      }
      EXPECT_TRUE(same_bytes(tracked.values(stream), want));
      EXPECT_TRUE(same_bytes(tasks.values(stream), want_tasks)) << "order " << order;
      EXPECT_EQ(count.value(stream), s.count());
    }
  });
}

/// True if the first measured points within 12 nodes to all sides, at least one of them towards the middle of
/// the image, predict that a pixel of the subset is more than 2 px beyond the edge of the image.
bool naive_has_left(const PointsState& s, int i) {
  const int row = s.node_of[i] / s.nx, column = s.node_of[i] % s.nx;
  const kernels::PreparedSubset& subset = s.subsets[i];
  const int middle_x = s.x[i] < 0.5 * s.width ? 1 : -1, middle_y = s.y[i] < 0.5 * s.height ? 1 : -1;
  int leaving = 0, staying = 0;
  for (int dy = -1; dy <= 1; ++dy)
    for (int dx = -1; dx <= 1; ++dx)
      for (int k = 1; k <= 12 && (dx != 0 || dy != 0); ++k) {
        const int x = column + k * dx, y = row + k * dy;
        if (x < 0 || y < 0 || x >= s.nx || y >= s.ny) break;
        const int n = s.point_at[y * s.nx + x];
        if (n < 0 || !measured(s, n)) continue;
        const TrackedPoint& from = s.tracked[n];
        const auto at = [&](std::int32_t whole, const float* c) {
          return whole + (double{c[0]} + c[1] * (s.x[i] - s.x[n]) + c[2] * (s.y[i] - s.y[n]));
        };
        const double u = at(from.u, from.result.shape.u), v = at(from.v, from.result.shape.v);
        const bool leaves = s.x[i] + subset.left + u < -2.5 ||
                            s.x[i] + subset.right + u > s.width - 1 + 2.5 || s.y[i] + subset.top + v < -2.5 ||
                            s.y[i] + subset.bottom + v > s.height - 1 + 2.5;
        staying += !leaves;
        leaving += leaves && dx != -middle_x && dy != -middle_y;
        break;
      }
  return leaving > 0 && staying == 0;
}

TEST_F(Points, SelectARungOfStarts) {
  constexpr float any = std::numeric_limits<float>::infinity();
  int left_in_all = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    for (TrackedPoint& point : s.tracked)
      if (point.result.status != Status::ok && s.chance(0.3)) point.result.status = Status::flat;
    const DeviceArray<PointStart> starts(s.starts, stream);
    const std::vector<track::Effort> efforts = some_efforts(s);
    const DeviceArray<track::Effort> device_efforts(efforts, stream);
    GridPoints points = device.points;
    points.efforts = device_efforts.data();
    for (const kernels::ScoreRange scores :
         {kernels::ScoreRange{0.3f, 0.7f}, kernels::ScoreRange{-any, any, true}})
      for (const int order : {0, 1, 2}) {
        const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
        const DeviceArray<RefineTask> tasks(s.count(), stream);
        const DeviceArray<std::int32_t> count(1, stream);
        kernels::launch_tasks_from_starts(points, tracked.data(), starts.data(), scores, order,
                                          {tasks.data(), count.data()}, stream.handle());
        std::vector<RefineTask> want;
        std::vector<TrackedPoint> want_tracked = s.tracked;
        for (int i = 0; i < s.count(); ++i) {
          const float score = s.starts[i].score;
          if (measured(s, i) || s.tracked[i].result.status == Status::flat || !trackable(s, i)) continue;
          if (scores.sought_only && efforts[i] != track::Effort::search) continue;
          if (!scores.sought_only && naive_has_left(s, i)) {
            want_tracked[i].result.status = Status::out_of_image;
            ++left_in_all;
          } else if (score >= scores.least && score < scores.below) {
            want.push_back(naive_task(s, i, order));
          }
        }
        EXPECT_TRUE(same_bytes(sorted(tasks, count, stream), want)) << "order " << order;
        EXPECT_TRUE(same_bytes(tracked.values(stream), want_tracked));
        kernels::launch_tasks_from_starts(points, tracked.data(), starts.data(), scores, order,
                                          {nullptr, count.data()}, stream.handle());
        EXPECT_EQ(count.value(stream), std::ssize(want)) << "order " << order;
      }
  });
  EXPECT_GT(left_in_all, 100);
}

TEST_F(Points, StartsRefinedEarlyComeBackIntoTheirList) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const DeviceArray<PointStart> starts(s.starts, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    for (const int most : {s.count(), 7, 0}) {
      const DeviceArray<RefineTask> early_tasks(std::max(most, 1), stream);
      std::vector<RefineResult> known(std::max(most, 1));
      for (int k = 0; k < std::ssize(known); ++k) known[k].zncc = static_cast<float>(k + 1);
      const DeviceArray<RefineResult> early_results(known, stream);
      const DeviceArray<std::int32_t> early_count(1, stream), of_point(s.count(), stream);
      const kernels::EarlyTasks early{early_tasks.data(), early_results.data(), early_count.data(),
                                      of_point.data(), most};
      kernels::launch_early_tasks(device.points, tracked.data(), starts.data(), {0.3f, 0.8f}, 1, early,
                                  stream.handle());
      const DeviceArray<RefineTask> tasks(s.count(), stream);
      const DeviceArray<std::int32_t> count(1, stream);
      const kernels::TaskList list{tasks.data(), count.data()};
      kernels::launch_tasks_from_starts(device.points, tracked.data(), starts.data(), {0.3f, 0.7f}, 1, list,
                                        stream.handle());
      const std::vector<RefineTask> want = tasks.values(stream);
      const int n = count.value(stream);
      std::vector<RefineResult> unknown(s.count());
      const DeviceArray<RefineResult> results(unknown, stream);
      kernels::launch_leave_out_early(list, s.count(), early, stream.handle());
      const std::vector<RefineTask> left = tasks.values(stream);
      kernels::launch_put_back_early(list, s.count(), results.data(), early, stream.handle());
      const std::vector<RefineTask> got = tasks.values(stream), of_early = early_tasks.values(stream);
      const std::vector<RefineResult> got_results = results.values(stream);
      const List numbers = of_point.values(stream);
      int refined_early = 0;
      for (int k = 0; k < n; ++k) {
        const int number = numbers[want[k].point];
        refined_early += number >= 0;
        ASSERT_TRUE(same_bytes<RefineTask>({got[k]}, {want[k]}));
        ASSERT_EQ(left[k].point, number < 0 ? want[k].point : kernels::no_point);
        ASSERT_EQ(got_results[k].zncc, number < 0 ? 0 : number + 1);
        if (number >= 0) {
          ASSERT_TRUE(same_bytes<RefineTask>({of_early[number]}, {want[k]}));
        }
      }
      ASSERT_LE(early_count.value(stream), most);
      ASSERT_LE(refined_early, most);
      if (most == s.count()) {
        ASSERT_EQ(refined_early, n);
      }
    }
  });
}

/// The lower quartile of the residuals of certain points, to one part in eight, as their classes tell it; 0
/// if there are too few.
float naive_normal_residual(const PointsState& s, std::int64_t large) {
  std::vector<float> residuals;
  std::int64_t points = 0;
  for (int i = 0; i < s.count(); ++i) {
    points += trackable(s, i);
    if (measured(s, i) && zncc(s, i) >= track::kCertain) residuals.push_back(s.tracked[i].result.residual_sd);
  }
  if (std::ssize(residuals) < large || 4 * std::ssize(residuals) < points) return 0;
  std::ranges::sort(residuals);
  return track::ValueClasses::end(track::ValueClasses::of(residuals[residuals.size() / 4]));
}

TEST_F(Points, GiveUpMereNoise) {
  on_all([](PointsState& s, const DevicePoints&, const Stream& stream) {
    for (int i = 0; i < s.count(); ++i) {
      s.tracked[i].result.residual_sd = static_cast<float>(s.uniform(2, 6));
      if (measured(s, i) && s.chance(0.7)) s.tracked[i].result.zncc = 0.95f;
      s.subsets[i].count = 441;
      s.subsets[i].fitted = 8;
      s.subsets[i].energy = static_cast<float>(433 * std::pow(s.chance(0.5) ? s.uniform(0.5, 6) : 30.0, 2));
    }
    const DevicePoints device(s, stream);
    std::vector<std::uint8_t> fresh(s.count(), 1);
    for (const std::int64_t large : {std::int64_t{1}, std::int64_t{s.count()} + 1}) {
      const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
      const DeviceArray<std::uint8_t> device_fresh(fresh, stream);
      const DeviceArray<std::int32_t> counts(kernels::NoiseCounts::kCount, stream);
      kernels::launch_count_certain(device.points, tracked.data(), counts.data(), stream.handle());
      kernels::launch_give_up_noise(device.points, counts.data(), large, tracked.data(), device_fresh.data(),
                                    stream.handle());
      const float normal = naive_normal_residual(s, large);
      std::vector<TrackedPoint> want = s.tracked;
      std::vector<std::uint8_t> want_fresh = fresh;
      for (int i = 0; i < s.count(); ++i) {
        const double contrast = std::sqrt(double{s.subsets[i].energy} / (441 - 8));
        if (!trackable(s, i) || contrast >= 0.9 * normal) continue;
        want[i].result.status = Status::flat;
        want_fresh[i] = 0;
      }
      EXPECT_TRUE(same_bytes(tracked.values(stream), want)) << "large " << large;
      EXPECT_EQ(device_fresh.values(stream), want_fresh) << "large " << large;
    }
  });
}

TEST_F(Points, CountsOfGpusAddUp) {
  const Stream stream;
  constexpr int n = kernels::NoiseCounts::kCount;
  std::vector<std::int32_t> parts(3 * std::size_t{n}), want(n);
  for (int k = 0; k < 3 * n; ++k) want[k % n] += parts[k] = k % 1001;
  const DeviceArray<std::int32_t> of_gpus(parts, stream), sums(n, stream);
  kernels::launch_add_counts(of_gpus.data(), 3, sums.data(), stream.handle());
  EXPECT_EQ(sums.values(stream), want);
}

TEST_F(Points, AcceptWhatIsBetter) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<RefineTask> tasks;
    std::vector<RefineResult> results;
    for (int i = s.count() - 1; i >= 0; i -= 1 + s.integer(0, 1)) {
      tasks.push_back({i, s.integer(-9, 9), s.integer(-9, 9), s.shape()});
      RefineResult r;
      r.shape = s.shape();
      r.zncc = s.chance(0.1) ? zncc(s, i) : static_cast<float>(s.uniform(0.6, 1));
      r.iterations = 3;
      r.status = s.chance(0.6) ? Status::ok : Status::diverged;
      results.push_back(r);
    }
    std::vector<TrackedPoint> want = s.tracked;
    std::vector<std::uint8_t> want_fresh(s.count(), 0);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
      TrackedPoint& known = want[tasks[k].point];
      const bool ok = results[k].status == Status::ok, was_ok = known.result.status == Status::ok;
      const bool taken = ok ? !was_ok || results[k].zncc > known.result.zncc : known.result.iterations == 0;
      if (!taken) continue;
      known = {tasks[k].u, tasks[k].v, results[k]};
      want_fresh[tasks[k].point] = ok;
    }
    const DeviceArray<RefineTask> device_tasks(tasks, stream);
    const DeviceArray<RefineResult> device_results(results, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> fresh(s.count(), stream);
    const DeviceArray<std::int32_t> listed(std::vector{static_cast<int>(tasks.size())}, stream);
    kernels::launch_accept_results(device.points, {device_tasks.data(), s.count(), listed.data()},
                                   device_results.data(), tracked.data(), fresh.data(), stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), want));
    EXPECT_EQ(fresh.values(stream), want_fresh);
  });
}

/// Three other GPUs have each measured a range of the points.
TEST_F(Points, WhatOthersKnowIsTakenOver) {
  on_all([](PointsState& s, const DevicePoints&, const Stream& stream) {
    std::vector<TrackedPoint> theirs = s.tracked;
    for (TrackedPoint& point : theirs) point.u += 1 + s.integer(0, 9);
    std::vector<std::uint8_t> fresh(s.count()), their_fresh(s.count());
    for (std::uint8_t& one : their_fresh) one = s.chance(0.5);
    const std::int64_t n = s.count();
    const kernels::PointRange first{0, n / 5}, second{n / 2, n / 2 + n / 3};
    std::vector<TrackedPoint> want = s.tracked;
    std::vector<std::uint8_t> want_fresh = fresh;
    for (const kernels::PointRange& range : {first, second, {n - n / 10, n}}) {
      std::copy(theirs.begin() + range.first, theirs.begin() + range.last, want.begin() + range.first);
      std::copy(their_fresh.begin() + range.first, their_fresh.begin() + range.last,
                want_fresh.begin() + range.first);
    }
    const DeviceArray<TrackedPoint> device_theirs(theirs, stream);
    const DeviceArray<std::uint8_t> device_their_fresh(their_fresh, stream);
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> own_fresh(fresh, stream);
    const kernels::HaloSource heard[] = {{device_theirs.data(), device_their_fresh.data(), first},
                                         {device_theirs.data(), device_their_fresh.data(), second},
                                         {device_theirs.data(), device_their_fresh.data(), {n - n / 10, n}}};
    kernels::launch_read_halo(heard, tracked.data(), own_fresh.data(), stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), want));
    EXPECT_EQ(own_fresh.values(stream), want_fresh);
  });
}

TEST_F(Points, TheFrontLiesBesideFreshOnes) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<std::uint8_t> fresh(s.count());
    for (int i = 0; i < s.count(); ++i) fresh[i] = measured(s, i) && s.chance(0.2);
    List want;
    for (int i = 0; i < s.count(); ++i) {
      if (!trackable(s, i)) continue;
      bool wanted = false;
      for (const int n : s.neighbours(i)) {
        if (!fresh[n]) continue;
        const bool doubtful = zncc(s, i) < std::min(0.9f, zncc(s, n));
        wanted = wanted || !measured(s, i) || (doubtful && !naive_agree(s, n, i));
      }
      if (wanted) want.push_back(i);
    }
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> device_fresh(fresh, stream);
    const DeviceArray<RefineTask> tasks(s.count(), stream);
    const DeviceArray<std::int32_t> count(1, stream);
    kernels::launch_recovery_tasks(device.points, tracked.data(), device_fresh.data(),
                                   {tasks.data(), count.data()}, stream.handle());
    const auto got = sorted(tasks, count, stream);
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t k = 0; k < want.size(); ++k) {
      ASSERT_EQ(got[k].point, want[k]);
      const int from = naive_best_neighbour(s, want[k]);
      ASSERT_NO_FATAL_FAILURE(expect_start(s, got[k].u, got[k].v, got[k].start, from, want[k]));
    }
  });
}

/// All points that a point reaches through neighbours that agree and are not certain.
bool naive_unconfirmed(const PointsState& s, int seed) {
  if (!measured(s, seed) || zncc(s, seed) >= 0.9f) return false;
  List island{seed};
  bool contested = false, certain = false;
  for (std::size_t head = 0; head < island.size() && island.size() <= 12; ++head)
    for (const int n : s.neighbours(island[head])) {
      if (!trackable(s, n)) continue;
      if (!naive_agree(s, island[head], n)) {
        contested = true;
        continue;
      }
      certain = certain || zncc(s, n) >= 0.9f;
      if (zncc(s, n) < 0.9f && std::find(island.begin(), island.end(), n) == island.end())
        island.push_back(n);
    }
  return contested && !certain && island.size() <= 12;
}

TEST_F(Points, SmallIslandsAreDropped) {
  int dropped_in_all = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<TrackedPoint> want = s.tracked;
    for (int i = 0; i < s.count(); ++i) {
      if (!naive_unconfirmed(s, i)) continue;
      want[i].result.status = Status::low_correlation;
      ++dropped_in_all;
    }
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<track::NeighbourSupport> supports(s.count(), stream);
    const DeviceList dropped(s.count(), stream);
    kernels::launch_drop_unconfirmed(device.points, tracked.data(), supports.data(), dropped.list(),
                                     stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), want));
    kernels::launch_restore_dropped(dropped.list(), tracked.data(), stream.handle());
    EXPECT_TRUE(same_bytes(tracked.values(stream), s.tracked));
  });
  EXPECT_GT(dropped_in_all, 100);
}

/// Points, a third of which are measured here; the others are poisoned.
struct MiddleShare {
  PointsState state;
  GridPoints points;

  MiddleShare(const PointsState& s, const GridPoints& all) : state(s), points(all) {
    points.own = {s.count() / 3, 2 * s.count() / 3};
    points.known = points.own;
    if (points.own.count() == 0) return;
    const auto row_of = [&](std::int64_t i) { return s.node_of[i] / s.nx; };
    const int first = row_of(points.own.first) - track::kIslandReach,
              last = row_of(points.own.last - 1) + track::kIslandReach;
    while (points.known.first > 0 && row_of(points.known.first - 1) >= first) --points.known.first;
    while (points.known.last < s.count() && row_of(points.known.last) <= last) ++points.known.last;
    for (std::int64_t i = 0; i < s.count(); ++i)
      if (i < points.known.first || i >= points.known.last)
        std::memset(static_cast<void*>(&state.tracked[i]), device_poison, sizeof(TrackedPoint));
  }

  List own_of(List all) const {
    std::erase_if(all, [&](std::int32_t i) { return i < points.own.first || i >= points.own.last; });
    return all;
  }
};

TEST_F(Points, OfAShareAreTreatedAsAmongAll) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const MiddleShare share(s, device.points);
    std::vector<std::uint8_t> fresh(s.count());
    for (int i = 0; i < s.count(); ++i) fresh[i] = measured(s, i) && s.chance(0.2);
    const DeviceArray<std::uint8_t> device_fresh(fresh, stream);
    const DeviceArray<PointStart> starts(s.starts, stream);
    std::vector<List> lists[2];
    for (const bool all : {true, false}) {
      const GridPoints& points = all ? device.points : share.points;
      const DeviceArray<TrackedPoint> tracked(all ? s.tracked : share.state.tracked, stream);
      const DeviceArray<PointStart> from_last(s.count(), stream);
      const DeviceList without(s.count(), stream), whole(s.count(), stream), cut(s.count(), stream),
          lost(s.count(), stream);
      const DeviceArray<std::int32_t> counts(4, stream);
      kernels::launch_starts_from_last(points, tracked.data(), from_last.data(), without.list(),
                                       counts.data(), stream.handle());
      kernels::launch_split_subsets(points, nullptr, s.count(), PointsState::radius, whole.list(), cut.list(),
                                    stream.handle());
      kernels::launch_list_lost_starts(points, tracked.data(), nullptr, starts.data(), 0.5f, lost.list(),
                                       counts.data() + 3, stream.handle());
      for (const DeviceList* list : {&without, &whole, &cut, &lost})
        lists[all].push_back(list->sorted(stream));
      const DeviceArray<RefineTask> tasks(s.count(), stream);
      const DeviceArray<std::int32_t> count(1, stream);
      const auto add_points = [&] {
        List& list = lists[all].emplace_back();
        for (const RefineTask& task : sorted(tasks, count, stream)) list.push_back(task.point);
      };
      kernels::launch_tasks_from_starts(points, tracked.data(), starts.data(), {0.3f, 0.7f}, 1,
                                        {tasks.data(), count.data()}, stream.handle());
      add_points();
      kernels::launch_recovery_tasks(points, tracked.data(), device_fresh.data(),
                                     {tasks.data(), count.data()}, stream.handle());
      add_points();
      const DeviceArray<TrackedPoint> begun(s.count(), stream);
      kernels::launch_initial_tasks(points, starts.data(), 0.4f, 1, begun.data(),
                                    {tasks.data(), count.data()}, stream.handle());
      ASSERT_EQ(count.value(stream), points.own.count());
      const std::vector<RefineTask> in_order = tasks.values(stream);
      List& list = lists[all].emplace_back();
      for (std::int64_t k = 0; k < points.own.count(); ++k) {
        if (in_order[k].point == kernels::no_point) continue;
        ASSERT_EQ(in_order[k].point, points.own.first + k);
        list.push_back(in_order[k].point);
      }
    }
    for (std::size_t k = 0; k < lists[0].size(); ++k)
      EXPECT_EQ(lists[false][k], share.own_of(lists[true][k])) << "list " << k;
  });
}

TEST_F(Points, IslandsOfAShareAreDroppedAsAmongAll) {
  on_all([](PointsState& s, const DevicePoints& device, const Stream& stream) {
    const MiddleShare share(s, device.points);
    const DeviceArray<track::NeighbourSupport> supports(s.count(), stream);
    const DeviceArray<TrackedPoint> all(s.tracked, stream), some(share.state.tracked, stream);
    const DeviceList dropped(s.count(), stream);
    kernels::launch_drop_unconfirmed(device.points, all.data(), supports.data(), dropped.list(),
                                     stream.handle());
    kernels::launch_drop_unconfirmed(share.points, some.data(), supports.data(), dropped.list(),
                                     stream.handle());
    const auto want = all.values(stream), got = some.values(stream);
    const auto row_of = [&](std::int64_t i) { return s.node_of[i] / s.nx; };
    const auto& own = share.points.own;
    for (std::int64_t i = share.points.known.first; i < share.points.known.last; ++i)
      if (row_of(i) >= row_of(own.first) - 1 && row_of(i) <= row_of(own.last - 1) + 1) {
        EXPECT_EQ(got[i].result.status, want[i].result.status) << i;
      }
  });
}

}  // namespace
}  // namespace dic::test
