#include <algorithm>
#include <dic/kernels/trust.hpp>

#include "kernels/points_support.hpp"

// Tests chance matches and ambiguous matches against a search through every group.
namespace dic::test {
namespace {

constexpr int subset = 9, large = 11;  // 4 + 2 (9 / 5)^2, rounded up

double naive_sigma(const TrackedPoint& p) {
  return 0.5 * p.result.residual_sd * std::hypot(p.result.unit_sigma_u, p.result.unit_sigma_v);
}

/// True if point a predicts point b.
bool naive_predicts(const PointsState& s, int a, int b) {
  const TrackedPoint &p = s.tracked[a], &q = s.tracked[b];
  const double dx = s.x[b] - s.x[a], dy = s.y[b] - s.y[a];
  const double noise = 3 * std::min(naive_sigma(p), naive_sigma(q));
  return std::hypot(value_at(p.u, p.result.shape.u, dx, dy) - (q.u + double{q.result.shape.u[0]}),
                    value_at(p.v, p.result.shape.v, dx, dy) - (q.v + double{q.result.shape.v[0]})) <=
         std::min(2.0, 0.1 * std::hypot(dx, dy) + noise);
}

/// The members of all groups; points that are not measured are in none.
std::vector<List> naive_groups(const PointsState& s) {
  std::vector<List> groups;
  std::vector<char> seen(s.count());
  for (int i = 0; i < s.count(); ++i) {
    if (seen[i] || !measured(s, i)) continue;
    List group{i};
    seen[i] = 1;
    for (std::size_t head = 0; head < group.size(); ++head)
      for (const int n : s.neighbours(group[head])) {
        if (seen[n] || !measured(s, n)) continue;
        if (!naive_predicts(s, group[head], n) || !naive_predicts(s, n, group[head])) continue;
        seen[n] = 1;
        group.push_back(n);
      }
    groups.push_back(group);
  }
  return groups;
}

bool naive_suspicious(const PointsState& s, const List& group) {
  const int trackable_points = static_cast<int>(
      std::ranges::count_if(s.subsets, [](const auto& subset_at) { return subset_at.status == Status::ok; }));
  bool contested = false;
  for (const int i : group)
    for (const int n : s.neighbours(i))
      contested = contested || (trackable(s, n) && std::ranges::find(group, n) == group.end());
  return contested && group.size() < large && 2 * std::ssize(group) < trackable_points;
}

TEST_F(Points, MatchesByChanceAreGivenUp) {
  int given_up = 0, kept = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    for (TrackedPoint& p : s.tracked)
      if (s.chance(0.3)) p.result.residual_sd *= 20, p.result.zncc = 0.3f;
    const std::vector<List> groups = naive_groups(s);
    std::vector<float> residuals, misfits;
    for (const List& group : groups)
      for (const int i : group)
        if (group.size() >= large) {
          residuals.push_back(s.tracked[i].result.residual_sd);
          misfits.push_back(1 - zncc(s, i));
        }
    const auto median = [](std::vector<float>& values) {
      if (values.empty()) return 0.0f;
      std::ranges::sort(values);
      return values[values.size() / 2];
    };
    const float residual = median(residuals), misfit = median(misfits);
    // The library knows medians to an eighth of an octave; between these limits, both decisions are right.
    std::vector<char> must_go(s.count()), may_go(s.count());
    for (const List& group : groups) {
      const bool suspicious = naive_suspicious(s, group);
      for (const int i : group) {
        const float left = s.tracked[i].result.residual_sd, missing = 1 - zncc(s, i);
        const float contrast = left / std::sqrt(2 * missing);
        const auto lost = [&](float level, float misfit_level) {
          if (contrast < 0.9f * level) return true;
          const bool explained = (left <= 2 * level && contrast >= 2 * level) || missing <= 2 * misfit_level;
          return suspicious && !(8 * group.size() >= large && explained);
        };
        bool always = true, sometimes = false;
        for (const float a : {1.0f, 1.03f, 1.06f, 1.09f, 1.13f})
          for (const float b : {1.0f, 1.13f}) {
            const bool here = lost(a * residual, b * misfit);
            always = always && here;
            sometimes = sometimes || here;
          }
        must_go[i] = always;
        may_go[i] = sometimes;
      }
    }
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<std::uint8_t> workspace(kernels::trust_workspace_bytes(s.count()), stream);
    kernels::launch_judge_points({device.points, tracked.data(), nullptr, subset, PointsState::step},
                                 workspace.data(), stream.handle());
    const std::vector<TrackedPoint> got = tracked.values(stream);
    for (int i = 0; i < s.count(); ++i) {
      const bool lost = measured(s, i) && got[i].result.status != Status::ok;
      ASSERT_TRUE(lost ? may_go[i] : !must_go[i]) << i;
      if (!lost) {
        ASSERT_EQ(got[i].result.status, s.tracked[i].result.status) << i;
      }
      given_up += lost;
      kept += measured(s, i) && !lost;
    }
  });
  EXPECT_GT(given_up, 100);
  EXPECT_GT(kept, 100);
}

TEST_F(Points, RepeatingTextureIsAmbiguous) {
  int ambiguous = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    std::vector<float> alternatives;
    for (int i = 0; i < s.count(); ++i) {
      const bool unique_part = s.x[i] > s.width / 2;
      alternatives.push_back(unique_part ? -1.0f : s.chance(0.5) ? 1.0f : 3e38f);
    }
    // 1.25 + 3 / sqrt(2 * 81): residuals are 0.5 to 4.
    const auto as_good = [&](int i) {
      return alternatives[i] >= 0 && alternatives[i] <= s.tracked[i].result.residual_sd * 1.48570f;
    };
    std::vector<char> want(s.count());
    for (const List& group : naive_groups(s)) {
      const auto unique = std::ranges::count_if(group, [&](int i) { return alternatives[i] == -1; });
      const auto repeats = std::ranges::count_if(group, as_good);
      if (2 * unique >= large) continue;
      for (const int i : group) want[i] = as_good(i) || 2 * repeats >= std::ssize(group);
    }
    const DeviceArray<TrackedPoint> tracked(s.tracked, stream);
    const DeviceArray<float> device_alternatives(alternatives, stream);
    const DeviceArray<std::uint8_t> workspace(kernels::trust_workspace_bytes(s.count()), stream);
    kernels::launch_judge_points(
        {device.points, tracked.data(), device_alternatives.data(), subset, PointsState::step},
        workspace.data(), stream.handle());
    const std::vector<TrackedPoint> got = tracked.values(stream);
    for (int i = 0; i < s.count(); ++i) {
      ASSERT_EQ(got[i].result.status == Status::ambiguous, want[i] != 0) << i;
      ambiguous += want[i];
    }
  });
  EXPECT_GT(ambiguous, 100);
}

}  // namespace
}  // namespace dic::test
