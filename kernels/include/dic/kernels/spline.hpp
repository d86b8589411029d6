#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/image_view.hpp>
#include <dic/shared/refine_options.hpp>

/// B-splines of images on the GPU: coefficients and gradients, defined as on the CPU.
namespace dic::kernels {

/// A plane of elements in device memory with a margin on every side, so that spline taps beyond the edge need
/// no test. Pointers to planes point to the pixel (0, 0).
struct PlaneLayout {
  static constexpr int margin = 8;  ///< px: taps of a quintic spline, half a pixel and a knot outside
  int width = 0, height = 0;        ///< px
  int stride = 0;                   ///< elements from row to row

  PlaneLayout() = default;
  PlaneLayout(int w, int h) : width(w), height(h), stride((w + 2 * margin + 31) / 32 * 32) {}
  std::size_t elements() const { return static_cast<std::size_t>(stride) * (height + 2 * margin); }
  /// Index of the pixel (0, 0) from the start of the plane.
  std::ptrdiff_t origin() const { return static_cast<std::ptrdiff_t>(margin) * stride + margin; }
};

/// The coefficients of a pixel and of the one below it (undefined in the last row of a plane), for one load.
struct alignas(8) CoefficientPair {
  float upper, lower;
};

/// Rows first .. last - 1 of an image. Images larger than the memory are done in bands of rows; results have
/// the same bits as with all rows in memory. If only some rows of an image or plane are in memory, its
/// pointer points to where row 0 would be.
struct RowRange {
  int first = 0, last = 0;

  DIC_HOST_DEVICE int count() const { return last - first; }
  bool operator==(const RowRange&) const = default;
};

/// The rows of an image that the launches below need for some rows of their results.
inline RowRange rows_for_spline(const RowRange& rows, int height) {
  constexpr int reach = PlaneLayout::margin + 31 +
                        28;  // the first tile begins up to 31 rows above, its halo 28 rows above that
  return {std::max(0, rows.first - reach), std::min(height, rows.last + reach)};
}

/// Queues the computation of the B-spline coefficients of some rows of an image in device memory, margin
/// included: those of the natural spline (continued beyond the image's edges by point reflection), times 1/36
/// (cubic) or 1/14400 (quintic). They differ from the CPU's by float rounding. coefficients: a plane of the
/// image's size.
void launch_spline_coefficients(ImageView image, const RowRange& rows, Interpolation interpolation,
                                CoefficientPair* coefficients, StreamHandle stream);
/// Queues the computation of the coefficients of all rows.
inline void launch_spline_coefficients(const ImageView& image, Interpolation interpolation,
                                       CoefficientPair* coefficients, StreamHandle stream) {
  launch_spline_coefficients(image, {0, image.height}, interpolation, coefficients, stream);
}

/// Range of the grey values of an image.
struct GreyRange {
  float largest;    ///< largest value, or 0 if all are negative
  float magnitude;  ///< largest absolute value
};

/// A pixel of the reference, as the refinement reads it with one load. The gradient is two half floats, which
/// is enough for multiplication with small residuals. Another plane holds the rounding errors, again two half
/// floats, for exact gradients. See filter/reference_pixel.cuh.
struct alignas(8) ReferencePixel {
  float grey;
  std::uint32_t gradient;  ///< gradient of the spline, dx in the low half; 0 at the border, all bits outside
                           ///< the ROI
};
/// Planes of the pixels of a reference, and of the rounding errors of their gradients.
struct ReferencePlanes {
  ReferencePixel* pixels = nullptr;
  std::uint32_t* rest = nullptr;
};

/// Queues extending the range, which begins as zeros, by some rows of an image.
void launch_grey_range(ImageView image, const RowRange& rows, GreyRange* range, StreamHandle stream);
/// Queues the computation of some rows of the planes of a reference. roi: u8, in device memory, inside if not
/// zero; empty = everywhere. range: range of the whole image.
void launch_reference_pixels(ImageView image, const RowRange& rows, ImageView roi,
                             Interpolation interpolation, const GreyRange* range,
                             const ReferencePlanes& planes, StreamHandle stream);
/// Queues the computation of all rows of the planes, and of the range.
inline void launch_reference_pixels(const ImageView& image, const ImageView& roi, Interpolation interpolation,
                                    const ReferencePlanes& planes, GreyRange* range, StreamHandle stream) {
  const RowRange rows{0, image.height};
  fill(range, 0, sizeof(GreyRange), stream);
  launch_grey_range(image, rows, range, stream);
  launch_reference_pixels(image, rows, roi, interpolation, range, planes, stream);
}

}  // namespace dic::kernels
