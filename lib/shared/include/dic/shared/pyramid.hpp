#pragma once

#include <cstdint>
#include <dic/shared/host_device.hpp>

/// The pixels of reduced images, equal on host and device: 8 bit, regardless of the image's type.
namespace dic {

/// Maps grey values from low .. high to 0 .. 255, and all to 0 if low = high.
class GreyStretch {
 public:
  DIC_HOST_DEVICE GreyStretch(double low, double high)
      : low_(static_cast<float>(low)), scale_(high > low ? static_cast<float>(255 / (high - low)) : 0.0f) {}

  template <typename T>
  DIC_HOST_DEVICE std::uint8_t operator()(T value) const {
    const float above = static_cast<float>(value) - low_;
#ifdef __CUDA_ARCH__
    return static_cast<std::uint8_t>(__fadd_rn(
        __fmul_rn(above, scale_), 0.5f));  // no fused multiply-add: the same rounding as on the host
#else
    return static_cast<std::uint8_t>(above * scale_ + 0.5f);  // NOLINT(bugprone-incorrect-roundings)
#endif
  }

 private:
  float low_, scale_;
};

/// Mean of 2x2 pixels, rounded.
DIC_HOST_DEVICE constexpr std::uint8_t mean_of_four(int a, int b, int c, int d) {
  return static_cast<std::uint8_t>((a + b + c + d + 2) / 4);
}

}  // namespace dic
