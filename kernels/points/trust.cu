#include <dic/kernels/trust.hpp>

#include "points/points.cuh"

// Groups of points are found by union-find: the parent of a member has a lower index, and the first member of
// a group is its own parent, whatever the order in which threads unite them.
namespace dic::kernels {
namespace {

struct TrustState {
  std::int32_t* parent;     ///< [count]
  std::int32_t* members;    ///< [count], and so the following: by first member
  std::int32_t* contested;  ///< 0 or 1
  std::int32_t* unique;
  std::int32_t* as_good;
  std::int32_t* residuals;  ///< [ValueClasses::kCount], of large groups
  std::int32_t* misfits;    ///< [ValueClasses::kCount]
  std::int32_t* trackable;  ///< how many points are
  track::FrameLevel* level;
};

struct TrustArguments {
  FramePoints points;
  TrackedPoint* tracked;
  const float* alternatives;
  std::int64_t large;
  double pixels;  ///< of a subset
  TrustState state;

  DIC_HOST_DEVICE bool measured(std::int32_t i) const { return points.status(i) == Status::ok; }
  DIC_HOST_DEVICE bool repeats(std::int32_t i) const {
    return track::is_as_good(alternatives[i], points.residual(i), pixels);
  }
};

__device__ std::int32_t first_member(const std::int32_t* parent, std::int32_t i) {
  const volatile std::int32_t* now = parent;  // other threads write
  for (std::int32_t above = now[i]; above != i; above = now[i]) i = above;
  return i;
}

__device__ void unite(std::int32_t* parent, std::int32_t a, std::int32_t b) {
  for (;;) {
    a = first_member(parent, a);
    b = first_member(parent, b);
    if (a == b) return;
    const std::int32_t low = min(a, b), high = max(a, b);
    const std::int32_t before = atomicMin(parent + high, low);
    if (before == high) return;
    a = before;  // another thread was first: its group and this one belong together
    b = low;
  }
}

/// Adds 1 to counts[group]; the lanes of a warp with one group use one atomic.
__device__ void count_member(std::int32_t* counts, std::int32_t group) {
  const unsigned same = __match_any_sync(__activemask(), group);
  if (__ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % warp_size))
    atomicAdd(counts + group, __popc(same));
}

__global__ void __launch_bounds__(point_threads) begin_groups(const __grid_constant__ TrustArguments args) {
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    args.state.parent[i] = i;
    if (args.measured(i) && track::is_mirrored(args.points.shape(i)))
      args.tracked[i].result.status = Status::low_correlation;
    if (args.points.trackable(i)) count_up(args.state.trackable);
  });
}

__global__ void __launch_bounds__(point_threads) find_groups(const __grid_constant__ TrustArguments args) {
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    if (!args.measured(i)) return;
    args.points.for_each_neighbour(i, [&](std::int32_t n) {
      if (n < i && track::linked(args.points, n, i)) unite(args.state.parent, i, n);
    });
  });
}

__global__ void __launch_bounds__(point_threads) count_members(const __grid_constant__ TrustArguments args) {
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    const std::int32_t group = first_member(args.state.parent, i);
    args.state.parent[i] = group;
    if (!args.measured(i)) return;
    count_member(args.state.members, group);
    if (!args.alternatives) return;
    if (args.alternatives[i] == track::kUnique) count_member(args.state.unique, group);
    if (args.repeats(i)) count_member(args.state.as_good, group);
  });
}

__global__ void __launch_bounds__(point_threads) mark_ambiguous(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    const std::int32_t group = state.parent[i];
    if (args.measured(i) && !track::is_decided(state.unique[group], args.large) &&
        track::is_ambiguous(args.repeats(i), state.as_good[group], state.members[group]))
      args.tracked[i].result.status = Status::ambiguous;
  });
}

__global__ void __launch_bounds__(point_threads) find_contested(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    const std::int32_t group = state.parent[i];
    if (!args.measured(i) || state.members[group] >= args.large) return;
    bool contested = false;
    args.points.for_each_neighbour(i, [&](std::int32_t n) {
      contested = contested || (args.points.trackable(n) && state.parent[n] != group);
    });
    if (contested) state.contested[group] = 1;
  });
}

__global__ void __launch_bounds__(point_threads) count_classes(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    if (!args.measured(i) || state.members[state.parent[i]] < args.large) return;
    count_member(state.residuals, track::ValueClasses::of(args.points.residual(i)));
    count_member(state.misfits, track::ValueClasses::of(fmaxf(0, 1 - args.points.zncc(i))));
  });
}

/// One block: the medians of both kinds of values, a thread each.
__global__ void __launch_bounds__(point_threads) find_level(const __grid_constant__ TrustArguments args) {
  constexpr int classes = track::ValueClasses::kCount;
  __shared__ std::int32_t counts[2 * classes];  // residuals and misfits follow each other
  for (int k = threadIdx.x; k < 2 * classes; k += point_threads) counts[k] = args.state.residuals[k];
  __syncthreads();
  if (threadIdx.x == 0) args.state.level->residual = track::ValueClasses::median(counts);
  if (threadIdx.x == warp_size) args.state.level->misfit = track::ValueClasses::median(counts + classes);
}

__global__ void __launch_bounds__(point_threads) give_up_chance(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  const track::FrameLevel level = *state.level;
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    if (!args.measured(i)) return;
    const std::int32_t group = state.parent[i], members = state.members[group];
    const float zncc = args.points.zncc(i), residual = args.points.residual(i);
    const bool suspicious =
        track::is_suspicious_group(members, state.contested[group], args.large, *state.trackable);
    if (track::is_noise_only(zncc, residual, level))
      args.tracked[i].result.status = Status::flat;
    else if (suspicious &&
             !(track::may_differ(members, args.large) && track::is_explained(zncc, residual, level)))
      args.tracked[i].result.status = Status::low_correlation;
  });
}

/// What has to be zero at first comes first.
std::size_t zero_ints(std::int64_t count) { return 4 * count + 2 * track::ValueClasses::kCount + 1; }

TrustState state_in(void* workspace, std::int64_t count) {
  auto* members = static_cast<std::int32_t*>(workspace);
  auto* residuals = members + 4 * count;
  auto* misfits = residuals + track::ValueClasses::kCount;
  auto* trackable = misfits + track::ValueClasses::kCount;
  auto* level = reinterpret_cast<track::FrameLevel*>(trackable + 1);
  return {.parent = reinterpret_cast<std::int32_t*>(level + 1),
          .members = members,
          .contested = members + count,
          .unique = members + 2 * count,
          .as_good = members + 3 * count,
          .residuals = residuals,
          .misfits = misfits,
          .trackable = trackable,
          .level = level};
}

}  // namespace

std::size_t trust_workspace_bytes(std::int64_t count) {
  return (zero_ints(count) + static_cast<std::size_t>(count)) * sizeof(std::int32_t) +
         sizeof(track::FrameLevel);
}

void launch_judge_points(const TrustFrame& frame, void* workspace, StreamHandle stream) {
  const std::int64_t n = frame.points.count;
  if (n == 0) return;
  const double pixels = static_cast<double>(frame.subset) * frame.subset;
  const TrustArguments args{{frame.points, frame.tracked},
                            frame.tracked,
                            frame.alternatives,
                            track::large_group(frame.subset, frame.step),
                            pixels,
                            state_in(workspace, n)};
  fill(workspace, 0, zero_ints(n) * sizeof(std::int32_t), stream);
  const unsigned blocks = grid_size(n, point_threads);
  begin_groups<<<blocks, point_threads, 0, stream>>>(args);
  find_groups<<<blocks, point_threads, 0, stream>>>(args);
  count_members<<<blocks, point_threads, 0, stream>>>(args);
  if (frame.alternatives) mark_ambiguous<<<blocks, point_threads, 0, stream>>>(args);
  find_contested<<<blocks, point_threads, 0, stream>>>(args);
  count_classes<<<blocks, point_threads, 0, stream>>>(args);
  find_level<<<1, point_threads, 0, stream>>>(args);
  give_up_chance<<<blocks, point_threads, 0, stream>>>(args);
  check_launch(describe_points("matches by chance", n));
}

}  // namespace dic::kernels
