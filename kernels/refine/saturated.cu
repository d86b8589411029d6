#include <dic/kernels/saturated.hpp>
#include <dic/shared/saturation.hpp>
#include <limits>

#include "common/launch.cuh"

namespace dic::kernels {
namespace {

constexpr int threads = 256;
constexpr int warps = threads / warp_size;

template <typename T>
__device__ T pixel_at(const ImageView& image, int x, int y) {
  return reinterpret_cast<const T*>(static_cast<const std::byte*>(image.data) + y * image.row_bytes)[x];
}

/// Finds the bits of the pixels with the largest value, one word per warp.
template <typename T>
__global__ void __launch_bounds__(threads)
    find_largest(const __grid_constant__ ImageView image, std::uint32_t* words) {
  const int row_words = (image.width + warp_size - 1) / warp_size, lane = threadIdx.x % warp_size;
  for_each_task(std::int64_t{row_words} * image.height, warps, warp_index(), [&](std::int64_t word) {
    const int y = static_cast<int>(word / row_words),
              x = static_cast<int>(word % row_words) * warp_size + lane;
    const bool largest = x < image.width && pixel_at<T>(image, x, y) == std::numeric_limits<T>::max();
    const std::uint32_t bits = __ballot_sync(all_lanes, largest);
    if (lane == 0) words[word] = bits;
  });
}

/// As find_largest, for rows of 16-byte words, padded to whole words of bits, one word per thread.
template <typename T>
__global__ void __launch_bounds__(threads)
    find_largest_aligned(const __grid_constant__ ImageView image, std::uint32_t* words) {
  constexpr int loads = warp_size * sizeof(T) / sizeof(uint4);
  const int row_words = (image.width + warp_size - 1) / warp_size;
  for_each_task(std::int64_t{row_words} * image.height, threads, threadIdx.x, [&](std::int64_t word) {
    const int y = static_cast<int>(word / row_words), x = static_cast<int>(word % row_words) * warp_size;
    const auto* from = reinterpret_cast<const uint4*>(static_cast<const std::byte*>(image.data) +
                                                      y * image.row_bytes + x * sizeof(T));
    unsigned four[loads][4];
    unsigned any = 0;
#pragma unroll
    for (int k = 0; k < loads; ++k) {
      const uint4 pixels = from[k];
      const auto largest = [](unsigned v) {
        return sizeof(T) == 1 ? __vcmpeq4(v, 0xffffffffu) : __vcmpeq2(v, 0xffffffffu);
      };
      four[k][0] = largest(pixels.x), four[k][1] = largest(pixels.y);
      four[k][2] = largest(pixels.z), four[k][3] = largest(pixels.w);
      any |= four[k][0] | four[k][1] | four[k][2] | four[k][3];
    }
    std::uint32_t bits = 0;
    if (any != 0) {
      constexpr int per = sizeof(unsigned) / sizeof(T);
#pragma unroll
      for (int k = 0; k < loads * 4; ++k)
#pragma unroll
        for (int pixel = 0; pixel < per; ++pixel)
          bits |= (four[k / 4][k % 4] >> (8 * sizeof(T) * pixel) & 1u) << (k * per + pixel);
      if (image.width - x < warp_size) bits &= (1u << (image.width - x)) - 1;
    }
    words[word] = bits;
  });
}

template <typename T>
void find_largest_in(const ImageView& image, const SaturatedPixels& largest, std::uint32_t* words,
                     StreamHandle stream) {
  const auto start = reinterpret_cast<std::uintptr_t>(image.data);
  const bool is_aligned = start % sizeof(uint4) == 0 && image.row_bytes % sizeof(uint4) == 0 &&
                          image.row_bytes >= largest.row_words() * warp_size * std::ptrdiff_t{sizeof(T)};
  if (is_aligned)
    find_largest_aligned<T><<<grid_size(largest.size(), threads), threads, 0, stream>>>(image, words);
  else
    find_largest<T><<<grid_size(largest.size(), 8 * warps), threads, 0, stream>>>(image, words);
}

/// Finds the pixels in squares of 3x3 px that all have the largest value: single pixels of that value may be
/// texture.
__global__ void __launch_bounds__(threads)
    find_squares(const __grid_constant__ SaturatedPixels largest, std::uint32_t* words, std::int32_t* any) {
  const int row_words = largest.row_words();
  const auto row_of = [&](int w, int y, int shift) -> std::uint32_t {  // bits moved to the right by `shift`
    if (y < 0 || y >= largest.height) return 0;
    const std::uint32_t* row = largest.words + std::int64_t{y} * row_words;
    const std::uint32_t here = row[w];
    if (shift > 0) return here << 1 | (w > 0 ? row[w - 1] >> 31 : 0);
    if (shift < 0) return here >> 1 | (w + 1 < row_words ? row[w + 1] << 31 : 0);
    return here;
  };
  const auto centres = [&](int w, int y) -> std::uint32_t {
    if (w < 0 || w >= row_words) return 0;
    std::uint32_t bits = 0xffffffffu;
    for (int row = y - 1; row <= y + 1; ++row)
      for (int shift = -1; shift <= 1; ++shift) bits &= row_of(w, row, shift);
    return bits;
  };
  for_each_task(largest.size(), threads, threadIdx.x, [&](std::int64_t word) {
    const int y = static_cast<int>(word / row_words), w = static_cast<int>(word % row_words);
    std::uint32_t bits = 0;
    if (largest.words[word] != 0)
      for (int row = y - 1; row <= y + 1; ++row) {
        const std::uint32_t here = centres(w, row);
        bits |= here | here << 1 | here >> 1 | centres(w - 1, row) >> 31 | centres(w + 1, row) << 31;
      }
    words[word] = bits;
    if (bits != 0) *any = 1;
  });
}

/// Displacement of the pixels (i, j) of a subset, in whole px.
struct Displacement {
  ShapeParameters shape;
  int x, y;

  __device__ long x_at(int i, int j) const { return lround(x + i + shape.u_at(i, j)); }
  __device__ long y_at(int i, int j) const { return lround(y + j + shape.v_at(i, j)); }
};

__device__ bool any_in_box(const SaturatedPixels& pixels, long left, long right, long top, long bottom) {
  if (!pixels.words) return false;
  left = max(left, 0L), top = max(top, 0L);
  right = min(right, pixels.width - 1L), bottom = min(bottom, pixels.height - 1L);
  for (long y = top; y <= bottom; ++y)
    for (long word = left >> 5; word <= right >> 5; ++word) {
      std::uint32_t bits = pixels.words[y * pixels.row_words() + word];
      if (word == left >> 5) bits &= 0xffffffffu << (left & 31);
      if (word == right >> 5) bits &= 0xffffffffu >> (31 - (right & 31));
      if (bits != 0) return true;
    }
  return false;
}

/// True if there can be saturated pixels in the subset, or a glare next to it, in either image.
__device__ bool may_be_saturated(const SaturatedFrame& frame, const PreparedSubset& s,
                                 const Displacement& displaced) {
  const int reach = icgn::glare_reach(frame.masks.radius);
  if (any_in_box(frame.reference, s.x - reach, s.x + reach, s.y - reach, s.y + reach)) return true;
  const ShapeParameters& d = displaced.shape;
  const double r = reach;
  const auto spread = [r](double x, double y, double xx, double xy, double yy) {
    return static_cast<long>(r * (1 + fabs(x) + fabs(y)) + r * r * (fabs(xx) / 2 + fabs(xy) + fabs(yy) / 2)) +
           2;
  };
  const long u = lround(d.u), v = lround(d.v), du = spread(d.ux, d.uy, d.uxx, d.uxy, d.uyy),
             dv = spread(d.vx, d.vy, d.vxx, d.vxy, d.vyy);
  return any_in_box(frame.current, s.x + u - du, s.x + u + du, s.y + v - dv, s.y + v + dv);
}

/// The images in which a displaced pixel of a subset is saturated.
__device__ icgn::Saturation saturation(const SaturatedFrame& frame, const PreparedSubset& s,
                                       const Displacement& displaced, int i, int j) {
  return {frame.reference.holds(s.x + i, s.y + j),
          frame.current.holds(displaced.x_at(i, j), displaced.y_at(i, j))};
}

/// Calls visit(i, j, saturation) for the pixels of this lane that count. number: number of the subset.
template <typename Visit>
__device__ void each_pixel(const SaturatedFrame& frame, const PreparedSubset& s, std::int32_t number,
                           const Displacement& displaced, Visit&& visit) {
  const int width = s.right - s.left + 1, pixels = width * (s.bottom - s.top + 1);
  for (int k = threadIdx.x % warp_size; k < pixels; k += warp_size) {
    const int i = s.left + k % width, j = s.top + k / width;
    if (frame.masks.hide(number, i, j)) continue;
    if (frame.roi.data && pixel_at<std::uint8_t>(frame.roi, s.x + i, s.y + j) == 0) continue;
    visit(i, j, saturation(frame, s, displaced, i, j));
  }
}

/// True if all pixels up to `reach` px from a pixel of the subset, along each axis, are saturated. All lanes
/// must call it.
__device__ bool is_white(const SaturatedFrame& frame, const PreparedSubset& s, const Displacement& displaced,
                         int x, int y, int reach) {
  const int side = 2 * reach + 1;
  bool white = true;
  for (int k = threadIdx.x % warp_size; k < side * side; k += warp_size)
    white = white && saturation(frame, s, displaced, x - reach + k % side, y - reach + k / side).any();
  return __all_sync(all_lanes, white);
}

__device__ void make_less_certain(RefineResult& result, float factor) {
  result.unit_sigma_u *= factor;
  result.unit_sigma_v *= factor;
  result.unit_covariance *= factor * factor;
}

/// Judges a refinement and lists it if necessary. All lanes must call it.
__device__ void look_at(const SaturatedFrame& frame, const SaturatedList& list, std::int32_t number,
                        const Displacement& displaced) {
  const int lane = threadIdx.x % warp_size, radius = frame.masks.radius;
  const RefineTask& task = frame.tasks[number];
  RefineResult& result = frame.results[number];
  PreparedSubset s = frame.subsets[task.point];
  icgn::SaturationCounts pixels;
  each_pixel(frame, s, task.point, displaced, [&](int, int, icgn::Saturation pixel) { pixels.add(pixel); });
  pixels = {warp_sum(pixels.all), warp_sum(pixels.any), warp_sum(pixels.differing)};
  const auto white = [&](int x, int y, int reach) { return is_white(frame, s, displaced, x, y, reach); };
  const icgn::SaturationRule rule =
      icgn::saturation_rule(pixels, frame.masks.words != nullptr, radius, white);
  const bool beside_glare = icgn::is_beside_glare(radius, white);
  if (rule == icgn::SaturationRule::keep) {
    if (lane == 0 && beside_glare) make_less_certain(result, icgn::kBesideGlare);
    return;
  }
  if (rule == icgn::SaturationRule::give_up) {
    if (lane == 0) result.status = Status::low_correlation;
    return;
  }
  int at = 0;
  if (lane == 0) at = atomicAdd(list.count, 1);
  at = __shfl_sync(all_lanes, at, 0);
  const PixelMasks& masks = frame.masks;
  const std::uint32_t* before = masks.words ? masks.words + task.point * masks.words_of() : nullptr;
  std::uint32_t* mask = list.masks + at * masks.words_of();
  for (int k = lane; k < masks.words_of(); k += warp_size) mask[k] = before ? before[k] : 0;
  __syncwarp();
  each_pixel(frame, s, task.point, displaced, [&](int i, int j, icgn::Saturation pixel) {
    if (icgn::is_left_out(pixel, rule)) atomicOr(mask + masks.word(i, j), masks.bit(i));
  });
  if (lane != 0) return;
  s.status = pending;
  list.subsets[at] = s;
  list.tasks[at] = {at, task.u, task.v, result.shape};
  list.of_task[at] = {number, beside_glare};
}

/// Lists refinements: each lane tests whether its refinement may be concerned, then the warp looks closely.
__global__ void __launch_bounds__(threads, 2)
    list_saturated(const __grid_constant__ SaturatedFrame frame, const __grid_constant__ SaturatedList list) {
  const int lane = threadIdx.x % warp_size;
  for_each_task((frame.count + warp_size - 1) / warp_size, warps, warp_index(), [&](std::int64_t chunk) {
    const auto own = static_cast<std::int32_t>(chunk * warp_size + lane);
    const auto displacement_of = [&](std::int32_t number) {
      const RefineTask& task = frame.tasks[number];
      const PreparedSubset& s = frame.subsets[task.point];
      return Displacement{joined(task.u, task.v, frame.results[number].shape), s.x, s.y};
    };
    bool concerned = false;
    if (own < frame.count && frame.results[own].status == Status::ok) {
      const std::int32_t point = frame.tasks[own].point;
      concerned = point != no_point && may_be_saturated(frame, frame.subsets[point], displacement_of(own));
    }
    for (unsigned left = __ballot_sync(all_lanes, concerned); left != 0; left &= left - 1) {
      const auto number = static_cast<std::int32_t>(chunk * warp_size + __ffs(static_cast<int>(left)) - 1);
      look_at(frame, list, number, displacement_of(number));
    }
  });
}

__global__ void __launch_bounds__(threads)
    take_unsaturated(const __grid_constant__ SaturatedFrame frame, const __grid_constant__ SaturatedList list,
                     std::int64_t n, const RefineResult* results) {
  for_each_task(n, threads, threadIdx.x, [&](std::int64_t k) {
    const RepeatedTask task = list.of_task[k];
    RefineResult& result = frame.results[task.number];
    if (list.subsets[k].status != Status::ok) {
      result.status = Status::low_correlation;
      return;
    }
    result = results[k];
    if (task.beside_glare) make_less_certain(result, icgn::kBesideGlare);
  });
}

}  // namespace

void launch_find_saturated(const ImageView& image, std::uint32_t* words, std::uint32_t* scratch,
                           std::int32_t* any, StreamHandle stream) {
  const SaturatedPixels largest{scratch, image.width, image.height};
  if (largest.size() == 0) return;
  if (image.type == ScalarType::u8)
    find_largest_in<std::uint8_t>(image, largest, scratch, stream);
  else if (image.type == ScalarType::u16)
    find_largest_in<std::uint16_t>(image, largest, scratch, stream);
  else
    return;
  find_squares<<<grid_size(largest.size(), threads), threads, 0, stream>>>(largest, words, any);
  check_launch("saturated pixels");
}

void launch_list_saturated(const SaturatedFrame& frame, const SaturatedList& list, StreamHandle stream) {
  fill(list.count, 0, sizeof(*list.count), stream);
  if (frame.count == 0) return;
  list_saturated<<<grid_size(frame.count, threads), threads, 0, stream>>>(frame, list);
  check_launch("subsets with saturated pixels");
}

void launch_take_unsaturated(const SaturatedFrame& frame, const SaturatedList& list, std::int64_t n,
                             const RefineResult* results, StreamHandle stream) {
  if (n == 0) return;
  take_unsaturated<<<grid_size(n, threads), threads, 0, stream>>>(frame, list, n, results);
  check_launch("subsets without saturated pixels");
}

}  // namespace dic::kernels
