#pragma once

#include <algorithm>

#include "fft/dft.hpp"

/// Correlation of real matrices by transforms of N x N, N = 16 B: the work of one thread on numbers in its
/// registers.
///
/// Rows are transformed at the frequencies k + 1/2. The values of a real row at k and N - 1 - k are
/// conjugates, as at whole frequencies, but no value is its own conjugate: half of the values are enough,
/// without special columns. Sums that wrap around in x have the opposite sign.
///
/// Two rows are real and imaginary part of one complex row: packed row t + B q (t < B) has the rows y = t + 2
/// B q and y + B. After the transform of rows, column c < N/2 of these two rows is at c and at N - 1 - c.
/// Rows are transformed by radix B, then 16; columns by 16, then B; the inverse in the opposite order. The
/// results of columns keep the order of the transform, on which the product does not depend.
/// results of columns keep the order of the transform: the product does not depend on it.
namespace dic::kernels {

/// Twiddle factors, in the order in which the passes read them.
template <int B>
struct Twiddles {
  Complex rows[B][16];     ///< exp(-2 pi i j (k + 1/2) / N) at [k][j]
  Complex columns[16][B];  ///< exp(-2 pi i t k / N) at [k][t]
};

template <int B>
constexpr Twiddles<B> make_twiddles() {
  Twiddles<B> twiddles{};
  for (int k = 0; k < B; ++k)
    for (int j = 0; j < 16; ++j) twiddles.rows[k][j] = root<Direction::forward>(j * (2 * k + 1), 32 * B);
  for (int k = 0; k < 16; ++k)
    for (int t = 0; t < B; ++t) twiddles.columns[k][t] = root<Direction::forward>(t * k, 16 * B);
  return twiddles;
}

/// The packed rows 0 .. low - 1 and high .. N/2 - 1.
struct PackedRows {
  int low, high, all;

  DIC_HOST_DEVICE int count() const { return low + all - high; }
  DIC_HOST_DEVICE int operator[](int i) const { return i < low ? i : i - low + high; }
};

template <int B>
struct PackedTransform {
  static constexpr int n = 16 * B;
  static constexpr int half = n / 2;  ///< number of packed rows, and of columns
  /// Scale of a product: both spectra are doubled, and both inverse transforms multiply by N.
  static constexpr float scale = 1.0f / (4.0f * n * n);

  /// The packed rows that hold the rows 0 .. last and first .. N - 1.
  static constexpr PackedRows packed_rows(int last, int first) {
    const auto group = [](int y) { return y / (2 * B) * B; };
    const int low = last < 0 ? 0 : group(last) + std::min(B, last % (2 * B) + 1);
    const int high = first >= n ? half : group(first) + std::max(0, first % (2 * B) - B);
    return {low, std::max(low, high), half};
  }
  /// First of the two rows of a packed row.
  DIC_HOST_DEVICE static constexpr int first_row(int packed) { return packed % B + packed / B * (2 * B); }

  /// First pass over a packed row: v[k] from its elements j, j + 16, ... ; row_of(y)[x] is element (y, x).
  template <typename RowOf>
  DIC_HOST_DEVICE static void start_row(const RowOf& row_of, int packed, int j, Complex (&v)[B]) {
    const auto a = row_of(first_row(packed)), b = row_of(first_row(packed) + B);
    unrolled<B>([&](auto m) {
      v[m] = rotated<Direction::forward, m, 2 * B>({a[j + 16 * m], b[j + 16 * m]});
    });
    dft<B, Direction::forward>(v);
  }
  /// Inverse of start_row: v[m] becomes element j + 16 m of both rows.
  DIC_HOST_DEVICE static void finish_row(Complex (&v)[B]) {
    dft<B, Direction::inverse>(v);
    unrolled<B>([&](auto m) { v[m] = rotated<Direction::inverse, m, 2 * B>(v[m]); });
  }

  /// First pass over a column, from its two places in the packed rows t + B q, which are zero from row `used`
  /// on. Spectra are doubled.
  DIC_HOST_DEVICE static void start_column(const Complex* column, const Complex* mirrored, int step, int t,
                                           int used, Complex (&v)[16]) {
    unrolled<8>([&](auto q) {
      Complex a{}, b{};
      if (t + B * q < used) a = column[q * step], b = conj(mirrored[q * step]);
      v[2 * q] = a + b;
      v[2 * q + 1] = rotated<Direction::forward, 1, 4>(a - b);
    });
    dft<16, Direction::forward>(v);
  }
  /// Inverse of start_column.
  DIC_HOST_DEVICE static void finish_column(Complex (&v)[16], int step, Complex* column, Complex* mirrored) {
    dft<16, Direction::inverse>(v);
    unrolled<8>([&](auto q) {
      const Complex a = v[2 * q], b = v[2 * q + 1];
      column[q * step] = a + rotated<Direction::inverse, 1, 4>(b);
      mirrored[q * step] = conj(a) + rotated<Direction::inverse, 1, 4>(conj(b));
    });
  }

  /// Second pass over a column: v[t] becomes B values of the spectrum.
  DIC_HOST_DEVICE static void transform_run(const Complex (&twiddles)[B], Complex (&v)[B]) {
    unrolled<B>([&](auto t) { v[t] = twiddles[t] * v[t]; });
    dft<B, Direction::forward>(v);
  }
  DIC_HOST_DEVICE static void transform_run_back(const Complex (&twiddles)[B], Complex (&v)[B]) {
    dft<B, Direction::inverse>(v);
    unrolled<B>([&](auto t) { v[t] = conj(twiddles[t]) * v[t]; });
  }
};

}  // namespace dic::kernels
