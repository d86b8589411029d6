#pragma once

#include "fft/axis.hpp"
#include "fft/packed_transform.hpp"

namespace dic::kernels {

/// Geometry of a job for transforms of one length.
struct TransformShape {
  FftAxis y, x;  ///< axes of the windows
  FftAxis reference_y{}, reference_x{};
  int reference_rows = 0, window_rows = 0;  ///< packed rows that are not zero
  PackedRows output_rows{};
};

/// The correlation surface of a pair, into which transforms write their sums.
template <int B>
struct TransformOutput {
  static constexpr int n = PackedTransform<B>::n;
  const TransformShape& shape;
  int nx;
  float* origin;  ///< place of shift (0, 0), less `first` of the axes

  /// Stores the requested sums of two rows.
  DIC_HOST_DEVICE void operator()(int y, int j, const Complex (&sums)[B]) const {
    store_row(y, j, [&](int m) { return sums[m].re; });
    store_row(y + B, j, [&](int m) { return sums[m].im; });
  }

 private:
  template <typename Sums>
  DIC_HOST_DEVICE void store_row(int y, int j, const Sums& sums) const {
    const int dy = shape.y.shift_at(y, n);
    if (!shape.y.holds(dy)) return;
    float* const row = origin + dy * nx + j;
    const int wrapped = n + shape.x.low - j;  // first place with the opposite sign
    const auto wraps = static_cast<unsigned>((shape.x.high < 0 ? shape.x.high : -1) - shape.x.low + 1);
    unrolled<B>([&](auto m) {
      if (16 * m <= shape.x.high - j) row[16 * m] = sums(m);
      if (static_cast<unsigned>(16 * m - wrapped) < wraps) row[16 * m - n] = -sums(m);
    });
  }
};

}  // namespace dic::kernels
