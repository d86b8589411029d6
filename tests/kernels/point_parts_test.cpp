#include <algorithm>
#include <dic/kernels/split.hpp>

#include "kernels/points_support.hpp"

// Tests points that are measured again with parts of their subsets: which points, with which parts, and which
// results are accepted.
namespace dic::test {
namespace {

using kernels::PartSlot;
using kernels::PreparedSubset;
using kernels::RefineResult;
using kernels::SplitState;
using track::kDirections;
using track::ResidualLevel;

constexpr int radius = PointsState::radius, step = PointsState::step, side = 2 * radius + 1;
constexpr int tile = 9;  // side of a tile, nodes: two subsets

/// The points of a state, as the rules read them.
struct HostPoints {
  using Index = std::int32_t;
  const PointsState& s;
  ShapeParameters shape(Index i) const {
    return kernels::joined(s.tracked[i].u, s.tracked[i].v, s.tracked[i].result.shape);
  }
  int x(Index i) const { return s.x[i]; }
  int y(Index i) const { return s.y[i]; }
};

/// Sets residuals of 2 grey levels, and of 5 at some points, most of which do not match exactly.
void make_some_doubtful(PointsState& s) {
  for (auto& point : s.tracked) {
    point.result.residual_sd = static_cast<float>(s.chance(0.1) ? 5 : s.uniform(1.9, 2.1));
    if (s.chance(0.02)) point.result.zncc = 0.99999f;
  }
}

/// A frame in device memory, and its results.
struct DeviceFrame {
  DeviceArray<TrackedPoint> tracked;
  DeviceArray<SplitState> states;
  DeviceArray<std::uint16_t> refuted;
  DeviceArray<ResidualLevel> levels;
  DeviceList open;
  kernels::SplitFrame frame;

  DeviceFrame(const PointsState& s, const DevicePoints& device, const Stream& stream)
      : tracked(s.tracked, stream),
        states(s.count(), stream),
        refuted(s.count(), stream),
        levels(2 * track::Tiles(s.nx, s.ny, side, step).count(), stream),
        open(s.count(), stream),
        frame{device.points,
              tracked.data(),
              states.data(),
              refuted.data(),
              levels.data(),
              track::Tiles(s.nx, s.ny, side, step),
              radius,
              step,
              {s.width, s.height}} {
    kernels::launch_find_open_points(frame, open.list(), stream.handle());
  }
};

/// Quartile and median of a tile, from every second node.
ResidualLevel naive_level_of_tile(const PointsState& s, int column, int row) {
  std::vector<float> values;
  for (int j = row * tile; j < std::min(s.ny, (row + 1) * tile); j += 2)
    for (int i = column * tile; i < std::min(s.nx, (column + 1) * tile); i += 2)
      if (const int point = s.point_at[j * s.nx + i]; point >= 0 && measured(s, point))
        values.push_back(s.tracked[point].result.residual_sd);
  std::ranges::sort(values);
  if (values.size() < 6) return {};
  return {values[values.size() / 4], values[values.size() / 2], true};
}

ResidualLevel naive_level(const PointsState& s, int point) {
  const int column = s.node_of[point] % s.nx / tile, row = s.node_of[point] / s.nx / tile;
  std::vector<float> lower, median;
  for (int j = std::max(0, row - 1); j <= row + 1 && j * tile < s.ny; ++j)
    for (int i = std::max(0, column - 1); i <= column + 1 && i * tile < s.nx; ++i) {
      const ResidualLevel level = naive_level_of_tile(s, i, j);
      if (!level.known) continue;
      lower.push_back(level.lower);
      median.push_back(level.median);
    }
  if (lower.empty()) return {};
  std::ranges::sort(lower);
  std::ranges::sort(median);
  return {lower[(lower.size() - 1) / 2], median[(median.size() - 1) / 2], true};
}

SplitState naive_state(const PointsState& s, int point) {
  if (!trackable(s, point)) return SplitState::unusable;
  if (!measured(s, point)) return SplitState::open;
  const RefineResult& result = s.tracked[point].result;
  const bool doubtful =
      track::is_doubtful(result.zncc, result.residual_sd, naive_level(s, point), side * side);
  return doubtful ? SplitState::open : SplitState::trusted;
}

int naive_trusted_towards(const PointsState& s, const std::vector<SplitState>& states, int point,
                          const track::Direction& towards) {
  constexpr int reach = 5;  // nodes: the radius of a subset, and three
  const int longest = std::max(std::abs(towards.dx), std::abs(towards.dy));
  for (int k = 1; k * longest <= reach; ++k) {
    const int i = s.node_of[point] % s.nx + k * towards.dx, j = s.node_of[point] / s.nx + k * towards.dy;
    if (i < 0 || j < 0 || i >= s.nx || j >= s.ny) return -1;
    const int other = s.point_at[j * s.nx + i];
    if (other >= 0 && states[other] == SplitState::trusted) return other;
  }
  return -1;
}

TEST_F(Points, DoubtfulAndLostOnesAreOpen) {
  std::size_t open_in_all = 0, trusted_in_all = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    make_some_doubtful(s);
    const DeviceFrame found(s, device, stream);
    const auto states = found.states.values(stream);
    List open;
    for (int i = 0; i < s.count(); ++i) {
      const SplitState want = naive_state(s, i);
      ASSERT_EQ(static_cast<int>(states[i]), static_cast<int>(want)) << i;
      if (want == SplitState::open) open.push_back(i);
      trusted_in_all += want == SplitState::trusted;
    }
    EXPECT_EQ(found.open.sorted(stream), open);
    open_in_all += open.size();
  });
  EXPECT_GT(open_in_all, 10'000u);
  EXPECT_GT(trusted_in_all, 30'000u);
}

struct NaivePart {
  ShapeParameters start;
  track::CountedPart part;
};

/// The parts of a point to measure in a round, by direction; a part without pixels is not measured.
std::vector<NaivePart> naive_parts(const PointsState& s, const std::vector<SplitState>& states, int point,
                                   int round) {
  const HostPoints points{s};
  std::vector<NaivePart> out(kDirections);
  if (states[point] == SplitState::exhausted) return out;
  for (int k = 0; k < kDirections; ++k) {
    const int source = naive_trusted_towards(s, states, point, track::direction(k));
    if (source < 0) continue;
    const ShapeParameters start = track::predicted_shape(points, source, point);
    const auto repeated = [&](const NaivePart& other) {
      return other.part.pixels > 0 && std::hypot(other.start.u - start.u, other.start.v - start.v) < 0.5;
    };
    if (round == 0 && std::any_of(out.begin(), out.begin() + k, repeated)) continue;
    out[k] = {start, track::part_to_measure({point, s.x[point], s.y[point], radius}, track::direction(k),
                                            round, start, {s.width, s.height})};
  }
  return out;
}

const kernels::PixelMasks layout(nullptr, side);

/// A list of parts in device memory, for a number of points.
struct DeviceParts {
  DeviceArray<PreparedSubset> subsets;
  DeviceArray<RefineTask> tasks;
  DeviceArray<std::int32_t> count;
  DeviceArray<float> most_residuals;
  DeviceArray<std::uint32_t> masks;
  DeviceArray<PartSlot> slots;

  DeviceParts(std::size_t points, const Stream& stream)
      : subsets(kDirections * points, stream),
        tasks(kDirections * points, stream),
        count(1, stream),
        most_residuals(kDirections * points, stream),
        masks(kDirections * points * layout.words_of(), stream),
        slots(kDirections * points, stream) {}
  kernels::PartList list() const {
    return {subsets.data(), tasks.data(), most_residuals.data(), masks.data(), count.data(), slots.data()};
  }
};

void expect_part(const PointsState& s, const NaivePart& want, const PreparedSubset& subset,
                 const RefineTask& task, int number) {
  ASSERT_EQ(task.point, number);
  const SubsetPart& part = want.part.part;
  const int i = static_cast<int>(part.point);
  ASSERT_EQ(std::pair(subset.x, subset.y), std::pair(s.x[i], s.y[i]));
  ASSERT_EQ(static_cast<int>(subset.status), static_cast<int>(kernels::pending));
  ASSERT_EQ(subset.left, part.left);
  ASSERT_EQ(subset.right, part.right);
  ASSERT_EQ(subset.top, part.top);
  ASSERT_EQ(subset.bottom, part.bottom);
  const ShapeParameters start = kernels::joined(task.u, task.v, task.start);
  ASSERT_NEAR(start.u, want.start.u, 1e-6);
  ASSERT_NEAR(start.v, want.start.v, 1e-6);
  ASSERT_NEAR(start.uy, want.start.uy, 1e-6);
  ASSERT_NEAR(start.vxx, want.start.vxx, 1e-6);
}

/// Expects that exactly the pixels of the rectangle on the right side of all lines count.
void expect_mask(const track::CountedPart& want, const std::uint32_t* mask) {
  const SubsetPart& part = want.part;
  int shown = 0;
  for (int j = part.top; j <= part.bottom; ++j)
    for (int i = part.left; i <= part.right; ++i) {
      const bool inside = std::ranges::all_of(
          part.sides, [&](const HalfPlane& s) { return s.x * i + s.y * j >= s.least - 1e-9; });
      ASSERT_EQ((mask[layout.word(i, j)] & layout.bit(i)) == 0, inside) << i << ", " << j;
      shown += inside;
    }
  ASSERT_EQ(shown, want.pixels);
}

TEST_F(Points, OpenOnesAreMeasuredWithPartsFromAllSides) {
  int clipped = 0, halves = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    make_some_doubtful(s);
    const DeviceFrame found(s, device, stream);
    auto states = found.states.values(stream);
    const List open = found.open.sorted(stream);
    const DeviceArray<std::int32_t> points(open, stream);
    const DeviceParts parts(open.size(), stream);
    for (int round = 0; round < track::kSplitRounds; ++round) {
      kernels::launch_list_parts(found.frame, points.data(), std::ssize(open), {round}, parts.list(),
                                 stream.handle());
      const auto slots = parts.slots.values(stream);
      const auto subsets = parts.subsets.values(stream);
      const auto tasks = parts.tasks.values(stream);
      const auto masks = parts.masks.values(stream);
      int count = 0;
      for (std::size_t at = 0; at < open.size(); ++at) {
        const auto want = naive_parts(s, states, open[at], round);
        if (std::ranges::none_of(want, [](const NaivePart& one) { return one.part.pixels > 0; }) &&
            round == 0 && states[open[at]] == SplitState::open)
          states[open[at]] = SplitState::exhausted;
        for (int k = 0; k < kDirections; ++k) {
          const PartSlot& slot = slots[at * kDirections + k];
          ASSERT_EQ(slot.task >= 0, want[k].part.pixels > 0) << open[at] << ", direction " << k;
          if (slot.task < 0) continue;
          ASSERT_EQ(slot.pixels, want[k].part.pixels);
          ASSERT_NO_FATAL_FAILURE(expect_part(s, want[k], subsets[slot.task], tasks[slot.task], slot.task));
          ASSERT_NO_FATAL_FAILURE(expect_mask(want[k].part, masks.data() + slot.task * layout.words_of()));
          clipped += round == 0 && slot.pixels < side * side;
          halves += round == 6 && slot.pixels == side * (radius + 1 + radius / 8);
          ++count;
        }
      }
      EXPECT_EQ(parts.count.value(stream), count);
      EXPECT_TRUE(same_bytes(found.states.values(stream), states));
    }
  });
  EXPECT_GT(clipped, 100);
  EXPECT_GT(halves, 1000);
}

RefineResult part_result(PointsState& s, const RefineTask& task) {
  RefineResult result;
  result.status = s.chance(0.8) ? Status::ok : Status::diverged;
  result.shape = task.start;
  result.shape.u[0] += static_cast<float>(s.chance(0.2) ? 3 : s.uniform(-0.5, 0.5));
  result.zncc = static_cast<float>(s.chance(0.1) ? 0.5 : s.uniform(0.6, 0.95));
  result.residual_sd = static_cast<float>(s.chance(0.3) ? 9 : s.uniform(1.5, 1.9));
  result.iterations = static_cast<std::int16_t>(s.integer(1, 9));
  return result;
}

TEST_F(Points, TheBestPartThatIsAcceptedCounts) {
  int taken = 0, kept = 0, first = 0, later = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    make_some_doubtful(s);
    const DeviceFrame found(s, device, stream);
    const List open = found.open.sorted(stream);
    const DeviceArray<std::int32_t> points(open, stream);
    constexpr kernels::SplitRounds rounds{2, 3};
    const DeviceParts parts(rounds.count * open.size(), stream);
    kernels::launch_list_parts(found.frame, points.data(), std::ssize(open), rounds, parts.list(),
                               stream.handle());
    auto states = found.states.values(stream);
    const auto slots = parts.slots.values(stream);
    const auto tasks = parts.tasks.values(stream);
    std::vector<RefineResult> results(tasks.size());
    for (int k = 0; k < parts.count.value(stream); ++k) results[k] = part_result(s, tasks[k]);
    std::vector<TrackedPoint> want = s.tracked;
    for (std::size_t at = 0; at < open.size(); ++at) {
      const int i = open[at];
      const RefineResult* best = nullptr;
      std::vector<NaivePart> wanted;
      for (int k = 0; k < rounds.count * kDirections; ++k) {
        const int round = k / kDirections, direction = k % kDirections;
        if (best && direction == 0) break;  // a later round does not replace an accepted result
        if (direction == 0) wanted = naive_parts(s, states, i, rounds.first + round);
        const PartSlot& slot = slots[(round * open.size() + at) * kDirections + direction];
        ASSERT_EQ(slot.task >= 0, wanted[direction].part.pixels > 0);
        if (slot.task < 0) continue;
        ++(round > 0 ? later : first);
        const RefineResult& result = results[slot.task];
        const bool near = std::abs(result.shape.u[0] - tasks[slot.task].start.u[0]) <= 2;
        if (result.status != Status::ok || !near ||
            track::is_doubtful(result.zncc, result.residual_sd, naive_level(s, i), slot.pixels, 0.95) ||
            (best && result.residual_sd >= best->residual_sd))
          continue;
        best = &result;
        want[i] = {tasks[slot.task].u, tasks[slot.task].v, result};
      }
      if (best) states[i] = SplitState::replaced;
      ++(best ? taken : kept);
    }
    const DeviceArray<RefineResult> device_results(results, stream);
    kernels::launch_take_parts(found.frame, points.data(), std::ssize(open), rounds, parts.list(),
                               device_results.data(), stream.handle());
    EXPECT_TRUE(same_bytes(found.tracked.values(stream), want));
    EXPECT_TRUE(same_bytes(found.states.values(stream), states));
  });
  EXPECT_GT(taken, 1000);
  EXPECT_GT(kept, 1000);
  EXPECT_GT(first, 1000);
  EXPECT_GT(later, 100);
}

TEST_F(Points, ContradictedOnesAreGivenUp) {
  int given_up = 0, kept = 0;
  on_all([&](PointsState& s, const DevicePoints& device, const Stream& stream) {
    make_some_doubtful(s);
    for (auto& point : s.tracked) {  // neighbours agree to 0.3 px in a smooth field
      point.result.shape.u[0] *= 0.2f;
      point.result.shape.v[0] *= 0.2f;
    }
    const DeviceFrame found(s, device, stream);
    const auto states = found.states.values(stream);
    const List open = found.open.sorted(stream);
    const HostPoints host{s};
    std::vector<TrackedPoint> want = s.tracked;
    for (const int i : open) {
      if (!measured(s, i)) continue;
      int sources = 0, agree = 0;
      for (int k = 0; k < track::kNeighbours; ++k) {
        const int source = naive_trusted_towards(s, states, i, track::direction(k));
        if (source < 0) continue;
        const ShapeParameters predicted = track::predicted_shape(host, source, i), own = host.shape(i);
        ++sources;
        agree += std::hypot(predicted.u - own.u, predicted.v - own.v) <= 0.3;
      }
      const bool confirmed = sources > 0 && agree == sources;
      if (!confirmed) want[i].result.status = Status::low_correlation;
      ++(confirmed ? kept : given_up);
    }
    const DeviceArray<std::int32_t> points(open, stream);
    kernels::launch_give_up_contradicted(found.frame, points.data(), std::ssize(open), stream.handle());
    EXPECT_TRUE(same_bytes(found.tracked.values(stream), want));
  });
  EXPECT_GT(given_up, 100);
  EXPECT_GT(kept, 10);
}

}  // namespace
}  // namespace dic::test
