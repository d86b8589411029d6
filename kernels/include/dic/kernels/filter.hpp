#pragma once

#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/shared/image_view.hpp>
#include <span>

/// Filters of images: separable convolution and gradients. Images are u8, u16 or f32 with finite values;
/// results are f32, at least as large as the image, and do not overlap it. Empty images queue no work.
namespace dic::kernels {

/// Continuation of a line a b c d beyond its ends.
enum class Border : std::uint8_t {
  replicate,        ///< d | d d
  mirror,           ///< d | c b
  point_reflection  ///< d | 2d-c 2d-b: slopes go on, as in the natural spline
};

/// Largest number of taps of a convolution per direction.
constexpr int most_taps = 63;

/// Queues out(x, y) = sum_ij taps_x[i] taps_y[j] in(x + rx - i, y + ry - j), rx and ry the middle of the
/// taps. The number of taps is odd, 1 to most_taps per direction (throws UsageError otherwise); {1} leaves a
/// direction unchanged.
void launch_convolution(const DeviceImage& in, ScalarType type, std::span<const float> taps_x,
                        std::span<const float> taps_y, Border border, DevicePlane<float> out,
                        StreamHandle stream);

/// Function whose gradient is computed.
enum class GradientOf : std::uint8_t {
  image,           ///< half the difference of the neighbours
  cubic_spline,    ///< `in` holds the coefficients of the quintic spline times 1/14400
  quintic_spline,  ///< the quintic spline's times 1/14400
};
/// Queues the gradient (dx, dy) at the pixels, in grey levels per px; the border is point_reflection.
void launch_gradient(const DeviceImage& in, ScalarType type, GradientOf of, DevicePlane<float> dx,
                     DevicePlane<float> dy, StreamHandle stream);

}  // namespace dic::kernels
