#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>

#include "common/transposed_sum.cuh"

// Reference-side work, a warp per point: the lanes share the subset's pixels, then each holds a row of the
// Gauss-Newton matrix while it is inverted. The matrix is double, as on the CPU: which subsets are flat is
// decided on it.
namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / warp_size;
constexpr unsigned all_lanes = 0xffffffffu;

struct Frame {
  RefineReference reference;
  int subset;
  float flat_sd, noise_gain;
  const int *x, *y;
};

/// The part of the subset inside the picture; status out_of_image where that is less than half of it.
__device__ PreparedSubset place(const Frame& frame, std::int64_t task) {
  PreparedSubset s;
  s.x = frame.x[task];
  s.y = frame.y[task];
  const int r = frame.subset / 2;
  s.left = static_cast<std::int16_t>(-min(r, s.x));
  s.right = static_cast<std::int16_t>(min(r, frame.reference.layout.width - 1 - s.x));
  s.top = static_cast<std::int16_t>(-min(r, s.y));
  s.bottom = static_cast<std::int16_t>(min(r, frame.reference.layout.height - 1 - s.y));
  const bool outside = s.left > 0 || s.right < 0 || s.top > 0 || s.bottom < 0;
  const int inside = (s.right - s.left + 1) * (s.bottom - s.top + 1);
  if (outside || 2 * inside < frame.subset * frame.subset) s.status = Status::out_of_image;
  return s;
}

/// Calls body(i, j, pixel) for this lane's share of the subset's pixels that count.
template <typename Body>
__device__ void each_pixel(const RefineReference& reference, const PreparedSubset& s, Body&& body) {
  const int lane = threadIdx.x % warp_size, width = s.right - s.left + 1;
  const int stride = reference.layout.stride, down = warp_size / width, along = warp_size % width;
  int i = s.left + lane % width;
  for (int j = s.top + lane / width; j <= s.bottom; j += down) {
    const ReferencePixel pixel = reference.pixels[(s.y + j) * stride + s.x + i];
    if (pixel.weight != 0) body(static_cast<float>(i), static_cast<float>(j), pixel);
    i += along;
    if (i > s.right) {
      i -= width;
      ++j;
    }
  }
}

/// Sums over a subset, grey values relative to its mean; monomials i^a j^b in the order of icgn.
template <int kOrder>
struct Sums {
  static constexpr int terms = icgn::monomial_count(kOrder), products = icgn::monomial_count(2 * kOrder);
  float linear[2 * terms] = {};    ///< dx, then dy
  float grey[2 * terms + 1] = {};  ///< f dx, f dy, then f f
  float dx_dx[products] = {}, dx_dy[products] = {}, dy_dy[products] = {};

  __device__ void add(const ReferencePixel& pixel, float mean, float i, float j) {
    const float f = pixel.grey - mean;
    grey[2 * terms] += f * f;
    float powers[2 * kOrder + 1];  // of j
    powers[0] = 1;
#pragma unroll
    for (int b = 1; b <= 2 * kOrder; ++b) powers[b] = powers[b - 1] * j;
    float of_i = 1;
#pragma unroll
    for (int a = 0; a <= 2 * kOrder; ++a, of_i *= i)
#pragma unroll
      for (int b = 0; a + b <= 2 * kOrder; ++b) add_term(a, b, of_i * powers[b], f, pixel);
  }

 private:
  __device__ void add_term(int a, int b, float monomial, float f, const ReferencePixel& pixel) {
    const int k = icgn::monomial_index(a, b);
    const float x = monomial * pixel.dx, y = monomial * pixel.dy;
    dx_dx[k] += x * pixel.dx;
    dx_dy[k] += x * pixel.dy;
    dy_dy[k] += y * pixel.dy;
    if (a + b > kOrder) return;
    linear[k] += x;
    linear[terms + k] += y;
    grey[k] += f * x;
    grey[terms + k] += f * y;
  }
};

/// Lane `source`'s value in every lane; source may differ from lane to lane.
template <typename T>
__device__ T from_lane(T value, int source) {
  return __shfl_sync(all_lanes, value, source);
}

/// One row per lane of a symmetric N x N matrix; lanes from N on hold zeros.
template <int N>
struct Rows {
  double row[N];

  __device__ double diagonal() const {
    double value = 0;
#pragma unroll
    for (int c = 0; c < N; ++c)
      if (c == threadIdx.x % warp_size) value = row[c];
    return value;
  }

  /// Replaces a matrix of unit diagonal by its inverse (symmetric sweeps); false where it is not positive
  /// definite. All lanes agree.
  __device__ bool invert() {
    const int lane = threadIdx.x % warp_size;
    bool positive = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const double column = row[k], pivot = from_lane(column, k);
      positive = positive && pivot > icgn::least_pivot;
      const double of_pivot = 1 / pivot;
#pragma unroll
      for (int c = 0; c < N; ++c) {
        const double scaled = from_lane(row[c], k) * of_pivot;  // row k is column k
        row[c] = lane == k ? scaled : row[c] - column * scaled;
      }
      row[k] = (lane == k ? -1.0 : column) * of_pivot;
    }
#pragma unroll
    for (double& value : row) value = -value;
    return positive;
  }
};

/// Builds, tests and inverts the Gauss-Newton matrix and stores it; sets status and unit sigmas.
template <int kOrder>
__device__ void invert_hessian(const Sums<kOrder>& sums, PreparedSubset& s, float* matrix) {
  constexpr int m = Sums<kOrder>::terms, N = 2 * m, products = Sums<kOrder>::products;
  const int lane = threadIdx.x % warp_size, r = lane % m;
  const bool of_u = lane < m, active = lane < N;
  using Linear = TransposedSum<N>;
  using Grey = TransposedSum<N + 1>;
  using Products = TransposedSum<products>;
  const float linear = Linear::of(sums.linear), grey_sums = Grey::of(sums.grey);
  const float xx = Products::of(sums.dx_dx), xy = Products::of(sums.dx_dy), yy = Products::of(sums.dy_dy);

  const icgn::Monomial p = icgn::basis(r);
  const double factor = active ? p.factor : 0;
  const double sum = factor * from_lane(linear, Linear::lane_of(lane % N));
  const double grey = factor * from_lane(grey_sums, Grey::lane_of(lane % N));
  s.energy = from_lane(grey_sums, Grey::lane_of(N));
  s.noise_share = from_lane(xx, 0) + from_lane(yy, 0);
  const double of_count = 1.0 / s.count, of_energy = 1.0 / s.energy;
  Rows<N> hessian;
#pragma unroll
  for (int c = 0; c < N; ++c) {
    const icgn::Monomial q = icgn::basis(c % m);
    const int source = Products::lane_of(icgn::monomial_index(p.a + q.a, p.b + q.b));
    const bool both_u = c < m;
    const float straight = from_lane(both_u ? xx : yy, source), crossed = from_lane(xy, source);
    const double product = factor * q.factor * (of_u == both_u ? straight : crossed);
    const double projected = sum * from_lane(sum, c) * of_count + grey * from_lane(grey, c) * of_energy;
    hessian.row[c] = product - projected;
  }
  const double diagonal = hessian.diagonal();
  const bool positive = __all_sync(all_lanes, diagonal > 0 || !active);
  // Scaled to a unit diagonal, so that the test for a missing direction does not depend on units.
  const double scale = active ? rsqrt(diagonal) : 0.0;
#pragma unroll
  for (int c = 0; c < N; ++c) hessian.row[c] *= scale * from_lane(scale, c);
  const bool regular =
      positive && hessian.invert() && __all_sync(all_lanes, hessian.diagonal() < icgn::largest_inverse);
  if (!regular) {
    s.status = Status::flat;  // contrast in one direction only: an edge, a stripe
    return;
  }
  const auto sigma = static_cast<float>(scale * sqrt(2 * hessian.diagonal()));
  s.unit_sigma_u = from_lane(sigma, 0);
  s.unit_sigma_v = from_lane(sigma, m);
#pragma unroll
  for (int c = 0; c < N; ++c) {
    const double value = hessian.row[c] * scale * from_lane(scale, c);
    if (active) matrix[c * N + lane] = static_cast<float>(value);
  }
  if (!active) return;
  matrix[N * N + lane] = static_cast<float>(sum);
  matrix[N * N + N + lane] = static_cast<float>(grey * of_energy);
}

template <int kOrder>
__device__ void prepare(const Frame& frame, PreparedSubset& s, float* matrix) {
  float count = 0, total = 0;
  each_pixel(frame.reference, s, [&](float, float, const ReferencePixel& pixel) {
    ++count;
    total += pixel.grey;
  });
  s.count = warp_sum(count);
  const int pixels = (s.right - s.left + 1) * (s.bottom - s.top + 1);
  s.weighted = s.count < static_cast<float>(pixels);
  if (2 * s.count < static_cast<float>(frame.subset * frame.subset)) {
    s.status = Status::masked;
    return;
  }
  s.mean = warp_sum(total) / s.count;
  Sums<kOrder> sums;
  each_pixel(frame.reference, s,
             [&](float i, float j, const ReferencePixel& pixel) { sums.add(pixel, s.mean, i, j); });
  const float energy = warp_sum(sums.grey[2 * Sums<kOrder>::terms]);
  const float flat = frame.flat_sd * fmaxf(*frame.reference.largest / 255, 1e-20f);
  if (!(energy > flat * flat * s.count)) {
    s.status = Status::flat;
    return;
  }
  invert_hessian<kOrder>(sums, s, matrix);
  s.noise_share = 2 * frame.noise_gain * s.energy / s.noise_share;
}

template <int kOrder>
__global__ void __launch_bounds__(threads)
    prepare_subsets(const __grid_constant__ Frame frame, std::int64_t count, PreparedSubset* subsets,
                    float* matrices) {
  for_each_task(count, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    PreparedSubset s = place(frame, task);
    if (s.status == Status::ok) prepare<kOrder>(frame, s, matrices + task * matrix_floats(kOrder));
    if (threadIdx.x % warp_size == 0) subsets[task] = s;
  });
}

// ---- launches ----

}  // namespace

void launch_prepare_subsets(const RefineReference& reference, const RefineOptions& options, const int* x,
                            const int* y, std::int64_t count, PreparedSubset* subsets, float* matrices,
                            StreamHandle stream) {
  if (count == 0) return;
  const Frame frame{reference,
                    options.subset,
                    static_cast<float>(icgn::flat_sd),
                    static_cast<float>(icgn::gradient_noise_gain(options.interpolation)),
                    x,
                    y};
  const unsigned blocks = grid_size(count, warps);
  if (options.order == 0) prepare_subsets<0><<<blocks, threads, 0, stream>>>(frame, count, subsets, matrices);
  if (options.order == 1) prepare_subsets<1><<<blocks, threads, 0, stream>>>(frame, count, subsets, matrices);
  if (options.order == 2) prepare_subsets<2><<<blocks, threads, 0, stream>>>(frame, count, subsets, matrices);
  check_launch("preparing subsets");
}

}  // namespace dic::kernels
