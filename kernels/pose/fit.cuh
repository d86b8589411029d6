#pragma once

#include <dic/kernels/pose.hpp>
#include <new>

#include "common/launch.cuh"
#include "common/transposed_sum.cuh"

/// Grey values, medians and sums of a block, which all fits of poses use.
namespace dic::kernels::fits {

constexpr int bin_count = 256;  ///< of a byte
constexpr int most_medians = 2 * pose::kMedianPixels;

/// Shared memory of a block for the fit of one candidate, without the grey values.
template <int kWarps>
struct Shared {
  double score_sums[kWarps][6];
  double product_sums[kWarps][pose::kProducts + 1];
  double products[pose::kProducts + 1];
  unsigned bins[bin_count];
  unsigned digit, rank, alike;  ///< alike: residuals with the digit
  float middle;
  int residual_count;
  bool goes_on;
  alignas(pose::FitSteps) unsigned char steps[sizeof(pose::FitSteps)];
};

/// An image between whose pixels grey values are bilinear.
struct BilinearImage {
  static constexpr int after = 1;  ///< px that are read to the right of a position
  PoseLevel level;

  __device__ float value(int column, int row, float fx, float fy) const {
    const float* p = level.values + static_cast<std::int64_t>(row) * level.width + column;
    const float a = p[0], b = p[1], c = p[level.width], d = p[level.width + 1];
    const float top = fmaf(fx, b - a, a), bottom = fmaf(fx, d - c, c);
    return fmaf(fy, bottom - top, top);
  }
};

/// A warp as floats: the centre is split into pixel and fraction, so that positions keep their digits.
template <typename Image>
struct Sampler {
  Image image;
  float xx, xy, yx, yy, cx, cy;
  int whole_x, whole_y;

  __device__ Sampler(const Image& of, const pose::Warp& w)
      : image(of),
        xx(static_cast<float>(w.xx)),
        xy(static_cast<float>(w.xy)),
        yx(static_cast<float>(w.yx)),
        yy(static_cast<float>(w.yy)) {
    const double x = fmin(fmax(w.center_x, -1e6), 1e6), y = fmin(fmax(w.center_y, -1e6), 1e6);
    whole_x = static_cast<int>(floor(x)), whole_y = static_cast<int>(floor(y));
    cx = static_cast<float>(w.center_x - whole_x), cy = static_cast<float>(w.center_y - whole_y);
  }

  /// Grey value minus `origin` at template coordinates; NaN outside the image or its mask.
  __device__ float at(float xi, float eta, float origin) const {
    const float x = fmaf(xx, xi, fmaf(xy, eta, cx)), y = fmaf(yx, xi, fmaf(yy, eta, cy));
    const float nan = __int_as_float(0x7fffffff);
    if (!(x >= least(whole_x) && x <= most(image.level.width, whole_x) && y >= least(whole_y) &&
          y <= most(image.level.height, whole_y)))
      return nan;
    if (image.level.mask) {
      const int column = whole_x + static_cast<int>(floorf(x + 0.5f));
      const std::int64_t line = whole_y + static_cast<int>(floorf(y + 0.5f));
      if (image.level.mask[line * image.level.width + column] == 0) return nan;
    }
    return interpolated(x, y) - origin;
  }
  /// Grey value, that of the nearest place inside the image if the place is outside.
  __device__ float clamped(float xi, float eta) const {
    const float x = fmaf(xx, xi, fmaf(xy, eta, cx)), y = fmaf(yx, xi, fmaf(yy, eta, cy));
    return interpolated(fminf(fmaxf(x, least(whole_x)), most(image.level.width, whole_x)),
                        fminf(fmaxf(y, least(whole_y)), most(image.level.height, whole_y)));
  }

 private:
  __device__ static float least(int whole) { return static_cast<float>(-whole); }
  __device__ static float most(int size, int whole) { return static_cast<float>(size - 1 - whole); }
  __device__ float interpolated(float x, float y) const {
    const float x0 = fminf(floorf(x), most(image.level.width - Image::after, whole_x)),
                y0 = fminf(floorf(y), most(image.level.height - Image::after, whole_y));
    return image.value(whole_x + static_cast<int>(x0), whole_y + static_cast<int>(y0), x - x0, y - y0);
  }
};

template <typename Image>
__device__ Sampler<Image> shifted(const Image& image, pose::Warp w, double xi, double eta) {
  w.center_x += w.xx * xi + w.xy * eta;
  w.center_y += w.yx * xi + w.yy * eta;
  return {image, w};
}

/// Sums of a few floats over the block, as doubles, in `sums` of every thread.
template <int kWarps, int kCount>
__device__ void block_sums(const float (&values)[kCount], double (&of_warps)[kWarps][kCount],
                           double (&sums)[kCount]) {
  using Transposed = TransposedSum<kCount>;
  const float sum = Transposed::sum_over_warp(values);
  const int lane = threadIdx.x % warp_size;
#pragma unroll
  for (int k = 0; k < kCount; ++k)
    if (lane == Transposed::lane_of(k)) of_warps[threadIdx.x / warp_size][k] = sum;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    sums[k] = 0;
    for (int w = 0; w < kWarps; ++w) sums[k] += of_warps[w][k];
  }
  __syncthreads();
}

/// The bin in which the element of a rank is, and its rank there. By one warp.
template <typename Shared>
__device__ void find_digit(Shared& shared, unsigned rank) {
  constexpr int per_lane = bin_count / warp_size;
  const int lane = threadIdx.x;
  unsigned own = 0;
  for (int k = 0; k < per_lane; ++k) own += shared.bins[lane * per_lane + k];
  unsigned before = own;
  for (int offset = 1; offset < warp_size; offset *= 2) {
    const unsigned other = __shfl_up_sync(all_lanes, before, offset);
    if (lane >= offset) before += other;
  }
  before -= own;
  if (rank < before || rank >= before + own) return;
  for (int k = 0; k < per_lane; ++k) {
    const unsigned here = shared.bins[lane * per_lane + k];
    if (rank < before + here) {
      shared.digit = lane * per_lane + k;
      shared.rank = rank - before;
      shared.alike = here;
      return;
    }
    before += here;
  }
}

/// The middle one of the residuals, which are not negative, so that their bits are ordered as they are. The
/// first digit is the exponent, in which they differ. length: of the list; those that count come first when
/// sorted.
template <int kThreads, typename Shared>
__device__ float median(Shared& shared, const float* residuals, int length) {
  constexpr int digit_bits = 8;
  unsigned known = 0;
  if (threadIdx.x == 0) shared.rank = shared.residual_count / 2;
  for (int top = 31; top > 0;) {  // the sign is 0
    const int shift = max(top - digit_bits, 0);
    const unsigned mask = (1u << (top - shift)) - 1;
    for (int k = threadIdx.x; k < bin_count; k += kThreads) shared.bins[k] = 0;
    __syncthreads();
    const unsigned rank = shared.rank;
    for (int k = threadIdx.x; k < length; k += kThreads) {
      const unsigned bits = __float_as_uint(residuals[k]);
      if (bits >> top == known) atomicAdd(&shared.bins[bits >> shift & mask], 1u);
    }
    __syncthreads();
    if (threadIdx.x < warp_size) find_digit(shared, rank);
    __syncthreads();
    known = known << (top - shift) | shared.digit;
    top = shift;
    if (shared.alike > 1) continue;
    for (int k = threadIdx.x; k < length; k += kThreads)
      if (__float_as_uint(residuals[k]) >> top == known) shared.middle = residuals[k];
    __syncthreads();
    return shared.middle;
  }
  return __uint_as_float(known);
}

/// Residual from which pixels do not count. residuals: scratch of most_medians elements in shared memory.
template <int kThreads, typename Shared>
__device__ float limit_of(const PosePixels& pixels, const float* values, Shared& shared, float* residuals,
                          bool is_near, double gain, double offset) {
  if (threadIdx.x == 0) shared.residual_count = 0;
  __syncthreads();
  const int stride = pose::median_stride(pixels.count), length = (pixels.count + stride - 1) / stride;
  const auto g = static_cast<float>(gain), o = static_cast<float>(offset);
  const float infinity = __int_as_float(0x7f800000);  // a pixel that is outside
  int inside = 0;
  for (int k = threadIdx.x; k < length; k += kThreads) {
    const float v = values[k * stride];
    residuals[k] = v == v ? fabsf(v - g * pixels.t[k * stride] - o) : infinity;
    inside += v == v;
  }
  inside = __reduce_add_sync(all_lanes, inside);
  if (threadIdx.x % warp_size == 0) atomicAdd(&shared.residual_count, inside);
  __syncthreads();
  const float middle = shared.residual_count > 0 ? median<kThreads>(shared, residuals, length) : 0.0f;
  return pose::residual_limit(is_near, middle, pixels.squares, gain, pixels.count);
}

/// Weight of a pixel inside the image; limit 0: all count.
__device__ inline float weight_of(float residual, float limit) {
  return limit > 0 ? pose::biweight(residual / limit) : 1.0f;
}

/// The terms of which a fit needs products, see pose::kTerms. Without shear, a turn and a growth take the
/// places of two of the four terms of the matrix; those of the others are 0.
template <bool kShears>
struct FitTerms {
  static constexpr int count = kShears ? pose::kTerms : pose::kTerms - 2;
  /// Sums of the products, and the number of pixels that fit.
  static constexpr int sums = count * (count + 1) / 2 + 1;
  float values[count];

  __device__ FitTerms(const PosePixels& pixels, int k, float v) {
    const float xi = pixels.xi[k], eta = pixels.eta[k], t = pixels.t[k], tx = pixels.tx[k], ty = pixels.ty[k];
    int at = 0;
    values[at++] = tx, values[at++] = ty;
    if constexpr (kShears) {
      values[at++] = xi * tx, values[at++] = eta * tx;
      values[at++] = xi * ty, values[at++] = eta * ty;
    } else {
      values[at++] = fmaf(xi, tx, eta * ty), values[at++] = fmaf(xi, ty, -eta * tx);
    }
    values[at++] = t, values[at++] = 1, values[at++] = v;
  }
  /// Index among pose::kTerms: turn and growth are 4 and 2, see NormalEquations::of().
  __device__ static constexpr int term(int k) { return kShears || k < 3 ? k : k == 3 ? 4 : k + 2; }
};

template <bool kShears>
__device__ void add_products(const PosePixels& pixels, int k, float v, float w,
                             float (&sums)[FitTerms<kShears>::sums]) {
  using Terms = FitTerms<kShears>;
  const Terms terms(pixels, k, v);
  int at = 0;
#pragma unroll
  for (int i = 0; i < Terms::count; ++i) {
    const float weighted = w * terms.values[i];
#pragma unroll
    for (int j = i; j < Terms::count; ++j, ++at) sums[at] = fmaf(weighted, terms.values[j], sums[at]);
  }
  sums[Terms::sums - 1] += w > pose::kFits;
}

constexpr int product_sums = pose::kProducts + 1;

/// Sums over the warp some of the products, `kFirst` and up.
template <bool kShears, int kFirst = 0>
__device__ void warp_products(const float (&sums)[FitTerms<kShears>::sums], double (&of_warp)[product_sums]) {
  using Terms = FitTerms<kShears>;
  constexpr int count = Terms::sums - kFirst < warp_size ? Terms::sums - kFirst : warp_size;
  float some[count];
#pragma unroll
  for (int k = 0; k < count; ++k) some[k] = sums[kFirst + k];
  const float sum = TransposedSum<count>::sum_over_warp(some);
  const auto put = [&](int k, int place) {
    const bool is_here = k >= kFirst && k < kFirst + count;
    if (is_here && static_cast<int>(threadIdx.x) % warp_size == TransposedSum<count>::lane_of(k - kFirst))
      of_warp[place] = sum;
  };
  int at = 0;
#pragma unroll
  for (int i = 0; i < Terms::count; ++i)
#pragma unroll
    for (int j = i; j < Terms::count; ++j, ++at) put(at, pose::product_index(Terms::term(i), Terms::term(j)));
  put(at, pose::kProducts);
  if constexpr (kFirst + count < Terms::sums) warp_products<kShears, kFirst + count>(sums, of_warp);
}

/// Sums products over the block, as doubles.
template <int kThreads, bool kShears, typename Shared>
__device__ void block_products(const float (&sums)[FitTerms<kShears>::sums], Shared& shared,
                               double* products) {
  warp_products<kShears>(sums, shared.product_sums[threadIdx.x / warp_size]);
  __syncthreads();
  for (int k = threadIdx.x; k < product_sums; k += kThreads) {
    double sum = 0;
    for (int w = 0; w < kThreads / warp_size; ++w) sum += shared.product_sums[w][k];
    products[k] = sum;
  }
  __syncthreads();
}

/// Sets the sums that no product is added to.
template <typename Shared>
__device__ void clear_products(Shared& shared) {
  double* sums = &shared.product_sums[0][0];
  for (int k = threadIdx.x; k < static_cast<int>(sizeof(shared.product_sums) / sizeof(double));
       k += blockDim.x)
    sums[k] = 0;
}

/// Adds a pixel to the sums of pose::ScoreSums.
__device__ inline void add_scores(float t, float v, float (&sums)[6]) {
  sums[0] += 1, sums[1] += t, sums[2] = fmaf(t, t, sums[2]);
  sums[3] += v, sums[4] = fmaf(v, v, sums[4]), sums[5] = fmaf(t, v, sums[5]);
}

/// Mean grey value of the first pixels: values relative to it keep the digits of a small contrast.
template <int kThreads, typename Image, typename Shared>
__device__ float origin_at(const Image& image, const PosePixels& pixels, const pose::Warp& warp,
                           Shared& shared) {
  const Sampler<Image> sampler(image, warp);
  float parts[6] = {};
  for (int k = threadIdx.x; k < PosePixels::kPadding; k += kThreads) {
    const float v =
        k < pixels.count ? sampler.at(pixels.xi[k], pixels.eta[k], 0) : __int_as_float(0x7fffffff);
    if (v == v) parts[0] += v, parts[1] += 1;
  }
  double sums[6];
  block_sums(parts, shared.score_sums, sums);
  return sums[1] > 0 ? static_cast<float>(round(sums[0] / sums[1])) : 0.0f;
}

/// Lets a warp take the step to which products lead.
__device__ inline void take_products(pose::FitSteps& steps, const double* products) {
  for (int entry = threadIdx.x; entry < steps.equations(); entry += warp_size)
    steps.fill_equations(products, entry);
  __syncwarp();
  if (threadIdx.x == 0) steps.take_filled(products, products[pose::kProducts]);
}

}  // namespace dic::kernels::fits
