#pragma once

#include <cuda_fp16.h>

#include <dic/kernels/spline.hpp>

/// Storage of the gradient of the reference.
namespace dic::kernels {

/// Unit of stored gradients, grey levels per px: a power of two that keeps all gradients of an image, at most
/// 2.2 times its largest absolute grey value, in the range of half floats.
__device__ inline float gradient_unit(const GreyRange& range) {
  constexpr int most = 14;
  return range.magnitude > 0 ? ldexpf(1, ilogbf(range.magnitude) + 1 - most) : 1;
}

__device__ inline float2 halves(std::uint32_t bits) {
  return __half22float2(reinterpret_cast<const __half2&>(bits));
}
__device__ inline std::uint32_t bits_of(__half2 halves) {
  return reinterpret_cast<const std::uint32_t&>(halves);
}

constexpr std::uint32_t outside_roi = 0xffffffffu;
__device__ inline bool counts(const ReferencePixel& pixel) { return pixel.gradient != outside_roi; }

/// Gradient in units of gradient_unit.
__device__ inline float2 gradient_of(const ReferencePixel& pixel) { return halves(pixel.gradient); }
__device__ inline float2 exact_gradient(const ReferencePixel& pixel, std::uint32_t rest) {
  const float2 most = halves(pixel.gradient), least = halves(rest);
  return {most.x + least.x, most.y + least.y};
}

}  // namespace dic::kernels
