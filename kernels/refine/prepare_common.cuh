#pragma once

#include <dic/kernels/refine.hpp>
#include <dic/shared/icgn.hpp>
#include <dic/shared/least_pixels.hpp>

#include "common/launch.cuh"
#include "filter/reference_pixel.cuh"
#include "refine/window.hpp"

/// Parts that both ways to prepare subsets share.
namespace dic::kernels {

/// Returns the value of lane `source`, which may differ from lane to lane.
template <typename T>
__device__ T from_lane(T value, int source) {
  return __shfl_sync(all_lanes, value, source);
}

/// Arguments of the kernels.
struct PrepareArguments {
  RefineReference reference;
  int subset;
  SubsetWeights weights;
  Window window;
  float noise_gain;
  const int *x, *y;
  float least_pixels;  ///< for a whole subset, see refine::least_pixels

  __device__ float flat_sd() const { return static_cast<float>(icgn::flat_sd) * grey_scale(); }
  __device__ float largest_unit_sigma() const {
    return static_cast<float>(icgn::largest_unit_sigma) / grey_scale();
  }

 private:
  /// Grey value of 1/255 of the largest one.
  __device__ float grey_scale() const { return fmaxf(reference.range->largest / 255, 1e-20f); }
};

/// Cuts the rectangle of a subset to the image; the status becomes out_of_image if less than `least` px
/// remain.
__device__ inline void clip_to_image(const PrepareArguments& args, PreparedSubset& s, float least) {
  const PlaneLayout& layout = args.reference.layout;
  s.left = static_cast<std::int16_t>(max(s.left, -s.x));
  s.right = static_cast<std::int16_t>(min(s.right, layout.width - 1 - s.x));
  s.top = static_cast<std::int16_t>(max(s.top, -s.y));
  s.bottom = static_cast<std::int16_t>(min(s.bottom, layout.height - 1 - s.y));
  const bool outside = s.left > 0 || s.right < 0 || s.top > 0 || s.bottom < 0;
  const int inside = (s.right - s.left + 1) * (s.bottom - s.top + 1);
  if (outside || static_cast<float>(inside) < least) s.status = Status::out_of_image;
}

/// The part of the subset inside the image; the status is out_of_image if that is too small.
__device__ inline PreparedSubset subset_in_image(const PrepareArguments& args, std::int64_t task) {
  PreparedSubset s;
  s.x = args.x[task];
  s.y = args.y[task];
  s.left = s.top = static_cast<std::int16_t>(-(args.subset / 2));
  s.right = s.bottom = static_cast<std::int16_t>(args.subset / 2);
  clip_to_image(args, s, args.least_pixels);
  return s;
}

/// True if the rows of the subset are in memory (see RefineReference::rows).
__device__ inline bool has_pixels(const PrepareArguments& args, const PreparedSubset& s) {
  const RowRange& rows = args.reference.rows;
  return s.status != Status::ok || (s.y + s.top >= rows.first && s.y + s.bottom < rows.last);
}

/// Gradient noise for uniform weights, see GradientNoise. of_u, of_v: columns of the inverse matrix.
template <int N>
__device__ GradientNoise gradient_noise_of(const PrepareArguments& args, const PreparedSubset& s,
                                           const float (&of_u)[N], const float (&of_v)[N]) {
  const icgn::PixelMoments<float> x(s.left, s.right), y(s.top, s.bottom);
  return icgn::gradient_noise<N, float>(of_u, of_v, x, y, s.count * args.noise_gain);
}

/// Weighted sums over a subset, grey values relative to its mean; monomials i^a j^b in the order of icgn.
template <int kOrder>
struct Sums {
  static constexpr int terms = icgn::monomial_count(kOrder), products = icgn::monomial_count(2 * kOrder);
  float linear[2 * terms] = {};    ///< dx, then dy
  float grey[2 * terms + 1] = {};  ///< f dx, f dy, then f f
  float dx_dx[products] = {}, dx_dy[products] = {}, dy_dy[products] = {};

  __device__ void add(float weight, float f, float dx, float dy, float i, float j) {
    grey[2 * terms] += weight * f * f;
    float powers[2 * kOrder + 1];  // powers of j
    powers[0] = 1;
#pragma unroll
    for (int b = 1; b <= 2 * kOrder; ++b) powers[b] = powers[b - 1] * j;
    float power_of_i = weight;
#pragma unroll
    for (int a = 0; a <= 2 * kOrder; ++a, power_of_i *= i)
#pragma unroll
      for (int b = 0; a + b <= 2 * kOrder; ++b) add_term(a, b, power_of_i * powers[b], f, dx, dy);
  }

 private:
  __device__ void add_term(int a, int b, float monomial, float f, float dx, float dy) {
    const int k = icgn::monomial_index(a, b);
    const float x = monomial * dx, y = monomial * dy;
    dx_dx[k] += x * dx;
    dx_dy[k] += x * dy;
    dy_dy[k] += y * dy;
    if (a + b > kOrder) return;
    linear[k] += x;
    linear[terms + k] += y;
    grey[k] += f * x;
    grey[terms + k] += f * y;
  }
};

}  // namespace dic::kernels
