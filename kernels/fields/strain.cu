#include <cuda/std/cstdint>
#include <dic/shared/strain.hpp>

#include "fields/nodes.cuh"

// Complete windows as separable sums, by tiles of nodes. Nodes whose window is not complete are listed and
// done afterwards, by teams of lanes that hold a window as rows of bits.
namespace dic::kernels {
namespace {

/// What both kernels need.
struct StrainJob {
  DeviceGrid grid;
  FieldArrays field;
  FieldsMemory memory;
  int window;
  double complete_scale;
  StrainMeasure measure;
};

__device__ void store(const FieldArrays& field, int node, const strain::Gradient& gradient,
                      StrainMeasure measure) {
  const strain::Values values = strain::values_of(strain::tensor_of(gradient, measure));
  field.exx[node] = values.exx;
  field.eyy[node] = values.eyy;
  field.exy[node] = values.exy;
  field.e1[node] = values.e1;
  field.e2[node] = values.e2;
  field.von_mises[node] = values.von_mises;
}
__device__ void store_missing(const FieldArrays& field, int node) {
  const auto none = static_cast<float>(strain::missing);
  field.exx[node] = field.eyy[node] = field.exy[node] = none;
  field.e1[node] = field.e2[node] = field.von_mises[node] = none;
}

// ---- Complete windows ----

constexpr int threads = 256;
constexpr int tile_columns = 64, tile_rows = 8;
constexpr int rows_of_thread = 4;  ///< whose sums over a column share their loads
static_assert(tile_rows % rows_of_thread == 0);

/// Sums of f and of j f over the window's part of a column, j counted from its centre.
struct alignas(16) ColumnSums {
  double sum, moment;
};

/// The sums of one column for neighbouring rows of nodes, the first of whose windows begin at (x, y).
__device__ void sum_column(const StrainJob& job, const double* component, int x, int y,
                           ColumnSums (&sums)[rows_of_thread]) {
#pragma unroll
  for (ColumnSums& of_row : sums) of_row = {0, 0};
  double j = -(job.window / 2);
#pragma unroll 4
  for (int row = 0; row < job.window + rows_of_thread - 1; ++row, j += 1) {
    const bool usable = job.memory.usable.holds(x, y + row);
    const double f = usable ? component[(y + row) * job.grid.nx + x] : strain::missing;
    const double jf = j * f;
#pragma unroll
    for (int k = 0; k < rows_of_thread; ++k)
      if (row >= k && row < job.window + k) sums[k].sum += f, sums[k].moment += jf;
  }
#pragma unroll
  for (int k = 1; k < rows_of_thread; ++k) sums[k].moment -= k * sums[k].sum;  // j counted from the first
}

/// Slopes at a node, from the column sums of its window; NaN where that is not complete.
__device__ strain::Slopes slopes(const ColumnSums* columns, int window, double scale) {
  double moment_x = 0, moment_y = 0, i = -(window / 2);
#pragma unroll 4
  for (int k = 0; k < window; ++k, i += 1) {
    moment_x += i * columns[k].sum;
    moment_y += columns[k].moment;
  }
  return {moment_x * scale, moment_y * scale};
}

/// A block does a tile of nodes.
__global__ void __launch_bounds__(threads) complete_windows(const __grid_constant__ StrainJob job) {
  extern __shared__ ColumnSums columns[];  // [component][row of the tile][column]
  const int half = job.window / 2, width = tile_columns + 2 * half;
  const int tiles_across = (job.grid.nx + tile_columns - 1) / tile_columns;
  const int x0 = static_cast<int>(blockIdx.x) % tiles_across * tile_columns;
  const int y0 = static_cast<int>(blockIdx.x) / tiles_across * tile_rows;

  constexpr int groups = tile_rows / rows_of_thread;
  for (int task = threadIdx.x; task < 2 * groups * width; task += threads) {
    const int column = task % width, row = task / width % groups * rows_of_thread;
    const bool of_v = task >= groups * width;
    ColumnSums sums[rows_of_thread];
    sum_column(job, of_v ? job.field.v : job.field.u, x0 - half + column, y0 - half + row, sums);
#pragma unroll
    for (int k = 0; k < rows_of_thread; ++k) columns[(of_v * tile_rows + row + k) * width + column] = sums[k];
  }
  __syncthreads();

  for (int task = threadIdx.x; task < tile_columns * tile_rows; task += threads) {
    const int column = task % tile_columns, row = task / tile_columns;
    const int i = x0 + column, j = y0 + row, node = j * job.grid.nx + i;
    if (i >= job.grid.nx || j >= job.grid.ny) continue;
    const Status status = job.field.status[node];
    if (!job.grid.inside[node] || (status != Status::ok && status != Status::outlier)) {
      store_missing(job.field, node);
      continue;
    }
    const ColumnSums* first = columns + row * width + column;
    const auto [ux, uy] = slopes(first, job.window, job.complete_scale);
    const auto [vx, vy] = slopes(first + tile_rows * width, job.window, job.complete_scale);
    if (isnan(ux))
      job.memory.partial[atomicAdd(job.memory.partial_count, 1)] = node;
    else
      store(job.field, node, {ux, uy, vx, vy}, job.measure);
  }
}

// ---- Partial windows ----

using Bits32 = std::uint32_t;
using Bits64 = unsigned long long;
using Bits128 = unsigned __int128;

/// The bits of another lane of the team.
template <typename Bits>
__device__ Bits from_lane(Bits bits, int lane, int lanes) {
  if constexpr (sizeof(Bits) == sizeof(Bits128)) {
    const auto low = static_cast<Bits64>(bits), high = static_cast<Bits64>(bits >> 64);
    return Bits{from_lane(high, lane, lanes)} << 64 | from_lane(low, lane, lanes);
  } else {
    return __shfl_sync(0xffffffffu, bits, lane, lanes);
  }
}

/// Nodes i .. i + window - 1 of row j, from bit 0 on.
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

/// The nodes of a window, spread over a team: lane l has `rows` rows from l * rows on. What is said of one
/// team is done by all teams of the warp together.
template <typename Bits, int kLanes>
class WindowNodes {
 public:
  static constexpr int lanes = kLanes;
  static constexpr int rows = sizeof(Bits) / sizeof(Bits32);

  /// Those that 4-neighbour steps inside the window connect with its centre (i, j).
  __device__ WindowNodes(const NodeSet& usable, int i, int j, int window) : window_(window) {
    const int half = window / 2, first_row = lane() * rows;
    const Bits centre = Bits{1} << half;
#pragma unroll
    for (int k = 0; k < rows; ++k) {
      const int row = first_row + k;
      usable_[k] = row < window ? bits_of_row<Bits>(usable, i - half, j - half + row, window) : Bits{0};
      if (row == half) usable_[k] |= centre;  // it starts the search even where it is an outlier itself
      reached_[k] = row == half ? strain::spread_along(centre, usable_[k], window) : Bits{0};
    }
    spread();
#pragma unroll
    for (int k = 0; k < rows; ++k)
      if (first_row + k == half && !usable.holds(i, j)) reached_[k] &= ~centre;
  }

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % lanes; }

  /// Calls visit(row, bits) for all rows of the window, with the same in all lanes.
  template <typename Visit>
  __device__ void for_each_row(Visit&& visit) const {
    for (int owner = 0; owner * rows < window_; ++owner) {
#pragma unroll
      for (int k = 0; k < rows; ++k) visit(owner * rows + k, from_lane(reached_[k], owner, lanes));
    }
  }

 private:
  /// From row to row until nothing changes; rows that hold something hold whole runs.
  __device__ void spread() {
    for (bool changed = true; __any_sync(0xffffffffu, changed);) {
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

/// Sums over the team's lanes, in all of them.
template <int kLanes, typename Sum>
__device__ Sum over_team(Sum sum) {
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, offset);
  return sum;
}

/// Sums of a window, or of a lane's part of it.
struct WindowSums {
  int n = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
  strain::DataMoments u, v;

  template <int kLanes>
  __device__ void sum_over_team() {
    for (int* sum : {&n, &x, &y, &xx, &xy, &yy}) *sum = over_team<kLanes>(*sum);
    for (strain::DataMoments* f : {&u, &v}) {
      f->sum = over_team<kLanes>(f->sum);
      f->x = over_team<kLanes>(f->x);
      f->y = over_team<kLanes>(f->y);
    }
  }
  __device__ strain::NodeMoments nodes() const {
    return {double(n), double(x), double(y), double(xx), double(xy), double(yy)};
  }
};

/// Sums over window column `column`, which is the lane's own.
template <typename Nodes>
__device__ void add_column(const StrainJob& job, const Nodes& nodes, int column, int first_node,
                           WindowSums& sums) {
  const int half = job.window / 2, x = column - half;
  int n = 0, y_sum = 0, yy_sum = 0;
  double u = 0, v = 0, yu = 0, yv = 0;
  nodes.for_each_row([&](int row, auto bits) {
    if (!(bits >> column & 1)) return;
    const int node = first_node + row * job.grid.nx + column, y = row - half;
    const double of_u = job.field.u[node], of_v = job.field.v[node];
    n += 1, y_sum += y, yy_sum += y * y;
    u += of_u, yu += y * of_u;
    v += of_v, yv += y * of_v;
  });
  sums.n += n, sums.x += x * n, sums.xx += x * x * n;
  sums.y += y_sum, sums.yy += yy_sum, sums.xy += x * y_sum;
  sums.u.sum += u, sums.u.x += x * u, sums.u.y += yu;
  sums.v.sum += v, sums.v.x += x * v, sums.v.y += yv;
}

/// A team does a node.
template <typename Bits, int kLanes>
__global__ void __launch_bounds__(threads) partial_windows(const __grid_constant__ StrainJob job) {
  using Nodes = WindowNodes<Bits, kLanes>;
  constexpr int teams = warp_size / kLanes;
  const int count = *job.memory.partial_count;
  for_each_task((count + teams - 1) / teams, threads / warp_size, warp_index(), [&](std::int64_t task) {
    const int index = static_cast<int>(task) * teams + static_cast<int>(threadIdx.x) % warp_size / kLanes;
    const int node = job.memory.partial[min(index, count - 1)];  // all teams work to the end
    const int i = node % job.grid.nx, j = node / job.grid.nx, half = job.window / 2;
    const Nodes nodes(job.memory.usable, i, j, job.window);
    WindowSums sums;
#pragma unroll
    for (int k = 0; k < Nodes::rows; ++k)
      add_column(job, nodes, Nodes::lane() + k * kLanes, node - half * job.grid.nx - half, sums);
    sums.sum_over_team<kLanes>();
    if (Nodes::lane() != 0 || index >= count) return;
    if (!strain::PartialPlane::has_enough(sums.n, job.window)) return store_missing(job.field, node);
    const strain::PartialPlane plane(sums.nodes(), job.grid.step);
    const auto [ux, uy] = plane.slopes(sums.u);
    const auto [vx, vy] = plane.slopes(sums.v);
    store(job.field, node, {ux, uy, vx, vy}, job.measure);
  });
}

auto partial_kernel(int window) {
  if (window <= 7) return partial_windows<Bits32, 8>;
  if (window <= 15) return partial_windows<Bits32, 16>;
  if (window <= 31) return partial_windows<Bits32, 32>;
  if (window <= 63) return partial_windows<Bits64, 32>;
  return partial_windows<Bits128, 32>;
}

}  // namespace

void launch_strain(const DeviceGrid& grid, const FieldArrays& field, const StrainOptions& options,
                   void* workspace, StreamHandle stream) {
  if (grid.nodes() == 0) return;
  const StrainJob job{grid,
                      field,
                      FieldsMemory(grid, workspace),
                      options.window,
                      strain::complete_window_scale(options.window, grid.step),
                      options.measure};
  launch_find_usable(grid, field, job.memory, stream);
  fill(job.memory.partial_count, 0, sizeof(std::int32_t), stream);

  const std::int64_t across = (grid.nx + tile_columns - 1) / tile_columns;
  const std::int64_t down = (grid.ny + tile_rows - 1) / tile_rows;
  const std::size_t shared = 2 * tile_rows * (tile_columns + options.window - 1) * sizeof(ColumnSums);
  complete_windows<<<grid_size(across * down, 1), threads, shared, stream>>>(job);

  constexpr std::int64_t most_blocks =
      2048;  // enough for the largest GPU; how many nodes there are is not known here
  const std::int64_t blocks = std::min(most_blocks, grid.nodes() / (threads / warp_size) + 1);
  partial_kernel(options.window)<<<static_cast<unsigned>(blocks), threads, 0, stream>>>(job);
  check_launch(describe("strain", grid));
}

}  // namespace dic::kernels
