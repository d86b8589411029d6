#pragma once

#include <cstddef>
#include <dic/image.hpp>
#include <dic/kernels/device.hpp>
#include <dic/refine.hpp>

/// B-splines of pictures on the GPU: coefficients and gradients, by the definitions of the CPU path.
namespace dic::kernels {

/// A plane of elements in device memory with a margin on every side, so that spline taps beyond the edge need
/// no test. Pointers to planes point at the pixel (0, 0).
struct PlaneLayout {
  static constexpr int margin = 8;  ///< px: taps of a quintic spline, half a pixel and a knot outside
  int width = 0, height = 0;        ///< px
  int stride = 0;                   ///< elements from row to row

  PlaneLayout() = default;
  PlaneLayout(int w, int h) : width(w), height(h), stride((w + 2 * margin + 31) / 32 * 32) {}
  std::size_t elements() const { return static_cast<std::size_t>(stride) * (height + 2 * margin); }
  /// Index of the pixel (0, 0).
  std::ptrdiff_t origin() const { return static_cast<std::ptrdiff_t>(margin) * stride + margin; }
};

/// Queues the computation of the B-spline coefficients of a picture in device memory, margin included: those
/// of the natural spline (continued beyond the edges by point reflection), times 1/36 (cubic) or 1/14400
/// (quintic). They differ from the CPU's by float rounding. coefficients: a plane of the picture's size.
void launch_spline_coefficients(ImageView picture, Interpolation interpolation, float* coefficients,
                                StreamHandle stream);

/// What the refinement reads of a pixel of its reference, in one piece.
struct alignas(16) ReferencePixel {
  float grey;
  float dx, dy;  ///< gradient of the spline, grey levels per px; 0 at the border
  float weight;  ///< 1 inside the ROI, 0 outside
};
/// Queues the computation of a plane of reference pixels. roi: u8, in device memory, inside where not zero;
/// empty = everywhere. largest: one value, the largest grey value, or 0 if all are negative.
void launch_reference_pixels(ImageView picture, ImageView roi, Interpolation interpolation,
                             ReferencePixel* pixels, float* largest, StreamHandle stream);

}  // namespace dic::kernels
