#include <climits>
#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/subset_part.hpp>

#include "common/transposed_sum.cuh"
#include "filter/reference_pixel.cuh"
#include "refine/prepare_common.cuh"
#include "refine/prepare_runs.cuh"

// Preparation of the subsets that prepare_runs.cuh leaves pending, one warp per point. The pixels of the
// subset are distributed over the lanes; then each lane has one row of the Gauss-Newton matrix while it is
// inverted. The matrix is double, as on the CPU, because it decides which subsets are flat.
namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / warp_size;

/// Calls body(i, j, grey, gradient) for the pixels of this lane that count. number: number of the subset's
/// mask, if there are masks.
template <typename Body>
__device__ void each_pixel(const RefineReference& reference, const PreparedSubset& s, std::int32_t number,
                           Body&& body) {
  const int lane = threadIdx.x % warp_size, width = s.right - s.left + 1;
  const int stride = reference.layout.stride, down = warp_size / width, along = warp_size % width;
  int i = s.left + lane % width;
  for (int j = s.top + lane / width; j <= s.bottom; j += down) {
    const int index = (s.y + j) * stride + s.x + i;
    const ReferencePixel pixel = reference.pixels[index];
    if (counts(pixel) && !reference.masks.hide(number, i, j))
      body(static_cast<float>(i), static_cast<float>(j), pixel.grey,
           exact_gradient(pixel, reference.rest[index]));
    i += along;
    if (i > s.right) {
      i -= width;
      ++j;
    }
  }
}

/// Symmetric N x N matrix with one row per lane; lanes from N on hold zeros.
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

  /// Replaces a matrix of unit diagonal by its inverse (symmetric sweeps). Returns false in all lanes if the
  /// matrix is not positive definite.
  __device__ bool invert() {
    const int lane = threadIdx.x % warp_size;
    bool positive = true;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const double column = row[k], pivot = from_lane(column, k);
      positive = positive && pivot > icgn::least_pivot;
      const double inverse_pivot = 1 / pivot;
#pragma unroll
      for (int c = 0; c < N; ++c) {
        const double scaled = from_lane(row[c], k) * inverse_pivot;  // row k is column k
        row[c] = lane == k ? scaled : row[c] - column * scaled;
      }
      row[k] = (lane == k ? -1.0 : column) * inverse_pivot;
    }
#pragma unroll
    for (double& value : row) value = -value;
    return positive;
  }
};

/// Sums over the warp, distributed over its lanes: products of the steepest-descent images SD, f and 1. Lane
/// r < N has row r. All lanes must call all members.
template <int kOrder>
class WarpSums {
 public:
  static constexpr int m = Sums<kOrder>::terms, N = 2 * m;

  __device__ explicit WarpSums(const Sums<kOrder>& sums)
      : linear_(Linear::sum_over_warp(sums.linear)),
        grey_(Grey::sum_over_warp(sums.grey)),
        xx_(Products::sum_over_warp(sums.dx_dx)),
        xy_(Products::sum_over_warp(sums.dx_dy)),
        yy_(Products::sum_over_warp(sums.dy_dy)) {}

  /// Sum of f^2.
  __device__ float energy() const { return from_lane(grey_, Grey::lane_of(N)); }
  /// Sum of dx^2 + dy^2.
  __device__ float slopes() const { return from_lane(xx_, 0) + from_lane(yy_, 0); }
  /// Sum of SD for the lane's row; grey(): sum of SD f; product(c): column c of sum SD SD^T.
  __device__ double sum() const { return factor() * from_lane(linear_, Linear::lane_of(lane() % N)); }
  __device__ double grey() const { return factor() * from_lane(grey_, Grey::lane_of(lane() % N)); }
  __device__ double product(int c) const {
    const icgn::Monomial p = icgn::basis(lane() % m), q = icgn::basis(c % m);
    const int source = Products::lane_of(icgn::monomial_index(p.a + q.a, p.b + q.b));
    const bool is_u = lane() < m, both_u = c < m;
    const float straight = from_lane(both_u ? xx_ : yy_, source), crossed = from_lane(xy_, source);
    return factor() * q.factor * (is_u == both_u ? straight : crossed);
  }

 private:
  using Linear = TransposedSum<N>;
  using Grey = TransposedSum<N + 1>;
  using Products = TransposedSum<Sums<kOrder>::products>;

  __device__ static int lane() { return static_cast<int>(threadIdx.x % warp_size); }
  __device__ static double factor() { return lane() < N ? icgn::basis(lane() % m).factor : 0; }

  float linear_, grey_, xx_, xy_, yy_;
};

/// Sums weighted by the squared weights, which determine the effect of noise.
template <int kOrder>
struct SquaredWeights {
  WarpSums<kOrder> sums;
  float count, grey;  ///< sum 1, sum f
};

__device__ inline double sum_of_lanes(double value) {
#pragma unroll
  for (int distance = warp_size / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(all_lanes, value, distance);
  return value;
}

/// Share of a lane in the solution of weighted least squares with N parameters.
template <int N>
struct LaneSolution {
  double sum, grey;                    ///< values of the lane's row of the weighted sums
  const double (&inverse)[N];          ///< the lane's row of the inverse matrix
  const float (&of_u)[N], (&of_v)[N];  ///< columns of the inverse matrix
};

/// Computes the standard deviations of weighted least squares for a noise of variance 1, and values that
/// follow from them.
template <int kOrder, int N = WarpSums<kOrder>::N>
__device__ void predict(const PrepareArguments& args, const SquaredWeights<kOrder>& squared,
                        const LaneSolution<N>& solution, PreparedSubset& s) {
  const auto& [sum, grey, inverse, of_u, of_v] = solution;
  const int lane = threadIdx.x % warp_size;
  const double mean = sum / s.count, contrast = grey / s.energy;
  const double squared_sum = squared.sums.sum(), squared_grey = squared.sums.grey();
  const double count = squared.count, f = squared.grey, energy = squared.sums.energy();
  double to_u = 0, to_v = 0, trace = 0;  // products of the lane's row of the noise
  double own_u = 0, own_v = 0;
#pragma unroll
  for (int c = 0; c < N; ++c) {
    const double mean_c = from_lane(mean, c), contrast_c = from_lane(contrast, c);
    const double noise = squared.sums.product(c) - mean * from_lane(squared_sum, c) - squared_sum * mean_c -
                         contrast * from_lane(squared_grey, c) - squared_grey * contrast_c +
                         count * mean * mean_c + f * (mean * contrast_c + contrast * mean_c) +
                         energy * contrast * contrast_c;
    to_u += noise * of_u[c];
    to_v += noise * of_v[c];
    trace += noise * inverse[c];
    if (c == lane) own_u = of_u[c], own_v = of_v[c];
  }
  s.unit_sigma_u = static_cast<float>(sqrt(2 * sum_of_lanes(own_u * to_u)));
  s.unit_sigma_v = static_cast<float>(sqrt(2 * sum_of_lanes(own_v * to_v)));
  s.unit_covariance = static_cast<float>(2 * sum_of_lanes(own_u * to_v));
  s.fitted = static_cast<float>(count / s.count + energy / s.energy + sum_of_lanes(lane < N ? trace : 0.0));
  const icgn::PixelMoments<float> x(s.left, s.right, args.weights, args.subset);
  const icgn::PixelMoments<float> y(s.top, s.bottom, args.weights, args.subset);
  s.gradient_noise = icgn::gradient_noise<N, float>(of_u, of_v, x, y, squared.count * args.noise_gain);
}

/// Builds, tests and inverts the Gauss-Newton matrix and stores it; sets the status and the values that sigma
/// needs. squared: null for uniform weights.
template <int kOrder>
__device__ void invert_exactly(const PrepareArguments& args, const WarpSums<kOrder>& sums,
                               const SquaredWeights<kOrder>* squared, PreparedSubset& s, float* matrix) {
  constexpr int m = WarpSums<kOrder>::m, N = WarpSums<kOrder>::N;
  const int lane = threadIdx.x % warp_size;
  const bool active = lane < N;
  const double sum = sums.sum(), grey = sums.grey();
  s.energy = sums.energy();
  s.noise_share = sums.slopes();
  const double inverse_count = 1.0 / s.count, inverse_energy = 1.0 / s.energy;
  Rows<N> hessian;
#pragma unroll
  for (int c = 0; c < N; ++c) {
    const double projected =
        sum * from_lane(sum, c) * inverse_count + grey * from_lane(grey, c) * inverse_energy;
    hessian.row[c] = sums.product(c) - projected;
  }
  const double diagonal = hessian.diagonal();
  const bool positive = __all_sync(all_lanes, diagonal > 0 || !active);
  // The matrix is scaled to a unit diagonal, so that the test for a missing direction does not depend on
  // units.
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
  const auto with_u = static_cast<float>(hessian.row[0] * scale * from_lane(scale, 0));
  const auto with_v = static_cast<float>(hessian.row[m] * scale * from_lane(scale, m));
  s.unit_covariance = 2 * from_lane(with_v, 0);
  float of_u[N], of_v[N];
#pragma unroll
  for (int k = 0; k < N; ++k) {
    of_u[k] = from_lane(with_u, k);
    of_v[k] = from_lane(with_v, k);
  }
#pragma unroll
  for (int c = 0; c < N; ++c) hessian.row[c] *= scale * from_lane(scale, c);
  if (squared) {
    predict<kOrder>(args, *squared, {sum, grey, hessian.row, of_u, of_v}, s);
  } else {
    s.fitted = icgn::fitted_parameters(N);
    s.gradient_noise = gradient_noise_of(args, s, of_u, of_v);
  }
  const int triangle = 2 * N + lane * (lane + 1) / 2;
#pragma unroll
  for (int c = 0; c < N; ++c)
    if (active && c <= lane) matrix[triangle + c] = static_cast<float>(hessian.row[c]);
  if (!active) return;
  matrix[lane] = static_cast<float>(sum);
  matrix[N + lane] = static_cast<float>(grey * inverse_energy);
}

/// The rectangle around the pixels of a subset that count, first of one lane, then of the warp.
struct Bounds {
  int left = INT_MAX, right = INT_MIN, top = INT_MAX, bottom = INT_MIN;

  __device__ void add(int i, int j) {
    left = min(left, i);
    right = max(right, i);
    top = min(top, j);
    bottom = max(bottom, j);
  }
  /// Stores the rectangle of the whole warp. All lanes must call it.
  __device__ void apply(PreparedSubset& s) const {
    s.left = static_cast<std::int16_t>(__reduce_min_sync(all_lanes, left));
    s.right = static_cast<std::int16_t>(__reduce_max_sync(all_lanes, right));
    s.top = static_cast<std::int16_t>(__reduce_min_sync(all_lanes, top));
    s.bottom = static_cast<std::int16_t>(__reduce_max_sync(all_lanes, bottom));
  }
};

/// Prepares one subset by a warp. number: see each_pixel. kWindow: pixels have weights.
template <int kOrder, bool kWindow>
__device__ void prepare(const PrepareArguments& args, std::int32_t number, PreparedSubset& s, float least,
                        float* matrix) {
  const auto weight_at = [&](float i, float j) { return kWindow ? args.window.weight(i, j) : 1.0f; };
  float pixels = 0, count = 0, total = 0;
  Bounds bounds;
  each_pixel(args.reference, s, number, [&](float i, float j, float grey, float2) {
    const float weight = weight_at(i, j);
    ++pixels;
    count += weight;
    total += weight * grey;
    bounds.add(static_cast<int>(i), static_cast<int>(j));
  });
  pixels = warp_sum(pixels);
  s.count = warp_sum(count);
  if (pixels < least) {
    s.status = Status::masked;
    return;
  }
  bounds.apply(s);
  s.weighted = pixels < static_cast<float>((s.right - s.left + 1) * (s.bottom - s.top + 1));
  s.mean = warp_sum(total) / s.count;
  const float unit = gradient_unit(*args.reference.range);
  const auto sums_over = [&](auto&& power) {  // power of the weights
    Sums<kOrder> sums;
    each_pixel(args.reference, s, number, [&](float i, float j, float grey, float2 gradient) {
      sums.add(power(weight_at(i, j)), grey - s.mean, unit * gradient.x, unit * gradient.y, i, j);
    });
    return WarpSums<kOrder>(sums);
  };
  const WarpSums<kOrder> sums = sums_over([](float weight) { return weight; });
  const float flat = args.flat_sd();
  if (!(sums.energy() > flat * flat * s.count)) {
    s.status = Status::flat;
    return;
  }
  if constexpr (!kWindow) {
    invert_exactly<kOrder>(args, sums, nullptr, s, matrix);
  } else {
    const auto square = [](float weight) { return weight * weight; };
    float squares = 0, grey_sum = 0;
    each_pixel(args.reference, s, number, [&](float i, float j, float grey, float2) {
      const float weight = square(weight_at(i, j));
      squares += weight;
      grey_sum += weight * (grey - s.mean);
    });
    const SquaredWeights<kOrder> squared{sums_over(square), warp_sum(squares), warp_sum(grey_sum)};
    invert_exactly<kOrder>(args, sums, &squared, s, matrix);
  }
  if (fmaxf(s.unit_sigma_u, s.unit_sigma_v) > args.largest_unit_sigma()) s.status = Status::flat;
  s.noise_share = 2 * args.noise_gain * s.energy / s.noise_share;
}

/// Blocks per multiprocessor; with two of them, registers would spill if pixels have weights.
template <bool kMany>
constexpr int blocks_at_once = kMany ? 1 : 2;

template <int kOrder, bool kWindow>
__global__ void __launch_bounds__(threads, blocks_at_once<kWindow>)
    prepare_subsets(const __grid_constant__ PrepareArguments args, std::int64_t count,
                    PreparedSubset* subsets, float* matrices) {
  const int lane = threadIdx.x % warp_size;
  for_each_task((count + warp_size - 1) / warp_size, warps, threadIdx.x / warp_size, [&](std::int64_t chunk) {
    const std::int64_t first = chunk * warp_size;
    const bool is_left = first + lane < count && subsets[first + lane].status == pending;
    for (unsigned left = __ballot_sync(all_lanes, is_left); left != 0; left &= left - 1) {
      const std::int64_t task = first + __ffs(left) - 1;
      PreparedSubset s = subset_in_image(args, task);
      if (s.status == Status::ok)
        prepare<kOrder, kWindow>(args, 0, s, args.least_pixels, matrices + task * matrix_floats(kOrder));
      if (lane == 0) subsets[task] = s;
    }
  });
}

/// As prepare_subsets, for the parts of subsets that `count` counts; masks of order 2 also need more
/// registers.
template <int kOrder, bool kWindow>
__global__ void __launch_bounds__(threads, blocks_at_once<kWindow || kOrder == 2>)
    prepare_parts(const __grid_constant__ PrepareArguments args, const std::int32_t* count,
                  PreparedSubset* subsets, float* matrices) {
  const float least = static_cast<float>(kLeastPart) * static_cast<float>(args.subset * args.subset);
  for_each_task(*count, warps, threadIdx.x / warp_size, [&](std::int64_t task) {
    PreparedSubset s = subsets[task];
    if (s.status != pending) return;
    s.status = Status::ok;
    clip_to_image(args, s, least);
    if (!has_pixels(args, s)) return;
    if (s.status == Status::ok)
      prepare<kOrder, kWindow>(args, static_cast<std::int32_t>(task), s, least,
                               matrices + task * matrix_floats(kOrder));
    __syncwarp();
    if (threadIdx.x % warp_size == 0) subsets[task] = s;
  });
}

// ---- launches ----

template <int kOrder>
void launch(const PrepareArguments& args, std::int64_t count, const PreparedSubsets& prepared,
            StreamHandle stream) {
  const auto& [subsets, matrices] = prepared;
  const auto prepare_left =
      args.window.uniform() ? prepare_subsets<kOrder, false> : prepare_subsets<kOrder, true>;
  constexpr int bytes = run_bytes<kOrder>;
  check(cudaFuncSetAttribute(prepare_runs<kOrder>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "Reserving shared memory for subsets");
  prepare_runs<kOrder>
      <<<grid_size(count, run_threads), run_threads, bytes, stream>>>(args, count, subsets, matrices);
  prepare_left<<<grid_size(count, threads), threads, 0, stream>>>(args, count, subsets, matrices);
}

template <int kOrder>
void launch_parts(const PrepareArguments& args, std::int64_t max_count, const std::int32_t* count,
                  const PreparedSubsets& prepared, StreamHandle stream) {
  const auto prepare = args.window.uniform() ? prepare_parts<kOrder, false> : prepare_parts<kOrder, true>;
  prepare<<<grid_size(max_count, warps), threads, 0, stream>>>(args, count, prepared.subsets,
                                                               prepared.matrices);
}

PrepareArguments arguments(const RefineReference& reference, const RefineOptions& options,
                           const SubsetCentres& centres) {
  return {reference,
          options.subset,
          options.weights,
          Window(options.weights, options.subset),
          static_cast<float>(icgn::gradient_noise_gain(options.interpolation, options.smoothing)),
          centres.x,
          centres.y,
          static_cast<float>(refine::least_pixels(options))};
}

}  // namespace

void launch_prepare_subsets(const RefineReference& reference, const RefineOptions& options,
                            const SubsetCentres& centres, const PreparedSubsets& prepared,
                            StreamHandle stream) {
  if (centres.count == 0) return;
  const PrepareArguments args = arguments(reference, options, centres);
  if (options.order == 0) launch<0>(args, centres.count, prepared, stream);
  if (options.order == 1) launch<1>(args, centres.count, prepared, stream);
  if (options.order == 2) launch<2>(args, centres.count, prepared, stream);
  check_launch("preparing subsets");
}

void launch_prepare_parts(const RefineReference& reference, const RefineOptions& options,
                          std::int64_t max_count, const std::int32_t* count, const PreparedSubsets& prepared,
                          StreamHandle stream) {
  if (max_count == 0) return;
  const PrepareArguments args = arguments(reference, options, {});
  if (options.order == 0) launch_parts<0>(args, max_count, count, prepared, stream);
  if (options.order == 1) launch_parts<1>(args, max_count, count, prepared, stream);
  if (options.order == 2) launch_parts<2>(args, max_count, count, prepared, stream);
  check_launch("preparing parts of subsets");
}

}  // namespace dic::kernels
