#include <dic/kernels/trust.hpp>
#include <utility>

#include "points/points.cuh"
#include "points/value_counts.cuh"

// Groups of points are found by union-find: the parent of a member has a lower index, and the first member of
// a group is its own parent, whatever the order in which threads unite them. First, the groups within each
// tile of the grid are found, in shared memory. On a good image all of them are large, and need no further
// work: only small groups are united with those of other tiles and judged further ("open"). Most tiles are
// clearly one group, which takes fewer registers to see than finding groups: other tiles are listed and
// processed afterwards.
namespace dic::kernels {
namespace {

constexpr int classes = track::ValueClasses::kCount;
constexpr unsigned blocks_for_open = 528;  ///< few blocks, which start sooner, for lists that are mostly
                                           ///< empty

/// Nodes along an axis, at most 100,000, cut into parts whose lengths differ by at most one node.
struct Cuts {
  unsigned nodes, parts;

  Cuts(int along, int most) : nodes(along), parts((along + most - 1) / most) {}
  __device__ int first(unsigned part) const { return static_cast<int>(part * nodes / parts); }
  __device__ int part_of(unsigned node) const { return static_cast<int>(((node + 1) * parts - 1) / nodes); }
};

/// Tiles of neighbouring nodes, which use each other's values: a block has a tile, a warp a row of it.
struct NodeTiles {
  static constexpr int most_columns = warp_size, most_rows = point_threads / warp_size;
  Cuts columns, rows;

  explicit NodeTiles(const GridPoints& grid) : columns(grid.nx, most_columns), rows(grid.ny, most_rows) {}
  DIC_HOST_DEVICE int count() const { return static_cast<int>(columns.parts * rows.parts); }
  /// The node of this thread in a tile; -1 if the tile has fewer nodes.
  __device__ std::int32_t node(int tile) const {
    const unsigned down = tile / columns.parts, across = tile - down * columns.parts;
    const int lane = static_cast<int>(threadIdx.x) % warp_size;
    const int i = columns.first(across) + lane, j = rows.first(down) + warp_index();
    const bool exists = i < columns.first(across + 1) && j < rows.first(down + 1);
    return exists ? j * static_cast<int>(columns.nodes) + i : -1;
  }
  /// The tile of a node.
  __device__ int of(std::int32_t node) const {
    const unsigned row = node / columns.nodes, column = node - row * columns.nodes;
    return rows.part_of(row) * static_cast<int>(columns.parts) + columns.part_of(column);
  }
};

/// Values of a point that the judgement needs once the groups are known. Residual below 0: not measured.
struct Quality {
  float zncc, residual;
};

struct TrustState {
  std::int32_t* residuals;      ///< [classes]: counts of points of large groups
  std::int32_t* misfits;        ///< [classes]
  std::int32_t* trackable;      ///< number of trackable points
  std::int32_t* any_open;       ///< 0 if all measured points are known to be in large groups
  std::int32_t* unclear_tiles;  ///< number of tiles with points that are not clearly one group
  track::FrameLevel* level;
  std::int32_t* parent;     ///< [count]
  std::int32_t* members;    ///< [count] by first member, as are the next three
  std::int32_t* contested;  ///< 0 or 1
  std::int32_t* unique;     ///< used with alternatives only
  std::int32_t* as_good;
  Quality* qualities;     ///< [count]
  std::int32_t* unclear;  ///< numbers of unclear tiles, at most [count]
  std::uint8_t* open;     ///< [count]: 1 if the tile does not tell whether the point's group is large
};

struct TrustArguments {
  FramePoints points;
  TrackedPoint* tracked;
  const float* alternatives;
  std::int64_t large;
  double pixels;  ///< pixels of a subset
  NodeTiles tiles;
  TrustState state;

  __device__ bool measured(std::int32_t i) const { return state.qualities[i].residual >= 0; }
  __device__ bool repeats(std::int32_t i) const {
    return track::is_as_good(alternatives[i], state.qualities[i].residual, pixels);
  }
};

// ---- groups of a tile ----

/// The points of a tile, packed to the left in each row, for track::linked.
struct TilePoints {
  using Index = int;
  const TrackedPoint* tracked;
  const int *x_of, *y_of;

  DIC_HOST_DEVICE Status status(int k) const { return tracked[k].result.status; }
  DIC_HOST_DEVICE ShapeParameters shape(int k) const {
    return joined(tracked[k].u, tracked[k].v, tracked[k].result.shape);
  }
  DIC_HOST_DEVICE float own_sigma(int k) const {
    const RefineResult& result = tracked[k].result;
    return track::own_sigma(result.residual_sd, result.unit_sigma_u, result.unit_sigma_v);
  }
  DIC_HOST_DEVICE int x(int k) const { return x_of[k]; }
  DIC_HOST_DEVICE int y(int k) const { return y_of[k]; }
};

/// Difference between a point's prediction at (dx, dy) and another point there, along one axis.
__device__ float difference(int whole, const float (&shape)[6], int other_whole, const float (&other)[6],
                            float dx, float dy) {
  return static_cast<float>(whole - other_whole) + (shape[0] - other[0]) + shape[1] * dx + shape[2] * dy +
         shape[3] * dx * dx + shape[4] * dx * dy + shape[5] * dy * dy;
}

/// True if both points are so near to their predictions that track::linked need not be called. Float is
/// enough for this test, and takes a third of the time.
__device__ bool clearly_linked(const TilePoints& points, int a, int b) {
  if (points.status(a) != Status::ok || points.status(b) != Status::ok) return false;
  constexpr auto stretch = static_cast<float>(0.9 * track::kLinkStretch);
  constexpr auto farthest = static_cast<float>(0.9 * track::kAgreement);
  const TrackedPoint &p = points.tracked[a], &q = points.tracked[b];
  const RelativeShape &at_p = p.result.shape, &at_q = q.result.shape;
  const auto dx = static_cast<float>(points.x(b) - points.x(a)),
             dy = static_cast<float>(points.y(b) - points.y(a));
  const float most = fminf(stretch * stretch * (dx * dx + dy * dy), farthest * farthest);
  const auto near = [most](float du, float dv) { return du * du + dv * dv <= most; };
  return near(difference(p.u, at_p.u, q.u, at_q.u, dx, dy), difference(p.v, at_p.v, q.v, at_q.v, dx, dy)) &&
         near(difference(q.u, at_q.u, p.u, at_p.u, -dx, -dy), difference(q.v, at_q.v, p.v, at_p.v, -dx, -dy));
}

/// Shared memory of a block for a tile. Nodes are numbered row by row, as threads are.
struct TileMemory {
  static constexpr int nodes = NodeTiles::most_columns * NodeTiles::most_rows;
  static constexpr int words = sizeof(TrackedPoint) / sizeof(unsigned);
  static_assert(words % 2 == 1, "an even number would cause bank conflicts");

  alignas(uint4) unsigned points[nodes * words];  ///< packed to the left in each row; later counts of classes
  int x[nodes], y[nodes];                         ///< packed to the left in each row
  unsigned exist[NodeTiles::most_rows];           ///< bit mask of the nodes of a row that are points

  __device__ TrackedPoint* tracked() { return reinterpret_cast<TrackedPoint*>(points); }
  __device__ bool exists(int row, int lane) const {
    return row < NodeTiles::most_rows && lane >= 0 && lane < warp_size && (exist[row] >> lane & 1) != 0;
  }
  /// Index of the point of a node.
  __device__ int packed(int row, int lane) const {
    return row * warp_size + __popc(exist[row] & ((1u << lane) - 1));
  }
  __device__ TilePoints linking() { return {tracked(), x, y}; }
};
static_assert(2 * classes <= TileMemory::nodes * TileMemory::words);

/// Groups of a tile.
struct TileGroups {
  int point[TileMemory::nodes];  ///< point of a node
  int run[TileMemory::nodes];    ///< first node of the row to which links lead from node to node
  int parent[TileMemory::nodes], members[TileMemory::nodes];
};

/// A node of the tile; each thread has one.
class TileNode {
 public:
  /// Reads the points of the tile. All threads must call it.
  __device__ TileNode(const TrustArguments& args, TileMemory& tile, int number)
      : tile_(tile), row_(warp_index()), lane_(static_cast<int>(threadIdx.x) % warp_size) {
    const GridPoints& grid = args.points.grid;
    const std::int32_t own = args.tiles.node(number);
    if (own >= 0) point_ = grid.point_at[own];
    const unsigned exist = __ballot_sync(all_lanes, point_ >= 0);
    if (lane_ == 0) tile.exist[row_] = exist;
    __syncwarp();
    const int first = __shfl_sync(all_lanes, point_, __ffs(static_cast<int>(exist)) - 1);
    const auto* from = reinterpret_cast<const unsigned*>(args.tracked + max(first, 0));
    unsigned* to = tile.points + row_ * warp_size * TileMemory::words;
    for (int k = lane_; k < __popc(exist) * TileMemory::words; k += warp_size) to[k] = from[k];
    if (point_ >= 0) {
      const int at = tile.packed(row_, lane_);
      tile.x[at] = grid.x[point_];
      tile.y[at] = grid.y[point_];
    }
    __syncwarp();
  }

  __device__ int point() const { return point_; }
  __device__ int node() const { return row_ * warp_size + lane_; }
  __device__ int row() const { return row_; }
  __device__ int lane() const { return lane_; }
  /// Result of the point, which must exist.
  __device__ TrackedPoint& tracked() const { return tile_.tracked()[tile_.packed(row_, lane_)]; }
  __device__ Quality quality() const {
    if (point_ < 0) return {0, -1};
    const RefineResult& result = tracked().result;
    return result.status == Status::ok ? Quality{result.zncc, result.residual_sd} : Quality{0, -1};
  }
  /// True if this point is linked with another node of the tile, in the same row or in the next one.
  __device__ bool linked_to(int right, int down) const {
    const int row = row_ + down, lane = lane_ + right;
    if (point_ < 0 || !tile_.exists(row, lane)) return false;
    const TilePoints points = tile_.linking();
    const int a = tile_.packed(row_, lane_), b = tile_.packed(row, lane);
    return clearly_linked(points, a, b) || track::linked(points, a, b);
  }

 private:
  TileMemory& tile_;
  int row_, lane_, point_ = -1;
};

// ---- tiles that are one group ----

/// True if the row of this node is empty, or begins at the left and has points that are clearly linked from
/// node to node.
__device__ bool is_clear_row(TileMemory& tile, const TileNode& node) {
  const unsigned exist = tile.exist[node.row()];
  if ((exist & (exist + 1)) != 0) return false;
  if (!tile.exists(node.row(), node.lane() + 1)) return true;
  const int at = tile.packed(node.row(), node.lane());
  return clearly_linked(tile.linking(), at, at + 1);
}

/// True if the points of the tile are clearly one group, whose first point is at the first node. One link
/// from row to row is enough. All threads must call it.
__device__ bool is_clear_tile(TileMemory& tile, const TileNode& node, bool measured) {
  bool clear = (node.point() < 0 || measured) && is_clear_row(tile, node);
  if (const int row = static_cast<int>(threadIdx.x);
      row < NodeTiles::most_rows - 1 && tile.exist[row + 1] != 0)
    clear = clear && tile.exist[row] != 0 &&
            clearly_linked(tile.linking(), tile.packed(row, 0), tile.packed(row + 1, 0));
  return __syncthreads_and(clear);
}

// ---- tiles of any groups ----

/// Atomic read: other threads of the block may be writing.
__device__ int parent_now(int* parent, int node) { return atomicMin(parent + node, node); }

__device__ void unite_in_tile(int* parent, int a, int b) {
  for (;;) {
    for (int above = parent_now(parent, a); above != a; above = parent_now(parent, a)) a = above;
    for (int above = parent_now(parent, b); above != b; above = parent_now(parent, b)) b = above;
    if (a == b) return;
    const int low = min(a, b), high = max(a, b), before = atomicMin(parent + high, low);
    if (before == high) return;
    a = before;  // another thread was first: its group and this one belong together
    b = low;
  }
}

/// Unites this node's run with the run of the node below (shifted by `right` nodes), except with run `but`,
/// with which it is already united. Returns the run that is linked. All threads must call it.
__device__ int unite_with_row_below(TileGroups& groups, const TileNode& node, int right, int but) {
  const int run = groups.run[node.node()];
  const int there = node.node() + warp_size + right;
  const bool known = there >= TileMemory::nodes || groups.run[there] == but;  // the cheapest test comes first
  const int below = !known && node.linked_to(right, 1) ? groups.run[there] : -1;
  // The lane before may unite the same runs.
  const int other_run = __shfl_up_sync(all_lanes, run, 1), other = __shfl_up_sync(all_lanes, below, 1);
  const bool repeated = node.lane() > 0 && other_run == run && other == below;
  if (below >= 0 && !repeated) unite_in_tile(groups.parent, run, below);
  return below;
}

/// Finds the groups within the tile: returns the first node of this node's group, and leaves the number of
/// members there. All threads must call it.
__device__ int find_groups_of_tile(TileGroups& groups, const TileNode& node, bool measured) {
  const unsigned linked = __ballot_sync(all_lanes, node.linked_to(1, 0)), starts = ~(linked << 1);
  const unsigned up_to_own = 0xffffffffu >> (warp_size - 1 - node.lane());
  const int start = warp_size - 1 - __clz(static_cast<int>(starts & up_to_own));
  const int run = node.row() * warp_size + start;
  groups.point[node.node()] = node.point();
  groups.run[node.node()] = run;
  groups.parent[node.node()] = run;
  groups.members[node.node()] = 0;
  __syncthreads();
  const int below = unite_with_row_below(groups, node, 0, -1);
  unite_with_row_below(groups, node, -1, below);
  unite_with_row_below(groups, node, 1, below);
  __syncthreads();
  int group = run;
  while (groups.parent[group] != group) group = groups.parent[group];
  const unsigned later = starts & ~up_to_own;
  const int end = later ? __ffs(static_cast<int>(later)) - 1 : warp_size;
  if (measured && start == node.lane()) atomicAdd(groups.members + group, end - start);
  __syncthreads();
  return group;
}

// ---- results of a tile ----

/// Adds 1 to counts[place]; lanes of a warp with the same place use one atomic. Returns whether this lane
/// made the first count there.
template <typename Count>
__device__ bool count_member(Count* counts, std::int32_t place) {
  const unsigned same = __match_any_sync(__activemask(), place);
  const bool leads = __ffs(static_cast<int>(same)) - 1 == static_cast<int>(threadIdx.x % warp_size);
  return leads && atomicAdd(counts + place, __popc(same)) == 0;
}

/// Adds the classes of a block's points to the total. The table is large and few of its classes occur: the
/// lane that counts a class first adds it. All threads must call it, after all have finished with the tile's
/// points.
__device__ void count_classes_of_tile(const TrustState& state, TileMemory& tile, bool counts,
                                      const Quality& quality) {
  unsigned* own = tile.points;
  for (int k = threadIdx.x; k < 2 * classes / 4; k += point_threads)
    reinterpret_cast<uint4*>(own)[k] = {0, 0, 0, 0};
  __syncthreads();
  const int residual = track::ValueClasses::of(quality.residual),
            misfit = classes + track::ValueClasses::of(fmaxf(0, 1 - quality.zncc));
  const bool first_residual = counts && count_member(own, residual),
             first_misfit = counts && count_member(own, misfit);
  __syncthreads();
  if (first_residual) atomicAdd(state.residuals + residual, static_cast<std::int32_t>(own[residual]));
  if (first_misfit) atomicAdd(state.residuals + misfit, static_cast<std::int32_t>(own[misfit]));
  __syncthreads();  // the next tile reuses the memory
}

/// Stores the results of a tile. first: first point of the node's group; members: its members in the tile.
/// All threads must call it.
__device__ void store_tile(const TrustArguments& args, TileMemory& tile, const TileNode& node,
                           const Quality& quality, std::int32_t first, int members) {
  const TrustState& state = args.state;
  const std::int32_t i = node.point();
  const bool measured = quality.residual >= 0, open = measured && (args.alternatives || members < args.large);
  if (i >= 0) {
    state.parent[i] = measured ? first : i;
    state.members[i] = measured && first == i ? members : 0;
    state.contested[i] = 0;
    state.qualities[i] = quality;
    state.open[i] = open;
  }
  const bool any_open = __syncthreads_or(open);
  if (threadIdx.x == 0 && any_open) *state.any_open = 1;
  count_classes_of_tile(state, tile, measured && !open, quality);
}

/// Gives up mirrored points, processes the tiles that are clearly one group, and lists the others.
__global__ void __launch_bounds__(point_threads, 5)
    group_clear_tiles(const __grid_constant__ TrustArguments args) {
  __shared__ TileMemory tile;
  __shared__ std::int32_t first;
  const TrustState& state = args.state;
  for_each_task(args.tiles.count(), 1, 0, [&](std::int64_t number) {
    const TileNode node(args, tile, static_cast<int>(number));
    const std::int32_t i = node.point();
    bool trackable = false;
    if (i >= 0) {
      const TrackedPoint& point = node.tracked();
      Status& status = node.tracked().result.status;
      trackable = status == Status::ok || args.points.trackable(i);
      if (status == Status::ok && track::is_mirrored(joined(point.u, point.v, point.result.shape)))
        status = args.tracked[i].result.status = Status::low_correlation;
    }
    if (threadIdx.x == 0) first = i;
    const int all_trackable = __syncthreads_count(trackable);
    if (threadIdx.x == 0) atomicAdd(state.trackable, all_trackable);
    const Quality quality = node.quality();
    const bool measured = quality.residual >= 0;
    if (is_clear_tile(tile, node, measured))
      store_tile(args, tile, node, quality, first, __syncthreads_count(measured));
    else if (threadIdx.x == 0)
      state.unclear[atomicAdd(state.unclear_tiles, 1)] = static_cast<std::int32_t>(number);
    __syncthreads();  // the next tile reuses the memory
  });
}

/// Finds the groups within the tiles that were listed.
__global__ void __launch_bounds__(point_threads)
    group_unclear_tiles(const __grid_constant__ TrustArguments args) {
  __shared__ TileMemory tile;
  __shared__ TileGroups groups;
  for_each_task(*args.state.unclear_tiles, 1, 0, [&](std::int64_t k) {
    const TileNode node(args, tile, args.state.unclear[k]);
    __syncthreads();
    const Quality quality = node.quality();
    const int group = find_groups_of_tile(groups, node, quality.residual >= 0);
    store_tile(args, tile, node, quality, groups.point[group], groups.members[group]);
  });
}

// ---- groups of several tiles ----

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

/// Calls body(i) for the open points.
template <typename Body>
__device__ void for_each_open(const TrustArguments& args, Body&& body) {
  if (*args.state.any_open == 0) return;
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    if (args.state.open[i]) body(i);
  });
}

__global__ void __launch_bounds__(point_threads) unite_tiles(const __grid_constant__ TrustArguments args) {
  const GridPoints& grid = args.points.grid;
  const auto tile_of = [&](std::int32_t i) { return args.tiles.of(grid.node_of[i]); };
  for_each_open(args, [&](std::int32_t i) {
    const int tile = tile_of(i);
    args.points.for_each_neighbour(i, [&](std::int32_t n) {
      if (n > i && args.state.open[n] != 0) return;  // point n makes this link
      if (args.measured(n) && tile_of(n) != tile && track::linked(args.points, min(i, n), max(i, n)))
        unite(args.state.parent, i, n);
    });
  });
}

/// Adds the members of each group within a tile, at its first member, to the whole group.
__global__ void __launch_bounds__(point_threads) add_members(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  if (*state.any_open == 0) return;
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    if (state.parent[i] == i || state.members[i] == 0) return;
    atomicAdd(state.members + first_member(state.parent, i), state.members[i]);
  });
}

__global__ void __launch_bounds__(point_threads)
    count_alternatives(const __grid_constant__ TrustArguments args) {
  for_each_open(args, [&](std::int32_t i) {
    const std::int32_t group = first_member(args.state.parent, i);
    if (args.alternatives[i] == track::kUnique) count_member(args.state.unique, group);
    if (args.repeats(i)) count_member(args.state.as_good, group);
  });
}

__global__ void __launch_bounds__(point_threads) find_contested(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  for_each_open(args, [&](std::int32_t i) {
    const std::int32_t group = first_member(state.parent, i);
    if (state.members[group] >= args.large) return;
    bool contested = false;
    args.points.for_each_neighbour(i, [&](std::int32_t n) {
      contested = contested || (args.points.trackable(n) && first_member(state.parent, n) != group);
    });
    if (contested) state.contested[group] = 1;
  });
}

__global__ void __launch_bounds__(point_threads) mark_ambiguous(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  for_each_open(args, [&](std::int32_t i) {
    const std::int32_t group = first_member(state.parent, i);
    if (track::is_decided(state.unique[group], args.large) ||
        !track::is_ambiguous(args.repeats(i), state.as_good[group], state.members[group]))
      return;
    args.tracked[i].result.status = Status::ambiguous;
    state.qualities[i].residual = -1;
  });
}

// ---- judgement ----

__global__ void __launch_bounds__(point_threads) count_classes(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  for_each_open(args, [&](std::int32_t i) {
    if (!args.measured(i) || state.members[first_member(state.parent, i)] < args.large) return;
    count_member(state.residuals, track::ValueClasses::of(state.qualities[i].residual));
    count_member(state.misfits, track::ValueClasses::of(fmaxf(0, 1 - state.qualities[i].zncc)));
  });
}

/// Finds the medians of both kinds of values: one block, a warp for each.
__global__ void __launch_bounds__(2 * warp_size) find_level(const __grid_constant__ TrustArguments args) {
  if (threadIdx.x < warp_size) {
    const float residual = quantile_of<2>(args.state.residuals);
    if (threadIdx.x == 0) args.state.level->residual = residual;
  } else {
    const float misfit = quantile_of<2>(args.state.misfits);
    if (threadIdx.x == warp_size) args.state.level->misfit = misfit;
  }
}

__global__ void __launch_bounds__(point_threads) give_up_chance(const __grid_constant__ TrustArguments args) {
  const TrustState& state = args.state;
  const track::FrameLevel level = *state.level;
  const auto is_chance = [&](std::int32_t i, const Quality& q) {
    const std::int32_t group = first_member(state.parent, i), members = state.members[group];
    return track::is_suspicious_group(members, state.contested[group], args.large, *state.trackable) &&
           !(track::may_differ(members, args.large) && track::is_explained(q.zncc, q.residual, level));
  };
  for_each_point(args.points.grid.count, [&](std::int32_t i) {
    const Quality q = state.qualities[i];
    if (q.residual < 0) return;
    if (track::is_noise_only(q.zncc, q.residual, level))
      args.tracked[i].result.status = Status::flat;
    else if (state.open[i] && is_chance(i, q))
      args.tracked[i].result.status = Status::low_correlation;
  });
}

/// Number of ints that must be zero at first, at the start of the memory; unique and as_good only with
/// alternatives.
std::size_t zero_ints(std::int64_t count, bool alternatives) {
  return 2 * classes + 3 + (alternatives ? 2 * static_cast<std::size_t>(count) : 0);
}

TrustState state_in(void* workspace, std::int64_t count, bool alternatives) {
  auto* next = static_cast<std::int32_t*>(workspace);
  const auto take = [&next](std::int64_t ints) { return std::exchange(next, next + ints); };
  TrustState state{};
  state.residuals = take(classes);  // misfits follow
  state.misfits = take(classes);
  state.trackable = take(1);
  state.any_open = take(1);
  state.unclear_tiles = take(1);
  if (alternatives) state.unique = take(count), state.as_good = take(count);
  state.level = reinterpret_cast<track::FrameLevel*>(take(sizeof(track::FrameLevel) / sizeof(*next)));
  state.parent = take(count);
  state.members = take(count);
  state.contested = take(count);
  state.qualities = reinterpret_cast<Quality*>(take(count * sizeof(Quality) / sizeof(*next)));
  state.unclear = next;
  state.open = reinterpret_cast<std::uint8_t*>(next + count);
  return state;
}

}  // namespace

std::size_t trust_workspace_bytes(std::int64_t count) {
  constexpr std::size_t of_point = 4 * sizeof(std::int32_t) + sizeof(Quality) + sizeof(std::uint8_t);
  return zero_ints(count, true) * sizeof(std::int32_t) + sizeof(track::FrameLevel) +
         of_point * static_cast<std::size_t>(count);
}

void launch_judge_points(const TrustFrame& frame, void* workspace, StreamHandle stream) {
  const std::int64_t n = frame.points.count;
  if (n == 0) return;
  const bool alternatives = frame.alternatives != nullptr;
  const TrustArguments args{{frame.points, frame.tracked},
                            frame.tracked,
                            frame.alternatives,
                            track::large_group(frame.subset, frame.step),
                            static_cast<double>(frame.subset) * frame.subset,
                            NodeTiles(frame.points),
                            state_in(workspace, n, alternatives)};
  fill(workspace, 0, zero_ints(n, alternatives) * sizeof(std::int32_t), stream);
  const unsigned blocks = grid_size(n, point_threads), few = std::min(blocks, blocks_for_open);
  const unsigned tiles = grid_size(args.tiles.count(), 1);
  group_clear_tiles<<<tiles, point_threads, 0, stream>>>(args);
  group_unclear_tiles<<<std::min(tiles, blocks_for_open), point_threads, 0, stream>>>(args);
  unite_tiles<<<few, point_threads, 0, stream>>>(args);
  add_members<<<few, point_threads, 0, stream>>>(args);
  if (alternatives) count_alternatives<<<few, point_threads, 0, stream>>>(args);
  find_contested<<<few, point_threads, 0, stream>>>(args);
  if (alternatives) mark_ambiguous<<<few, point_threads, 0, stream>>>(args);
  count_classes<<<few, point_threads, 0, stream>>>(args);
  find_level<<<1, 2 * warp_size, 0, stream>>>(args);
  give_up_chance<<<blocks, point_threads, 0, stream>>>(args);
  check_launch(describe_points("matches by chance", n));
}

}  // namespace dic::kernels
