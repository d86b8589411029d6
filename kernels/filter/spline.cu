#include <dic/kernels/spline.hpp>
#include <dic/shared/reflect.hpp>

#include "common/launch.cuh"
#include "filter/reference_pixel.cuh"

// The recursive B-spline prefilter, tile by tile. The impulse response of a pole decays within a few pixels
// (z^14 < 1e-8 for the cubic spline), so that a thread filters a short line with a halo in registers: first a
// column of the tile, then a part of a row from shared memory. Point reflection continues the image beyond
// its edges: the filter needs no other boundary condition.
namespace dic::kernels {
namespace {

constexpr int tile_width = 128, tile_height = 32;
/// Pixels that a thread filters along a row, without the halo. The lanes of a warp are rows of the tile; the
/// parts of a row are in different warps.
constexpr int part = 32;
static_assert(tile_height == warp_size);

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
__device__ const T* row_of(const ImageView& image, int y) {
  return reinterpret_cast<const T*>(static_cast<const char*>(image.data) + y * image.row_bytes);
}

template <typename T>
__device__ const T* below(const T* pixel, std::ptrdiff_t row_bytes) {
  return reinterpret_cast<const T*>(reinterpret_cast<const char*>(pixel) + row_bytes);
}

/// Pixels of column x in `rows` of the image, continued beyond its edges by point_reflected. All addresses
/// are known before the first pixel is read, so that all loads are in flight together.
template <typename T>
class ContinuedColumn {
 public:
  __device__ ContinuedColumn(const ImageView& image, int x, const RowRange& rows)
      : image_(image), across_(image.width, x) {
    // From row to row, the factors only fall or only grow. If they are 0, the row may not be in memory.
    const PointReflection top(image.height, rows.first), bottom(image.height, rows.last - 1);
    if (top.first != 0 || bottom.first != 0) first_ = row(0);
    if (top.last != 0 || bottom.last != 0) last_ = row(image.height - 1);
  }

  __device__ float operator[](int y) const {
    const PointReflection down(image_.height, y);
    return down.value(row(down.at), first_, last_);
  }

 private:
  __device__ float row(int y) const {
    const T* pixels = row_of<T>(image_, y);
    return across_.value(static_cast<float>(pixels[across_.at]), static_cast<float>(pixels[0]),
                         static_cast<float>(pixels[image_.width - 1]));
  }

  const ImageView& image_;
  PointReflection across_;
  float first_ = 0, last_ = 0;
};

/// Inverse filter of the spline, without its gain, on a line in registers. The filter begins and ends as if
/// the end values of the line were repeated forever: their influence has decayed at the end of the halo.
template <int kDegree, int kCount>
__device__ void filter_line(float (&line)[kCount]) {
#pragma unroll
  for (int pole = 0; pole < Poles<kDegree>::count; ++pole) {
    const float z = Poles<kDegree>::z(pole);
    line[0] /= 1 - z;
#pragma unroll
    for (int k = 1; k < kCount; ++k) line[k] += z * line[k - 1];
    line[kCount - 1] *= -z / (1 - z);
#pragma unroll
    for (int k = kCount - 2; k >= 0; --k) line[k] = z * (line[k + 1] - line[k]);
  }
}

/// Derivative of the spline at a knot.
template <int kDegree>
__device__ float slope(const float* c) {
  const float near = Poles<kDegree>::near_slope * (c[1] - c[-1]);
  return near + Poles<kDegree>::far_slope * (c[2] - c[-2]);
}

/// One tile of the image, processed by one block.
template <int kDegree>
struct Tile {
  static constexpr int halo = Poles<kDegree>::halo;
  static constexpr int columns = tile_width + 2 * halo;  ///< one thread per column
  static constexpr int threads = (columns + warp_size - 1) / warp_size * warp_size;
  static constexpr int blocks = kDegree == 3 ? 4 : 2;  ///< per multiprocessor; leaves registers for lines
  static constexpr int stride = columns | 1;  ///< distance of rows in shared memory; odd, to avoid bank
                                              ///< conflicts
  static constexpr int span = part + 2 * halo;
  static_assert(part == tile_height);  // lines have one length in both directions

  int left, top;  ///< pixel of the image

  /// Loads this thread's column of the image, halo included. scratch: tile_height rows of `stride`.
  template <typename T>
  __device__ void load_column(const ImageView& image, float* scratch, float (&line)[span]) const {
    const int x = left - halo + static_cast<int>(threadIdx.x), y = top - halo;
    if (left >= halo && left - halo + columns <= image.width && y >= 0 && y + span <= image.height) {
      const T* pixel = row_of<T>(image, y) + x;
#pragma unroll
      for (int k = 0; k < span; ++k, pixel = below(pixel, image.row_bytes))
        line[k] = static_cast<float>(*pixel);
      return;
    }
    const ContinuedColumn<T> column(image, x, {y, y + span});
    // Copies in two unrolled loops, since a loop that is not unrolled cannot write to registers.
#pragma unroll
    for (int first = 0; first < span; first += tile_height) {
      const int rows = min(tile_height, span - first);
#pragma unroll 8
      for (int k = 0; k < rows; ++k) scratch[k * stride + threadIdx.x] = column[y + first + k];
#pragma unroll
      for (int k = 0; k < rows; ++k) line[first + k] = scratch[k * stride + threadIdx.x];
    }
  }

  __device__ static bool has_column() { return threadIdx.x < columns; }
  /// True if the thread has a part of a row.
  __device__ static bool has_part() { return threadIdx.x < tile_width / part * warp_size; }
  __device__ static int row() { return threadIdx.x % warp_size; }
  __device__ static int first_of_part() { return static_cast<int>(threadIdx.x) / warp_size * part; }

  /// Loads this thread's part of a row of `values` (rows of `stride`), halo included.
  __device__ static void load_part(const float* values, float (&line)[span]) {
#pragma unroll
    for (int k = 0; k < span; ++k) line[k] = values[row() * stride + first_of_part() + k];
  }

  /// Number of columns of the tile to the left of column `right` of the image.
  __device__ unsigned columns_before(int right) const { return max(0, min(tile_width, right - left)); }
  /// Rows of the tile that are among `rows` of the image.
  __device__ RowRange rows_of(const RowRange& rows) const {
    return {max(0, rows.first - top), min(tile_height, rows.last - top)};
  }
};

template <int kDegree, typename T>
__global__ void __launch_bounds__(Tile<kDegree>::threads, Tile<kDegree>::blocks)
    spline_coefficients(const __grid_constant__ ImageView image, const __grid_constant__ RowRange rows,
                        int first_tile, CoefficientPair* out, int stride) {
  using Tile = Tile<kDegree>;
  constexpr int margin = PlaneLayout::margin;
  __shared__ float values[tile_height * Tile::stride];
  const Tile tile{static_cast<int>(blockIdx.x) * tile_width - margin,
                  (first_tile + static_cast<int>(blockIdx.y)) * tile_height - margin};
  float line[Tile::span];
  if (tile.has_column()) {
    tile.template load_column<T>(image, values, line);
    filter_line<kDegree>(line);
#pragma unroll
    for (int k = 0; k < tile_height; ++k) values[k * Tile::stride + threadIdx.x] = line[Tile::halo + k];
  }
  __syncthreads();
  if (tile.has_part()) {
    tile.load_part(values, line);
    filter_line<kDegree>(line);
  }
  __syncthreads();
  if (tile.has_part()) {
#pragma unroll
    for (int k = 0; k < part; ++k)
      values[tile.row() * Tile::stride + tile.first_of_part() + k] = line[Tile::halo + k];
  }
  __syncthreads();
  if (tile.columns_before(image.width + margin) <= threadIdx.x) return;
  const RowRange own = tile.rows_of({rows.first - margin, rows.last + margin});
  CoefficientPair* at =
      out + static_cast<std::ptrdiff_t>(tile.top + own.first) * stride + tile.left + threadIdx.x;
  const float* value = values + own.first * Tile::stride + threadIdx.x;
  // The next tile writes the rows below this tile.
  if (own.first == 0 && tile.top > rows.first - margin) at[-stride].lower = *value;
#pragma unroll 8
  for (int y = own.first; y < min(own.last, tile_height - 1); ++y, at += stride, value += Tile::stride)
    *at = {value[0], value[Tile::stride]};
  if (own.last == tile_height) at->upper = *value;
}

/// Sets *largest (>= 0) to the largest value of the warp, if that is larger.
__device__ void raise(float* largest, float value) {
  for (int offset = warp_size / 2; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(all_lanes, value, offset));
  // The bits of non-negative floats have the order of the floats.
  if (threadIdx.x % warp_size == 0 && value > 0)
    atomicMax(reinterpret_cast<int*>(largest), __float_as_int(value));
}

constexpr int range_threads = 128;

/// Extends the range by the rows, one per block.
template <typename T>
__global__ void __launch_bounds__(range_threads)
    grey_range(const __grid_constant__ ImageView image, const __grid_constant__ RowRange rows,
               GreyRange* range) {
  for (int y = rows.first + static_cast<int>(blockIdx.x); y < rows.last; y += gridDim.x) {
    float largest = 0, magnitude = 0;
#pragma unroll 8
    for (int x = threadIdx.x; x < image.width; x += blockDim.x) {
      const auto grey = static_cast<float>(row_of<T>(image, y)[x]);
      largest = fmaxf(largest, grey);
      magnitude = fmaxf(magnitude, fabsf(grey));
    }
    raise(&range->largest, largest);
    raise(&range->magnitude, magnitude);
  }
}

template <int kDegree, typename T>
__global__ void __launch_bounds__(Tile<kDegree>::threads, Tile<kDegree>::blocks)
    reference_pixels(const __grid_constant__ ImageView image, const __grid_constant__ RowRange rows,
                     int first_tile, const __grid_constant__ ImageView roi, const GreyRange* range,
                     const __grid_constant__ ReferencePlanes out, int stride) {
  using Tile = Tile<kDegree>;
  __shared__ float grey[tile_height * Tile::stride], dy[tile_height * Tile::stride];
  const Tile tile{static_cast<int>(blockIdx.x) * tile_width,
                  (first_tile + static_cast<int>(blockIdx.y)) * tile_height};
  const float per_unit = 1 / gradient_unit(*range);
  float line[Tile::span];
  if (tile.has_column()) {
    tile.template load_column<T>(image, grey, line);
#pragma unroll
    for (int k = 0; k < tile_height; ++k) grey[k * Tile::stride + threadIdx.x] = line[Tile::halo + k];
    filter_line<kDegree>(line);
#pragma unroll
    for (int k = 0; k < tile_height; ++k)
      dy[k * Tile::stride + threadIdx.x] = per_unit * slope<kDegree>(line + Tile::halo + k);
  }
  __syncthreads();
  if (tile.has_part()) {
    tile.load_part(grey, line);
    filter_line<kDegree>(line);
  }
  __syncthreads();
  float* dx = grey;
  if (tile.has_part()) {
#pragma unroll
    for (int k = 0; k < part; ++k)
      dx[tile.row() * Tile::stride + tile.first_of_part() + k] =
          per_unit * slope<kDegree>(line + Tile::halo + k);
  }
  __syncthreads();
  const int x = static_cast<int>(threadIdx.x), i = tile.left + x;
  if (tile.columns_before(image.width) <= threadIdx.x) return;
  const RowRange own = tile.rows_of(rows);
#pragma unroll 4
  for (int y = own.first; y < own.last; ++y) {
    const int j = tile.top + y;
    const auto value = static_cast<float>(row_of<T>(image, j)[i]);
    const bool inside = !roi.data || row_of<std::uint8_t>(roi, j)[i] != 0;
    const bool outermost = i == 0 || j == 0 || i == image.width - 1 || j == image.height - 1;
    // Gradients of the outermost pixels are extrapolated: they have more error than information.
    const float gx = outermost ? 0 : dx[y * Tile::stride + x],
                gy = outermost ? 0 : dy[y * Tile::stride + Tile::halo + x];
    const __half2 most = __floats2half2_rn(gx, gy);
    const float2 rounded = __half22float2(most);
    const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(j) * stride + i;
    out.pixels[at] = {value, inside ? bits_of(most) : outside_roi};
    out.rest[at] = bits_of(__floats2half2_rn(gx - rounded.x, gy - rounded.y));
  }
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

/// One block for each tile that has some of the rows. Tiles are counted from the first such row of tiles.
struct TileGrid {
  int first;  ///< first row of tiles
  dim3 blocks;

  TileGrid(int width, const RowRange& rows) : first(rows.first / tile_height) {
    const auto tiles = [](int length, int tile) { return static_cast<unsigned>((length + tile - 1) / tile); };
    blocks = {tiles(width, tile_width), tiles(rows.last, tile_height) - static_cast<unsigned>(first)};
  }
};

}  // namespace

void launch_spline_coefficients(ImageView image, const RowRange& rows, Interpolation interpolation,
                                CoefficientPair* coefficients, StreamHandle stream) {
  if (rows.count() <= 0) return;
  const PlaneLayout layout(image.width, image.height);
  const TileGrid grid(image.width + 2 * layout.margin, {rows.first, rows.last + 2 * layout.margin});
  visit(interpolation, image.type, [&]<typename T>(auto degree, T) {
    spline_coefficients<degree, T><<<grid.blocks, Tile<degree>::threads, 0, stream>>>(
        image, rows, grid.first, coefficients, layout.stride);
  });
  check_launch("B-spline coefficients");
}

void launch_grey_range(ImageView image, const RowRange& rows, GreyRange* range, StreamHandle stream) {
  if (rows.count() <= 0) return;
  visit_scalar(image.type, [&]<typename T>(T) {
    grey_range<T><<<grid_size(rows.count(), 1), range_threads, 0, stream>>>(image, rows, range);
  });
  check_launch("grey values of the reference");
}

void launch_reference_pixels(ImageView image, const RowRange& rows, ImageView roi,
                             Interpolation interpolation, const GreyRange* range,
                             const ReferencePlanes& planes, StreamHandle stream) {
  if (rows.count() <= 0) return;
  const PlaneLayout layout(image.width, image.height);
  const TileGrid grid(image.width, rows);
  visit(interpolation, image.type, [&]<typename T>(auto degree, T) {
    reference_pixels<degree, T><<<grid.blocks, Tile<degree>::threads, 0, stream>>>(
        image, rows, grid.first, roi, range, planes, layout.stride);
  });
  check_launch("gradients of the reference");
}

}  // namespace dic::kernels
