#include <dic/shared/strain.hpp>
#include <dic/shared/strain_flattening.hpp>
#include <dic/shared/strain_sigma.hpp>
#include <dic/shared/tears.hpp>

#include "common/shared_memory.hpp"
#include "fields/nodes.cuh"

// Sums over windows are separable: tiles of nodes first sum columns, then rows, without missing nodes. Only
// nodes that are connected with the centre may take part. In a window where no two missing nodes touch, all
// nodes are connected. Other windows are listed and processed afterwards by teams of lanes, which hold a
// window as rows of bits.
namespace dic::kernels {
namespace {

/// Arguments of both kernels.
struct StrainJob {
  DeviceGrid grid;
  FieldArrays field;
  FieldsMemory memory;
  int window;
  double complete_scale;
  strain::SlopeCovariance complete_covariance;
  StrainMeasure measure;
  strain::ErrorCorrelation errors;
};

/// Variances of u and v around node (i, j).
__device__ strain::NodeVariances variances_around(const StrainJob& job, int i, int j) {
  return {job.window, [&](int di, int dj) -> strain::NodeSigmas {
            const int x = i + di, y = j + dj;
            if (x < 0 || x >= job.grid.nx || y < 0 || y >= job.grid.ny)
              return {float(strain::missing), float(strain::missing)};
            const int node = y * job.grid.nx + x;
            return {job.field.sigma_u[node], job.field.sigma_v[node]};
          }};
}

/// A plane through u and v, and the covariance of its slopes for errors of variance 1.
struct Plane {
  strain::Gradient gradient;
  strain::SlopeCovariance covariance;
};

__device__ void store(const StrainJob& job, StrainMeasure measure, int node, const Plane& plane) {
  const FieldArrays& field = job.field;
  const strain::Values values = strain::values_of(strain::tensor_of(plane.gradient, measure));
  field.exx[node] = values.exx;
  field.eyy[node] = values.eyy;
  field.exy[node] = values.exy;
  field.e1[node] = values.e1;
  field.e2[node] = values.e2;
  field.von_mises[node] = values.von_mises;
  const int i = node % job.grid.nx, j = node / job.grid.nx;
  const strain::SlopeCovariance covariance =
      strain::near_borders(plane.covariance, job.errors.border, i, j, job.grid.nx, job.grid.ny);
  const strain::Sigmas sigmas =
      strain::sigmas_of(plane.gradient, measure, covariance, variances_around(job, i, j));
  field.sigma_exx[node] = sigmas.exx;
  field.sigma_eyy[node] = sigmas.eyy;
  field.sigma_exy[node] = sigmas.exy;
}
__device__ void store_missing(const FieldArrays& field, int node) {
  const auto none = static_cast<float>(strain::missing);
  field.exx[node] = field.eyy[node] = field.exy[node] = none;
  field.e1[node] = field.e2[node] = field.von_mises[node] = none;
  field.sigma_exx[node] = field.sigma_eyy[node] = field.sigma_exy[node] = none;
}

/// Sums of a window, or of a part of it.
struct WindowSums {
  int n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  strain::DataMoments u, v;

  __device__ strain::NodeMoments nodes() const {
    return {double(n), double(x), double(y), double(xx), double(xy), double(yy)};
  }
};

/// Plane of a window in which only some nodes take part. Requires PartialPlane::has_enough nodes.
__device__ Plane partial_plane(const StrainJob& job, const WindowSums& sums) {
  const strain::PartialPlane plane(sums.nodes(), job.grid.step);
  const auto [ux, uy] = plane.slopes(sums.u);
  const auto [vx, vy] = plane.slopes(sums.v);
  return {{ux, uy, vx, vy},
          strain::partial_window_covariance(job.errors, sums.n, plane.xx(), plane.xy(), plane.yy())};
}

// ---- Tiles ----

constexpr int threads = 256;
constexpr int tile_columns = 64, tile_rows = 8;
constexpr int rows_per_thread = 4;  ///< rows that use the same loads for their sums over a column
constexpr int row_groups = tile_rows / rows_per_thread;
static_assert(tile_rows % rows_per_thread == 0);

/// Sums of f and of j f over the window's part of a column, j counted from the centre of the window.
struct alignas(16) ColumnSums {
  double sum, moment;
};
/// Nodes in the window's part of a column: number of usable ones, their sums of j and of j^2, and number of
/// clustered ones.
struct alignas(16) ColumnCounts {
  int n, y, yy, clustered;
};

/// Sums of the columns of a block, [row of the tile][column] each.
struct TileMemory {
  ColumnSums *u, *v;
  ColumnCounts* counts;
  int width;

  __device__ TileMemory(int window, void* shared)
      : u(static_cast<ColumnSums*>(shared)),
        v(u + cells(window)),
        counts(reinterpret_cast<ColumnCounts*>(v + cells(window))),
        width(columns(window)) {}
  static int bytes(int window) {
    return cells(window) * static_cast<int>(2 * sizeof(ColumnSums) + sizeof(ColumnCounts));
  }

 private:
  __host__ __device__ static int columns(int window) { return tile_columns + window - 1; }
  __host__ __device__ static int cells(int window) { return tile_rows * columns(window); }
};

/// Sums one column for neighbouring rows of nodes, whose first window begins at (x, y). Returns false if
/// nodes are missing.
__device__ bool sum_column(const StrainJob& job, const double* component, int x, int y,
                           ColumnSums (&sums)[rows_per_thread]) {
#pragma unroll
  for (ColumnSums& row : sums) row = {0, 0};
  bool complete = true;
  double j = -(job.window / 2);
#pragma unroll 4
  for (int row = 0; row < job.window + rows_per_thread - 1; ++row, j += 1) {
    const bool usable = job.memory.usable.holds(x, y + row);
    complete &= usable;
    const double f = usable ? component[(y + row) * job.grid.nx + x] : 0, jf = j * f;
#pragma unroll
    for (int k = 0; k < rows_per_thread; ++k)
      if (row >= k && row < job.window + k) sums[k].sum += f, sums[k].moment += jf;
  }
#pragma unroll
  for (int k = 1; k < rows_per_thread; ++k)
    sums[k].moment -= k * sums[k].sum;  // j counted from the first
                                        // row of the window
  return complete;
}
__device__ void count_column(const StrainJob& job, int x, int y, ColumnCounts (&counts)[rows_per_thread]) {
#pragma unroll
  for (ColumnCounts& row : counts) row = {0, 0, 0, 0};
  for (int row = 0; row < job.window + rows_per_thread - 1; ++row) {
    const int usable = job.memory.usable.holds(x, y + row),
              clustered = job.memory.clustered.holds(x, y + row);
#pragma unroll
    for (int k = 0; k < rows_per_thread; ++k) {
      if (row < k || row >= job.window + k) continue;
      const int j = (row - k - job.window / 2) * usable;
      counts[k] = {counts[k].n + usable, counts[k].y + j, counts[k].yy + j * j,
                   counts[k].clustered + clustered};
    }
  }
}

/// Calls body(table, column, row) for all columns of the tile's windows and every rows_per_thread-th row of
/// nodes.
template <typename Body>
__device__ void for_each_stretch(const TileMemory& tile, int tables, Body&& body) {
  for (int task = threadIdx.x; task < tables * row_groups * tile.width; task += threads) {
    const int line = task / tile.width;
    body(line / row_groups, task - line * tile.width, line % row_groups * rows_per_thread);
  }
}
template <typename Sums>
__device__ void keep(const Sums (&sums)[rows_per_thread], const TileMemory& tile, int column, int row,
                     Sums* table) {
#pragma unroll
  for (int k = 0; k < rows_per_thread; ++k) table[(row + k) * tile.width + column] = sums[k];
}

/// Slopes at a node, from the column sums of its complete window.
__device__ strain::Slopes slopes(const ColumnSums* columns, int window, double scale) {
  double moment_x = 0, moment_y = 0, i = -(window / 2);
#pragma unroll 4
  for (int k = 0; k < window; ++k, i += 1) {
    moment_x += i * columns[k].sum;
    moment_y += columns[k].moment;
  }
  return {moment_x * scale, moment_y * scale};
}
/// Sums of a window from those of its columns; `first`: first column of the window in the tables.
__device__ WindowSums sum_window(const TileMemory& tile, int first, int window, int& clustered) {
  WindowSums sums;
  clustered = 0;
  for (int k = 0; k < window; ++k) {
    const int i = k - window / 2;
    const ColumnSums u = tile.u[first + k], v = tile.v[first + k];
    const ColumnCounts counts = tile.counts[first + k];
    sums.n += counts.n, sums.x += i * counts.n, sums.xx += i * i * counts.n;
    sums.y += counts.y, sums.yy += counts.yy, sums.xy += i * counts.y;
    sums.u.sum += u.sum, sums.u.x += i * u.sum, sums.u.y += u.moment;
    sums.v.sum += v.sum, sums.v.x += i * v.sum, sums.v.y += v.moment;
    clustered += counts.clustered;
  }
  return sums;
}

/// The nodes that a block leaves to the teams, appended to the list with one atomic addition.
struct LeftOver {
  int count, place;
  std::int32_t nodes[tile_columns * tile_rows];

  __device__ void add(int node) { nodes[atomicAdd(&count, 1)] = node; }
  /// Appends the nodes; the block must have synchronized.
  __device__ void append_to(const FieldsMemory& memory) {
    if (threadIdx.x == 0) place = atomicAdd(memory.list_length, count);
    __syncthreads();
    for (int i = threadIdx.x; i < count; i += threads) memory.list[place + i] = nodes[i];
  }
};

/// Processes one tile of nodes per block. A kernel for the usual measure alone needs fewer registers.
template <bool kGreenLagrange>
__global__ void __launch_bounds__(threads, kGreenLagrange ? 3 : 2)
    strain_of_tiles(const __grid_constant__ StrainJob job) {
  extern __shared__ uint4 shared[];
  __shared__ LeftOver left_over;
  const TileMemory tile(job.window, shared);
  const int half = job.window / 2;
  const int tiles_across = (job.grid.nx + tile_columns - 1) / tile_columns;
  const int x0 = static_cast<int>(blockIdx.x) % tiles_across * tile_columns;
  const int y0 = static_cast<int>(blockIdx.x) / tiles_across * tile_rows;

  if (threadIdx.x == 0) left_over.count = 0;
  bool complete = true;
  for_each_stretch(tile, 2, [&](int component, int column, int row) {
    ColumnSums sums[rows_per_thread];
    complete &= sum_column(job, component == 0 ? job.field.u : job.field.v, x0 - half + column,
                           y0 - half + row, sums);
    keep(sums, tile, column, row, component == 0 ? tile.u : tile.v);
  });
  complete = __syncthreads_and(complete);
  if (!complete) {
    for_each_stretch(tile, 1, [&](int, int column, int row) {
      ColumnCounts counts[rows_per_thread];
      count_column(job, x0 - half + column, y0 - half + row, counts);
      keep(counts, tile, column, row, tile.counts);
    });
    __syncthreads();
  }

  for (int task = threadIdx.x; task < tile_columns * tile_rows; task += threads) {
    const int column = task % tile_columns, row = task / tile_columns;
    const int i = x0 + column, j = y0 + row, node = j * job.grid.nx + i, first = row * tile.width + column;
    if (i >= job.grid.nx || j >= job.grid.ny) continue;
    const Status status = job.field.status[node];
    if (!job.grid.inside[node] || (status != Status::ok && status != Status::outlier)) {
      store_missing(job.field, node);
      continue;
    }
    int clustered = 0;
    WindowSums sums;
    if (!complete) sums = sum_window(tile, first, job.window, clustered);
    Plane plane{.covariance = job.complete_covariance};
    if (complete || sums.n == job.window * job.window) {
      const auto [ux, uy] = slopes(tile.u + first, job.window, job.complete_scale);
      const auto [vx, vy] = slopes(tile.v + first, job.window, job.complete_scale);
      plane.gradient = {ux, uy, vx, vy};
    } else if (!strain::PartialPlane::has_enough(sums.n, job.window)) {
      store_missing(job.field, node);
      continue;
    } else if (clustered == 0) {
      plane = partial_plane(job, sums);
    } else {
      left_over.add(node);
      continue;
    }
    store(job, kGreenLagrange ? StrainMeasure::green_lagrange : job.measure, node, plane);
  }
  __syncthreads();
  left_over.append_to(job.memory);
}

/// Finds the usable nodes that are not next to tears, one word per warp.
__global__ void __launch_bounds__(word_threads)
    find_untorn(const __grid_constant__ DeviceGrid grid, const __grid_constant__ FieldArrays field,
                const __grid_constant__ NodeSet untorn) {
  const auto is_usable = [&](int x, int y) {
    const int k = y * grid.nx + x;
    return x >= 0 && y >= 0 && x < grid.nx && y < grid.ny && grid.inside[k] && field.status[k] == Status::ok;
  };
  for_each_word_node(untorn, [&](const WordNode& node) {
    const auto at = [&](int di, int dj) -> strain::TearNode {
      const int x = node.i + di, y = node.j + dj, k = y * grid.nx + x;
      if (!is_usable(x, y)) return {strain::missing, strain::missing, 0, 0};
      return {field.u[k], field.v[k], field.sigma_u[k], field.sigma_v[k]};
    };
    const bool holds = is_usable(node.i, node.j) && !(field.sigma_u && strain::is_beside_tear(at, grid.step));
    const std::uint32_t word = __ballot_sync(all_lanes, holds);
    if (threadIdx.x % warp_size == 0) untorn.words[node.word] = word;
  });
}

/// Finds the clustered nodes, one word per thread.
__global__ void __launch_bounds__(threads)
    find_clustered(const __grid_constant__ NodeSet usable, const __grid_constant__ NodeSet clustered) {
  for_each_task(std::int64_t{usable.row_words} * usable.ny, threads, threadIdx.x, [&](std::int64_t task) {
    const int w = static_cast<int>(task) % usable.row_words, j = static_cast<int>(task) / usable.row_words;
    const auto missing = [&](int word, int row) -> std::uint32_t {
      if (word < 0 || word >= usable.row_words || row < 0 || row >= usable.ny) return 0;
      const int nodes = min(usable.nx - word * warp_size, warp_size);
      return ~usable.word(word, row) & (0xffffffffu >> (warp_size - nodes));
    };
    std::uint32_t touched = 0;
    for (int row = j - 1; row <= j + 1; ++row) {
      const std::uint32_t here = missing(w, row);
      touched |= here << 1 | missing(w - 1, row) >> 31 | here >> 1 | missing(w + 1, row) << 31;
      if (row != j) touched |= here;
    }
    clustered.words[task] = missing(w, j) & touched;
  });
}

// ---- Teams ----

using Bits32 = std::uint32_t;
using Bits64 = unsigned long long;
using Bits128 = unsigned __int128;

/// Returns the bits of another lane of the team.
template <typename Bits>
__device__ Bits from_lane(Bits bits, int lane, int lanes) {
  if constexpr (sizeof(Bits) == sizeof(Bits128)) {
    const auto low = static_cast<Bits64>(bits), high = static_cast<Bits64>(bits >> 64);
    return Bits{from_lane(high, lane, lanes)} << 64 | from_lane(low, lane, lanes);
  } else {
    return __shfl_sync(all_lanes, bits, lane, lanes);
  }
}

/// Nodes i .. i + window - 1 of row j, beginning with bit 0.
template <typename Bits>
__device__ Bits bits_of_row(const NodeSet& set, int i, int j, int window) {
  const int first = i >> 5, offset = i & 31;
  Bits bits = 0;
  std::uint32_t low = set.word(first, j);
#pragma unroll
  for (int k = 0; k < sizeof(Bits) / 4; ++k) {
    const std::uint32_t high = set.word(first + k + 1, j);
    bits |= Bits{__funnelshift_r(low, high, offset)} << (32 * k);
    low = high;
  }
  return bits & ((Bits{1} << window) - 1);
}

/// The nodes of a window, distributed over a team: lane l has `rows` rows, beginning with l * rows. All teams
/// of a warp must call its functions together.
template <typename Bits, int kLanes>
class WindowNodes {
 public:
  static constexpr int lanes = kLanes;
  static constexpr int rows = sizeof(Bits) / sizeof(Bits32);

  /// Finds the nodes that are connected with the centre (i, j) by steps to one of 4 neighbours inside the
  /// window.
  __device__ WindowNodes(const NodeSet& usable, int i, int j, int window) : window_(window) {
    const int half = window / 2, first_row = lane() * rows;
    const Bits centre = Bits{1} << half;
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      const int row = first_row + k;
      usable_[k] = row < window ? bits_of_row<Bits>(usable, i - half, j - half + row, window) : Bits{0};
      if (row == half) usable_[k] |= centre;  // the search begins there even if the centre is an outlier
      reached_[k] = row == half ? strain::spread_along(centre, usable_[k], window) : Bits{0};
    }
    spread();
#pragma unroll
    for (int k = 0; k < rows; ++k)
      if (first_row + k == half && !usable.holds(i, j)) reached_[k] &= ~centre;
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % lanes; }

  /// Calls visit(row, bits) for all rows of the window, with the same arguments in all lanes.
  template <typename Visit>
  __device__ void for_each_row(Visit&& visit) const {
#pragma unroll(4 / rows)
    for (int owner = 0; owner * rows < window_; ++owner) {
#pragma unroll
      for (int k = 0; k < rows; ++k) visit(owner * rows + k, from_lane(reached_[k], owner, lanes));
    }
  }

 private:
  /// Repeats steps from row to row until nothing changes. A reached row always has whole runs of nodes.
  __device__ void spread() {
    for (bool changed = true; __any_sync(all_lanes, changed);) {
      changed = false;
      const Bits above = from_lane(reached_[rows - 1], lane() - 1, lanes);
      const Bits below = from_lane(reached_[0], lane() + 1, lanes);
#pragma unroll
      for (int k = 0; k < rows; ++k) {
        Bits neighbours = k > 0 ? reached_[k - 1] : lane() > 0 ? above : Bits{0};
        neighbours |= k + 1 < rows ? reached_[k + 1] : lane() + 1 < lanes ? below : Bits{0};
        const Bits row = (reached_[k] | neighbours) & usable_[k];
        if (row == reached_[k]) continue;
        reached_[k] = strain::spread_along(row, usable_[k], window_);
        changed = true;
      }
    }
  }

  int window_;
  Bits usable_[rows], reached_[rows];
};

/// Sum over the team's lanes, returned in all of them.
template <int kLanes, typename Sum>
__device__ Sum over_team(Sum sum) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(all_lanes, sum, offset);
  return sum;
}

template <int kLanes>
__device__ void sum_over_team(WindowSums& sums) {
  for (int* sum : {&sums.n, &sums.x, &sums.y, &sums.xx, &sums.xy, &sums.yy}) *sum = over_team<kLanes>(*sum);
  for (strain::DataMoments* f : {&sums.u, &sums.v}) {
    f->sum = over_team<kLanes>(f->sum);
    f->x = over_team<kLanes>(f->x);
    f->y = over_team<kLanes>(f->y);
  }
}

/// Adds the sums over window column `column`, which belongs to this lane alone.
template <typename Nodes>
__device__ void add_column(const StrainJob& job, const Nodes& nodes, int column, int first_node,
                           WindowSums& sums) {
  const int half = job.window / 2, x = column - half;
  int n = 0, y_sum = 0, yy_sum = 0;
  double u = 0, v = 0, yu = 0, yv = 0;
  nodes.for_each_row([&](int row, auto bits) {
    if (!(bits >> column & 1)) return;
    const int node = first_node + row * job.grid.nx + column, y = row - half;
    const double node_u = job.field.u[node], node_v = job.field.v[node];
    n += 1, y_sum += y, yy_sum += y * y;
    u += node_u, yu += y * node_u;
    v += node_v, yv += y * node_v;
  });
  sums.n += n, sums.x += x * n, sums.xx += x * x * n;
  sums.y += y_sum, sums.yy += yy_sum, sums.xy += x * y_sum;
  sums.u.sum += u, sums.u.x += x * u, sums.u.y += yu;
  sums.v.sum += v, sums.v.x += x * v, sums.v.y += yv;
}

/// Processes one node per team.
template <typename Bits, int kLanes>
__global__ void __launch_bounds__(threads) strain_of_list(const __grid_constant__ StrainJob job) {
  using Nodes = WindowNodes<Bits, kLanes>;
  constexpr int teams = warp_size / kLanes;
  const int count = *job.memory.list_length;
  for_each_task((count + teams - 1) / teams, threads / warp_size, warp_index(), [&](std::int64_t task) {
    const int index = static_cast<int>(task) * teams + static_cast<int>(threadIdx.x) % warp_size / kLanes;
    const int node = job.memory.list[min(index, count - 1)];  // all teams must loop equally often
    const int i = node % job.grid.nx, j = node / job.grid.nx, half = job.window / 2;
    const Nodes nodes(job.memory.usable, i, j, job.window);
    WindowSums sums;
#pragma unroll(Nodes::rows > 2 ? 1 : Nodes::rows)  // four at once need more registers than are available
    for (int k = 0; k < Nodes::rows; ++k)
      add_column(job, nodes, Nodes::lane() + k * kLanes, node - half * job.grid.nx - half, sums);
    sum_over_team<kLanes>(sums);
    if (Nodes::lane() != 0 || index >= count) return;
    if (strain::PartialPlane::has_enough(sums.n, job.window))
      store(job, job.measure, node, partial_plane(job, sums));
    else
      store_missing(job.field, node);
  });
}

/// Finds what windows and subsets flatten at one node per thread.
__global__ void __launch_bounds__(threads)
    find_flattening(const __grid_constant__ StrainJob job,
                    const __grid_constant__ strain::Flattening flattening) {
  for_each_task(std::int64_t{job.grid.nx} * job.grid.ny, threads, threadIdx.x, [&](std::int64_t task) {
    const int node = static_cast<int>(task), i = node % job.grid.nx, j = node / job.grid.nx;
    const FieldArrays& field = job.field;
    job.memory.flattened[node] = strain::no_squares();
    if (std::isnan(field.exx[node])) return;
    const strain::Reach reach(flattening.half,
                              [&](int di, int dj) { return job.memory.usable.holds(i + di, j + dj); });
    const auto at = [&](int di, int dj) -> strain::Components {
      if (i + di < 0 || i + di >= job.grid.nx || j + dj < 0 || j + dj >= job.grid.ny)
        return strain::no_components();
      const std::int64_t other = node + std::int64_t{dj} * job.grid.nx + di;
      return {field.exx[other], field.eyy[other], field.exy[other]};
    };
    job.memory.flattened[node] = strain::flattening_of(
        {field.sigma_exx[node], field.sigma_eyy[node], field.sigma_exy[node]}, flattening, reach, at);
  });
}

/// Adds what windows and subsets flatten to the sigmas of one node per thread.
__global__ void __launch_bounds__(threads)
    add_flattening(const __grid_constant__ StrainJob job,
                   const __grid_constant__ strain::Flattening flattening) {
  for_each_task(std::int64_t{job.grid.nx} * job.grid.ny, threads, threadIdx.x, [&](std::int64_t task) {
    const int node = static_cast<int>(task), i = node % job.grid.nx, j = node / job.grid.nx;
    const FieldArrays& field = job.field;
    if (std::isnan(field.exx[node])) return;
    const strain::Sigmas sigmas = strain::with_flattening(
        {field.sigma_exx[node], field.sigma_eyy[node], field.sigma_exy[node]}, flattening,
        [&](int di, int dj) {
          if (i + di < 0 || i + di >= job.grid.nx || j + dj < 0 || j + dj >= job.grid.ny)
            return strain::no_squares();
          return job.memory.flattened[node + std::int64_t{dj} * job.grid.nx + di];
        });
    field.sigma_exx[node] = sigmas.exx;
    field.sigma_eyy[node] = sigmas.eyy;
    field.sigma_exy[node] = sigmas.exy;
  });
}

auto list_kernel(int window) {
  if (window <= 7) return strain_of_list<Bits32, 8>;
  if (window <= 15) return strain_of_list<Bits32, 16>;
  if (window <= 31) return strain_of_list<Bits32, 32>;
  if (window <= 63) return strain_of_list<Bits64, 32>;
  return strain_of_list<Bits128, 32>;
}

}  // namespace

void launch_strain(const DeviceGrid& grid, const FieldArrays& field, const StrainOptions& options,
                   const MeasuredSubsets& subsets, void* workspace, StreamHandle stream) {
  if (grid.nodes() == 0) return;
  const strain::ErrorCorrelation errors(subsets, grid.step, options.window);
  const StrainJob job{grid,
                      field,
                      FieldsMemory(grid, workspace),
                      options.window,
                      strain::complete_window_scale(options.window, grid.step),
                      strain::complete_window_covariance(errors, options.window),
                      options.measure,
                      errors};
  find_untorn<<<word_blocks(job.memory.usable), word_threads, 0, stream>>>(grid, field, job.memory.usable);
  find_clustered<<<grid_size(job.memory.usable.size(), threads), threads, 0, stream>>>(job.memory.usable,
                                                                                       job.memory.clustered);
  fill(job.memory.list_length, 0, sizeof(std::int32_t), stream);

  const std::int64_t across = (grid.nx + tile_columns - 1) / tile_columns;
  const std::int64_t down = (grid.ny + tile_rows - 1) / tile_rows;
  const int shared = TileMemory::bytes(options.window);
  const auto tiles =
      options.measure == StrainMeasure::green_lagrange ? strain_of_tiles<true> : strain_of_tiles<false>;
  allow_shared_memory(tiles, shared, describe("strain", grid));
  tiles<<<grid_size(across * down, 1), threads, shared, stream>>>(job);

  constexpr std::int64_t most_blocks =
      512;  // the length of the list, mostly short, is known only on the device
  const std::int64_t blocks = std::min(most_blocks, grid.nodes() / (threads / warp_size) + 1);
  list_kernel(options.window)<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(job);
  const strain::Flattening flattening(subsets, grid.step, options.window);
  find_flattening<<<grid_size(grid.nodes(), threads), threads, 0, stream>>>(job, flattening);
  add_flattening<<<grid_size(grid.nodes(), threads), threads, 0, stream>>>(job, flattening);
  check_launch(describe("strain", grid));
}

}  // namespace dic::kernels
