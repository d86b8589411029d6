#pragma once

#include <cstddef>
#include <dic/image.hpp>
#include <dic/memory.hpp>

#include "core/parallel.hpp"
#include "dic/refine.hpp"

namespace dic {

/// A float image with a margin on every side, so that kernels may read whole vectors and spline taps beyond
/// the edge. Row 0, column 0 of `at` is the top-left pixel.
class PaddedImage {
 public:
  /// Covers the taps of a quintic spline half a pixel outside, one more for a knot crossed inside a vector.
  static constexpr int kMargin = 8;
  /// Widest SIMD vector, floats: a row may be read this far past its right margin.
  static constexpr int kTail = 16;

  PaddedImage() = default;
  /// Margin and tails of the rows are zero; the pixels have to be written before they are read.
  PaddedImage(int width, int height, ThreadPool& pool);

  int width() const { return width_; }
  int height() const { return height_; }
  std::ptrdiff_t stride() const { return stride_; }
  float* at(int x, int y) { return first() + (y + kMargin) * stride_ + x + kMargin; }
  const float* at(int x, int y) const { return const_cast<PaddedImage*>(this)->at(x, y); }
  bool empty() const { return data_.size() == 0; }

  /// Fills the margin by `point_reflected`, as the spline's own boundary condition has it.
  void reflect_margin();

 private:
  float* first() { return reinterpret_cast<float*>(data_.data()); }

  int width_ = 0, height_ = 0;
  std::ptrdiff_t stride_ = 0;
  PixelMemory data_;
};

/// The image as float, unchanged values, margin zero.
PaddedImage to_float(ImageView image, ThreadPool& pool);

/// Columns of larger images are filtered a band of rows after the other. The result does not depend on it.
constexpr std::size_t kColumnBandBytes = std::size_t{32} << 20;

/// B-spline coefficients of an image (Unser, Aldroubi & Eden 1993; continued beyond the edges by point
/// reflection: the natural spline), times 1/36 (cubic) or 1/14400 (quintic): the factor that
/// `scaled_spline_weights` leave out.
void spline_coefficients(ImageView image, Interpolation interpolation, PaddedImage& out, ThreadPool& pool,
                         std::size_t band_bytes = kColumnBandBytes);

/// Gradient of the image's spline at its pixels, grey levels per px.
void spline_gradient(const PaddedImage& image, Interpolation interpolation, PaddedImage& dx, PaddedImage& dy,
                     ThreadPool& pool, std::size_t band_bytes = kColumnBandBytes);

}  // namespace dic
