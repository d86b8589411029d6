#pragma once

#include <dic/image.hpp>
#include <vector>

#include "core/parallel.hpp"

namespace dic::match {

/// A float image, packed.
struct FloatImage {
  int width = 0, height = 0;
  std::vector<float> values;

  FloatImage() = default;
  FloatImage(int w, int h) { resize(w, h); }
  /// Keeps the memory if it suffices; values are undefined.
  void resize(int w, int h) {
    width = w, height = h;
    values.resize(static_cast<std::size_t>(w) * h);
  }
  float* row(int y) { return values.data() + static_cast<std::ptrdiff_t>(y) * width; }
  const float* row(int y) const { return values.data() + static_cast<std::ptrdiff_t>(y) * width; }
};

/// Grey values as floats.
FloatImage float_image(ImageView image, core::ThreadPool& pool);
/// The same into memory that may be there from an earlier image.
void make_float_image(ImageView image, core::ThreadPool& pool, FloatImage& out);

/// Half the size: pixel i covers pixels 2i and 2i + 1, low-passed by (1, 3, 3, 1) / 8. An odd last row or
/// column is left out.
FloatImage reduced(const FloatImage& image, core::ThreadPool& pool);
/// The same into memory that may be there from an earlier image.
void make_reduced(ImageView image, core::ThreadPool& pool, FloatImage& out);
void make_reduced(const FloatImage& image, core::ThreadPool& pool, FloatImage& out);

/// Half the size of a mask (1 = counts): a pixel counts where the four that it covers do.
FloatImage reduced_mask(const FloatImage& mask);

}  // namespace dic::match
