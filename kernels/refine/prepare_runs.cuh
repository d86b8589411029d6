#pragma once

#include "refine/prepare_common.cuh"

// Preparation of neighbouring points in one row of pixels, whose subsets have most columns in common. A warp
// sums every column once, one lane per column. Then one lane per point adds its columns and inverts its
// Gauss-Newton matrix, in float. Subsets for which float is not precise enough (clipped, masked and nearly
// flat ones) stay pending for prepare.cu, and all subsets if pixels have weights.
namespace dic::kernels {

constexpr int run_threads = 128;
/// Largest number of columns that a warp sums at once.
constexpr int run_columns = 192;

/// Sums over a column, in this order: dx dx, dx dy and dy dy times powers of j; dx, dy, f dx and f dy times
/// powers of j; f and f f.
template <int kOrder>
struct ColumnSums {
  static constexpr int powers = 2 * kOrder + 1, few = kOrder + 1;
  static constexpr int products = 0, linear = 3 * powers, grey = linear + 2 * few, count = grey + 2 * few + 2;
  float values[count] = {};

  __device__ void add(float f, float dx, float dy, float j) {
    float power = 1;
#pragma unroll
    for (int b = 0; b < powers; ++b, power *= j) {
      const float x = power * dx, y = power * dy;
      values[b] += x * dx;
      values[powers + b] += x * dy;
      values[2 * powers + b] += y * dy;
      if (b >= few) continue;
      values[linear + b] += x;
      values[linear + few + b] += y;
      values[grey + b] += f * x;
      values[grey + few + b] += f * y;
    }
    values[count - 2] += f;
    values[count - 1] += f * f;
  }
};

/// Adds a column of pixels to the sums over a subset.
template <int kOrder>
__device__ void add(Sums<kOrder>& sums, const ColumnSums<kOrder>& column, float i) {
  using Column = ColumnSums<kOrder>;
  constexpr int terms = Sums<kOrder>::terms;
  float power = 1;
#pragma unroll
  for (int a = 0; a < Column::powers; ++a, power *= i)
#pragma unroll
    for (int b = 0; a + b < Column::powers; ++b) {
      const int k = icgn::monomial_index(a, b);
      sums.dx_dx[k] += power * column.values[b];
      sums.dx_dy[k] += power * column.values[Column::powers + b];
      sums.dy_dy[k] += power * column.values[2 * Column::powers + b];
      if (a + b >= Column::few) continue;
      sums.linear[k] += power * column.values[Column::linear + b];
      sums.linear[terms + k] += power * column.values[Column::linear + Column::few + b];
      sums.grey[k] += power * column.values[Column::grey + b];
      sums.grey[terms + k] += power * column.values[Column::grey + Column::few + b];
    }
  sums.grey[2 * terms] += column.values[Column::count - 1];
}

template <int kOrder>
constexpr int run_bytes = run_threads /
                          warp_size* ColumnSums<kOrder>::count* run_columns* static_cast<int>(sizeof(float));

/// Neighbouring points that a warp prepares together.
struct Run {
  int y, left;  ///< row of the centres; first column, px
  int columns;
  float offset;  ///< offset of grey values, near their mean
};

/// The column sums of a run in shared memory, as [sum][column].
template <int kOrder>
class RunSums {
 public:
  using Column = ColumnSums<kOrder>;

  __device__ explicit RunSums(float* shared) : shared_(shared) {}

  /// Sums the columns of a run. All lanes of the warp must call it.
  __device__ void sum(const PrepareArguments& args, const Run& run) const {
    const int radius = args.subset / 2, stride = args.reference.layout.stride;
    const float unit = gradient_unit(*args.reference.range);
    for (int c = threadIdx.x % warp_size; c < run.columns; c += warp_size) {
      const ReferencePixel* pixel = args.reference.pixels + (run.y - radius) * stride + run.left + c;
      Column sums;
#pragma unroll 4
      for (int j = -radius; j <= radius; ++j, pixel += stride) {
        const float2 gradient = gradient_of(*pixel);
        sums.add(pixel->grey - run.offset, unit * gradient.x, unit * gradient.y, static_cast<float>(j));
      }
#pragma unroll
      for (int k = 0; k < Column::count; ++k) shared_[k * run_columns + c] = sums.values[k];
    }
  }

  /// Sums over a subset that begins at column `first`; grey values are relative to the offset.
  __device__ float add_up(int first, int size, Sums<kOrder>& out) const {
    float total = 0;
    for (int c = first; c < first + size; ++c) {
      Column sums;
#pragma unroll
      for (int k = 0; k < Column::count; ++k) sums.values[k] = shared_[k * run_columns + c];
      add(out, sums, static_cast<float>(c - first - size / 2));
      total += sums.values[Column::count - 2];
    }
    return total;
  }

 private:
  float* shared_;
};

/// Lower triangle of a symmetric N x N matrix, row by row.
template <int N>
struct Triangle {
  float values[N * (N + 1) / 2];

  __device__ float& at(int r, int c) {
    return r >= c ? values[r * (r + 1) / 2 + c] : values[c * (c + 1) / 2 + r];
  }

  /// Replaces a matrix of unit diagonal by its inverse (symmetric sweeps). Returns false if float is not
  /// precise enough to decide whether it is positive definite.
  __device__ bool invert() {
    constexpr float least_pivot = 1e-3f;
    bool certain = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      certain = certain && at(k, k) > least_pivot;
      const float inverse_pivot = 1 / at(k, k);
      float column[N];
#pragma unroll
      for (int r = 0; r < N; ++r) column[r] = at(r, k);
#pragma unroll
      for (int r = 0; r < N; ++r) {
        if (r == k) continue;
        const float scaled = column[r] * inverse_pivot;
#pragma unroll
        for (int c = 0; c <= r; ++c)
          if (c != k) at(r, c) -= scaled * column[c];
        at(r, k) = scaled;
      }
      at(k, k) = -inverse_pivot;
    }
#pragma unroll
    for (float& value : values) value = -value;
    return certain;
  }
};

/// Inverts and stores the Gauss-Newton matrix of one subset, by one lane. Returns false if the subset is left
/// over, also because a unit sigma is not below `largest`.
template <int kOrder>
__device__ bool invert_hessian(const PrepareArguments& args, const Sums<kOrder>& sums, float largest,
                               PreparedSubset& s, float* matrix) {
  constexpr int m = Sums<kOrder>::terms, N = 2 * m;
  const float inverse_count = 1 / s.count, inverse_energy = 1 / s.energy;
  float linear[N], grey[N], scale[N];
  Triangle<N> hessian;
#pragma unroll
  for (int r = 0; r < N; ++r) {
    const icgn::Monomial p = icgn::basis(r % m);
    const auto factor = static_cast<float>(p.factor);
    const int term = r / m * m + icgn::monomial_index(p.a, p.b);
    linear[r] = factor * sums.linear[term];
    grey[r] = factor * sums.grey[term];
#pragma unroll
    for (int c = 0; c <= r; ++c) {
      const icgn::Monomial q = icgn::basis(c % m);
      const int k = icgn::monomial_index(p.a + q.a, p.b + q.b);
      const float product = r < m ? sums.dx_dx[k] : c < m ? sums.dx_dy[k] : sums.dy_dy[k];
      hessian.at(r, c) = factor * static_cast<float>(q.factor) * product -
                         linear[r] * linear[c] * inverse_count - grey[r] * grey[c] * inverse_energy;
    }
    scale[r] = rsqrtf(hessian.at(r, r));  // NaN if the matrix is not positive definite, or a pixel is outside
  }
#pragma unroll
  for (int r = 0; r < N; ++r)
#pragma unroll
    for (int c = 0; c <= r; ++c) hessian.at(r, c) *= scale[r] * scale[c];
  if (!hessian.invert()) return false;
  s.unit_sigma_u = scale[0] * sqrtf(2 * hessian.at(0, 0));
  s.unit_sigma_v = scale[m] * sqrtf(2 * hessian.at(m, m));
  if (!(fmaxf(s.unit_sigma_u, s.unit_sigma_v) < largest)) return false;
  float of_u[N], of_v[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    of_u[k] = hessian.at(k, 0) * scale[k] * scale[0];
    of_v[k] = hessian.at(k, m) * scale[k] * scale[m];
  }
  s.unit_covariance = 2 * of_u[m];
  s.gradient_noise = gradient_noise_of(args, s, of_u, of_v);
  float values[matrix_floats(kOrder)] = {};
#pragma unroll
  for (int r = 0; r < N; ++r) {
    values[r] = linear[r];
    values[N + r] = grey[r] * inverse_energy;
#pragma unroll
    for (int c = 0; c <= r; ++c) values[2 * N + r * (r + 1) / 2 + c] = hessian.at(r, c) * scale[r] * scale[c];
  }
#pragma unroll
  for (int k = 0; k < matrix_floats(kOrder); k += 4)
    *reinterpret_cast<float4*>(matrix + k) = {values[k], values[k + 1], values[k + 2], values[k + 3]};
  return true;
}

/// Prepares one subset of a run, by one lane. Returns false if it is left over.
template <int kOrder>
__device__ bool prepare(const PrepareArguments& args, const Run& run, const RunSums<kOrder>& columns,
                        PreparedSubset& s, float* matrix) {
  Sums<kOrder> sums;
  s.count = static_cast<float>(args.subset * args.subset);
  const float total = columns.add_up(s.x + s.left - run.left, args.subset, sums), mean = total / s.count;
  s.mean = run.offset + mean;
#pragma unroll
  for (int k = 0; k < 2 * Sums<kOrder>::terms; ++k) sums.grey[k] -= mean * sums.linear[k];
  const float squares = sums.grey[2 * Sums<kOrder>::terms];
  s.energy = squares - mean * total;
  const float flat = args.flat_sd();
  constexpr float doubt = 100, least_share = 1e-3f;
  constexpr float doubtful_sigma = 0.04f;  // share of the largest sigma below which few points converge
                                           // slowly
  if (!(s.energy > doubt * flat * flat * s.count && s.energy > least_share * squares)) return false;
  s.fitted = icgn::fitted_parameters(2 * Sums<kOrder>::terms);
  s.noise_share = 2 * args.noise_gain * s.energy / (sums.dx_dx[0] + sums.dy_dy[0]);
  return invert_hessian<kOrder>(args, sums, doubtful_sigma * args.largest_unit_sigma(), s, matrix);
}

/// True if the subset is whole and has uniform weights.
__device__ inline bool is_whole(const PrepareArguments& args, const PreparedSubset& s) {
  return args.window.uniform() && s.status == Status::ok && s.right - s.left == args.subset - 1 &&
         s.bottom - s.top == args.subset - 1;
}

/// Prepares 32 points per warp, one run of neighbours among them after the other.
template <int kOrder>
__global__ void __launch_bounds__(run_threads)
    prepare_runs(const __grid_constant__ PrepareArguments args, std::int64_t count, PreparedSubset* subsets,
                 float* matrices) {
  extern __shared__ float shared_sums[];
  const int lane = threadIdx.x % warp_size, warp = threadIdx.x / warp_size;
  const RunSums<kOrder> columns(shared_sums + warp * ColumnSums<kOrder>::count * run_columns);
  for_each_task((count + warp_size - 1) / warp_size, run_threads / warp_size, warp, [&](std::int64_t chunk) {
    const std::int64_t task = chunk * warp_size + lane;
    PreparedSubset s;
    if (task < count) s = subset_in_image(args, task);
    const bool there = task < count && has_pixels(args, s);
    bool waits = there && is_whole(args, s), done = false;
    while (const unsigned waiting = __ballot_sync(all_lanes, waits)) {
      const int leader = __ffs(waiting) - 1;
      Run run{from_lane(s.y, leader), from_lane(s.x + s.left, leader), 0, 0};
      const int last = s.x + s.right - run.left;
      const bool takes_part = waits && s.y == run.y && last >= args.subset - 1 && last < run_columns;
      run.columns = __reduce_max_sync(all_lanes, takes_part ? last + 1 : 0);
      run.offset = args.reference.pixels[run.y * args.reference.layout.stride + run.left].grey;
      columns.sum(args, run);
      __syncwarp();
      if (takes_part) done = prepare<kOrder>(args, run, columns, s, matrices + task * matrix_floats(kOrder));
      waits = waits && !takes_part;
      __syncwarp();
    }
    if (!done) s.status = pending;
    if (there) subsets[task] = s;
  });
}

}  // namespace dic::kernels
