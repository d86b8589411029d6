#pragma once

#include <cstddef>
#include <dic/image.hpp>
#include <dic/memory.hpp>

#include "core/parallel.hpp"
#include "dic/refine.hpp"

namespace dic::refine {

/// A float image with a margin on every side, so that kernels may read whole vectors and spline taps beyond
/// the edge. Row 0, column 0 of `at` is the top-left pixel.
class PaddedImage {
 public:
  /// Width of the margin, px: the taps of a quintic spline half a pixel outside the image, and one more for a
  /// knot crossed inside a vector.
  static constexpr int kMargin = 8;
  /// Floats that may be read past the right margin of a row: the widest SIMD vector.
  static constexpr int kTail = 16;

  PaddedImage() = default;
  /// Sets the margin and the tails of the rows to zero; the pixels must be written before they are read.
  PaddedImage(int width, int height, core::ThreadPool& pool);

  int width() const { return width_; }
  int height() const { return height_; }
  std::ptrdiff_t stride() const { return stride_; }
  float* at(int x, int y) { return first() + (y + kMargin) * stride_ + x + kMargin; }
  const float* at(int x, int y) const { return const_cast<PaddedImage*>(this)->at(x, y); }
  bool empty() const { return data_.size() == 0; }

  /// Fills the margin by `point_reflected`, which is the spline's own boundary condition.
  void reflect_margin();

 private:
  float* first() { return reinterpret_cast<float*>(data_.data()); }

  int width_ = 0, height_ = 0;
  std::ptrdiff_t stride_ = 0;
  PixelMemory data_;
};

/// Converts an image to floats with unchanged values; the margin is zero.
PaddedImage to_float(ImageView image, core::ThreadPool& pool);

/// Size of a band of rows, bytes. Columns of images much larger than that are filtered band by band; the
/// result does not depend on it.
constexpr std::size_t kColumnBandBytes = std::size_t{32} << 20;

/// Computes the B-spline coefficients of an image (Unser, Aldroubi & Eden 1993; continued beyond the edges by
/// point reflection: the natural spline), times 1/36 (cubic) or 1/14400 (quintic), the factor that
/// `scaled_spline_weights` omits.
void spline_coefficients(ImageView image, Interpolation interpolation, PaddedImage& out,
                         core::ThreadPool& pool, std::size_t band_bytes = kColumnBandBytes);

/// Computes the gradient of the image's spline at its pixels, grey levels per px.
void spline_gradient(const PaddedImage& image, Interpolation interpolation, PaddedImage& dx, PaddedImage& dy,
                     core::ThreadPool& pool, std::size_t band_bytes = kColumnBandBytes);

}  // namespace dic::refine
