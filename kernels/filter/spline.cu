#include <dic/kernels/spline.hpp>
#include <dic/shared/reflect.hpp>

#include "common/launch.cuh"

// The recursive B-spline prefilter, tile by tile. A pole's memory fades within a few pixels (z^14 < 1e-8 for
// the cubic spline), so a tile is filtered in shared memory with a halo of that width, rows then columns, and
// the picture is read and written once. Beyond the edges, halo and margin continue the picture by point
// reflection: the filter then needs no rule of its own for boundaries.
namespace dic::kernels {
namespace {

constexpr int tile = 64;

template <int kDegree>
struct Poles;
template <>
struct Poles<3> {
  static constexpr int halo = 16;
  static constexpr float near_slope = 3, far_slope = 0;  ///< 6 {-1/2, 0, 1/2}: gain times derivative at knots
  static constexpr int count = 1;
  __device__ static constexpr float z(int) { return -0.26794919243112270647f; }
};
template <>
struct Poles<5> {
  static constexpr int halo = 28;                         ///< 22 for the first pole, 6 for the second
  static constexpr float near_slope = 50, far_slope = 5;  ///< 120 {-1/24, -10/24, 0, 10/24, 1/24}
  static constexpr int count = 2;
  __device__ static constexpr float z(int pole) {
    return pole == 0 ? -0.43057534709997379430f : -0.04309628820326465382f;
  }
};

template <typename T>
__device__ const T* row_of(const ImageView& picture, int y) {
  return reinterpret_cast<const T*>(static_cast<const char*>(picture.data) + y * picture.row_bytes);
}

/// Pixel (x, y) of the picture continued beyond its edges.
template <typename T>
__device__ float continued(const ImageView& picture, int x, int y) {
  const auto row = [&](int j) {
    const T* pixels = row_of<T>(picture, j);
    return point_reflected([&](int i) { return static_cast<float>(pixels[i]); }, picture.width, x);
  };
  return point_reflected(row, picture.height, y);
}

/// width x height values in shared memory; an odd distance between rows keeps both directions free of bank
/// conflicts.
template <int kWidth, int kHeight>
struct SharedTile {
  static constexpr int stride = kWidth | 1;
  static constexpr int bytes = stride * kHeight * static_cast<int>(sizeof(float));
  float* values;

  __device__ float& at(int x, int y) const { return values[y * stride + x]; }

  /// The picture's pixels from (left, top) on; all threads of the block.
  template <typename T>
  __device__ void load(const ImageView& picture, int left, int top) const {
    const bool inside =
        left >= 0 && top >= 0 && left + kWidth <= picture.width && top + kHeight <= picture.height;
    for (int k = threadIdx.x; k < kWidth * kHeight; k += blockDim.x) {
      const int x = k % kWidth, y = k / kWidth;
      at(x, y) = inside ? static_cast<float>(row_of<T>(picture, top + y)[left + x])
                        : continued<T>(picture, left + x, top + y);
    }
    __syncthreads();
  }

  template <int kDegree>
  __device__ void filter_rows() const {
    for (int y = threadIdx.x; y < kHeight; y += blockDim.x) filter_line<kDegree>(&at(0, y), 1, kWidth);
    __syncthreads();
  }
  /// Columns first .. first + count - 1.
  template <int kDegree>
  __device__ void filter_columns(int first, int count) const {
    for (int x = threadIdx.x; x < count; x += blockDim.x)
      filter_line<kDegree>(&at(first + x, 0), stride, kHeight);
    __syncthreads();
  }

 private:
  /// The inverse filter without its gain. A line begins and ends as if its end values went on forever: what
  /// that changes has faded at the halo's end.
  template <int kDegree>
  __device__ static void filter_line(float* line, int step, int n) {
#pragma unroll
    for (int pole = 0; pole < Poles<kDegree>::count; ++pole) {
      const float z = Poles<kDegree>::z(pole);
      float value = line[0] / (1 - z);
      line[0] = value;
#pragma unroll 8
      for (int k = 1; k < n; ++k) line[k * step] = value = line[k * step] + z * value;
      value *= -z / (1 - z);
      line[(n - 1) * step] = value;
#pragma unroll 8
      for (int k = n - 2; k >= 0; --k) line[k * step] = value = z * (value - line[k * step]);
    }
  }
};

template <int kDegree>
using CoefficientTile = SharedTile<tile + 2 * Poles<kDegree>::halo, tile + 2 * Poles<kDegree>::halo>;
template <int kDegree>
using RowTile = SharedTile<tile + 2 * Poles<kDegree>::halo, tile>;
template <int kDegree>
using ColumnTile = SharedTile<tile, tile + 2 * Poles<kDegree>::halo>;

extern __shared__ float shared_values[];

constexpr int coefficient_threads = 128, gradient_threads = 128;

template <int kDegree, typename T>
__global__ void __launch_bounds__(coefficient_threads)
    spline_coefficients(const __grid_constant__ ImageView picture, float* out, int stride) {
  constexpr int halo = Poles<kDegree>::halo, margin = PlaneLayout::margin;
  const int left = static_cast<int>(blockIdx.x) * tile - margin;
  const int top = static_cast<int>(blockIdx.y) * tile - margin;
  const CoefficientTile<kDegree> values{shared_values};
  values.template load<T>(picture, left - halo, top - halo);
  values.template filter_rows<kDegree>();
  values.template filter_columns<kDegree>(halo, tile);
  const int width = min(tile, picture.width + margin - left),
            height = min(tile, picture.height + margin - top);
  for (int k = threadIdx.x; k < tile * tile; k += blockDim.x) {
    const int x = k % tile, y = k / tile;
    if (x < width && y < height)
      out[static_cast<std::ptrdiff_t>(top + y) * stride + left + x] = values.at(halo + x, halo + y);
  }
}

/// Derivative of the spline at a knot; step: to the next coefficient.
template <int kDegree>
__device__ float slope(const float* c, int step) {
  const float near = Poles<kDegree>::near_slope * (c[step] - c[-step]);
  return near + Poles<kDegree>::far_slope * (c[2 * step] - c[-2 * step]);
}

/// Raises *largest (>= 0) to the largest value of the block's threads.
__device__ void raise(float* largest, float value) {
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, offset));
  // Floats that are not negative are ordered as their bits are.
  if (threadIdx.x % warp_size == 0 && value > 0)
    atomicMax(reinterpret_cast<int*>(largest), __float_as_int(value));
}

template <int kDegree, typename T>
__global__ void __launch_bounds__(gradient_threads)
    reference_pixels(const __grid_constant__ ImageView picture, const __grid_constant__ ImageView roi,
                     ReferencePixel* out, float* all_largest, int stride) {
  constexpr int halo = Poles<kDegree>::halo, pixels = tile * tile / gradient_threads;
  const int left = static_cast<int>(blockIdx.x) * tile, top = static_cast<int>(blockIdx.y) * tile;
  const RowTile<kDegree> rows{shared_values};
  rows.template load<T>(picture, left - halo, top);
  float grey[pixels], dx[pixels], largest = 0;
  const auto each_pixel = [&](auto&& body) {
#pragma unroll
    for (int p = 0; p < pixels; ++p) {
      const int k = p * gradient_threads + static_cast<int>(threadIdx.x);
      body(p, k % tile, k / tile);
    }
  };
  each_pixel([&](int p, int x, int y) { grey[p] = rows.at(halo + x, y); });
  __syncthreads();
  rows.template filter_rows<kDegree>();
  each_pixel([&](int p, int x, int y) { dx[p] = slope<kDegree>(&rows.at(halo + x, y), 1); });
  __syncthreads();
  const ColumnTile<kDegree> columns{shared_values};
  columns.template load<T>(picture, left, top - halo);
  columns.template filter_columns<kDegree>(0, tile);
  each_pixel([&](int p, int x, int y) {
    if (left + x >= picture.width || top + y >= picture.height) return;
    const bool outermost =
        left + x == 0 || top + y == 0 || left + x == picture.width - 1 || top + y == picture.height - 1;
    const float dy = slope<kDegree>(&columns.at(x, halo + y), ColumnTile<kDegree>::stride);
    const bool inside = !roi.data || row_of<std::uint8_t>(roi, top + y)[left + x] != 0;
    // Extrapolated gradients would pull at the subset with more error than information.
    out[static_cast<std::ptrdiff_t>(top + y) * stride + left + x] = {
        grey[p], outermost ? 0 : dx[p], outermost ? 0 : dy, inside ? 1.0f : 0.0f};
    largest = fmaxf(largest, grey[p]);
  });
  raise(all_largest, largest);
}

// ---- launches ----

/// Calls visitor(degree, element) with both as compile-time values.
template <typename Visitor>
void visit(Interpolation interpolation, ScalarType type, Visitor&& visitor) {
  visit_scalar(type, [&](auto element) {
    if (interpolation == Interpolation::cubic)
      visitor(std::integral_constant<int, 3>{}, element);
    else
      visitor(std::integral_constant<int, 5>{}, element);
  });
}

unsigned tiles(int length) { return static_cast<unsigned>((length + tile - 1) / tile); }

/// Launches a kernel that wants more shared memory than the 48 KB that need no asking.
template <typename Kernel, typename... Arguments>
void launch(Kernel* kernel, dim3 grid, int threads, int shared_bytes, StreamHandle stream,
            const Arguments&... arguments) {
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes),
        "Reserving shared memory for splines");
  kernel<<<grid, threads, shared_bytes, stream>>>(arguments...);
}

}  // namespace

void launch_spline_coefficients(ImageView picture, Interpolation interpolation, float* coefficients,
                                StreamHandle stream) {
  const PlaneLayout layout(picture.width, picture.height);
  const dim3 grid(tiles(picture.width + 2 * layout.margin), tiles(picture.height + 2 * layout.margin));
  visit(interpolation, picture.type, [&]<typename T>(auto degree, T) {
    launch(spline_coefficients<degree, T>, grid, coefficient_threads, CoefficientTile<degree>::bytes, stream,
           picture, coefficients, layout.stride);
  });
  check_launch("B-spline coefficients");
}

void launch_reference_pixels(ImageView picture, ImageView roi, Interpolation interpolation,
                             ReferencePixel* pixels, float* largest, StreamHandle stream) {
  const PlaneLayout layout(picture.width, picture.height);
  const dim3 grid(tiles(picture.width), tiles(picture.height));
  fill(largest, 0, sizeof(float), stream);
  visit(interpolation, picture.type, [&]<typename T>(auto degree, T) {
    constexpr int bytes = std::max(RowTile<degree>::bytes, ColumnTile<degree>::bytes);
    launch(reference_pixels<degree, T>, grid, gradient_threads, bytes, stream, picture, roi, pixels, largest,
           layout.stride);
  });
  check_launch("gradients of the reference");
}

}  // namespace dic::kernels
