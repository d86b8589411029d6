#pragma once

#include <numeric>

#include "fft/packed_transform.hpp"

namespace dic::kernels {

/// A whole transform in place in (shared) memory. Each function is the work of thread `thread` of `threads`
/// between two barriers; in every pass a thread writes only where it has read.
template <int B>
struct FusedTransform : PackedTransform<B> {
  using Base = PackedTransform<B>;
  using Base::half, Base::n;
  static constexpr int threads = half * B;  ///< one thread for every 16 elements
  /// Gaps put neighbouring rows, columns and runs of B into different banks of shared memory.
  static constexpr int gap_period = std::lcm(B, 16);
  static constexpr int pitch = (n + n / gap_period) | 1;
  static constexpr int elements = half * pitch;
  static constexpr int spectrum_elements = half * n;

  /// Rows, first pass. row_of(y)[x] is element (y, x) of the matrix; packed rows from `used` on are not read.
  template <typename RowOf>
  DIC_HOST_DEVICE static void rows_first(int thread, int used, Complex* z, const RowOf& row_of) {
    for (int task = thread; task < used * 16; task += threads) {
      const int row = task / 16, j = task % 16;
      Complex v[B];
      Base::start_row(row_of, row, j, v);
      Complex* const run = z + run_slot(row, j, 0);
      unrolled<B>([&](auto k) { run[k] = v[k]; });
    }
  }

  DIC_HOST_DEVICE static void rows_second(int thread, int used, const Twiddles<B>& twiddles, Complex* z) {
    if (thread >= used * B) return;
    const int k = thread / used;
    Complex* const column = z + run_slot(thread % used, 0, k);
    Complex v[16];
    unrolled<16>([&](auto j) { v[j] = twiddles.rows[k][j] * column[run_slot(0, j, 0)]; });
    dft<16, Direction::forward>(v);
    unrolled<16>([&](auto j) { column[run_slot(0, j, 0)] = v[j]; });
  }

  /// Columns, first pass, from packed rows; yields twice the transform of the matrix.
  DIC_HOST_DEVICE static void columns_first(int thread, int used, Complex* z) {
    const int c = thread % half, t = thread / half;
    Complex* const column = z + slot(t, c);
    Complex* const mirrored = z + slot(t, n - 1 - c);
    Complex v[16];
    Base::start_column(column, mirrored, B * pitch, t, used, v);
    unrolled<8>([&](auto q) {
      column[B * q * pitch] = v[2 * q];
      mirrored[B * q * pitch] = v[2 * q + 1];
    });
  }

  /// Columns of the reference, second pass: stores the conjugate of the spectrum, scaled.
  DIC_HOST_DEVICE static void keep_spectrum(int thread, const Twiddles<B>& twiddles, const Complex* z,
                                            Complex* spectrum) {
    for_runs<threads>(thread, [&](int run, int c, int k) {
      Complex v[B];
      columns_second(c, k, twiddles, z, v);
      unrolled<B>([&](auto t) { spectrum[t * half * 16 + run] = Base::scale * conj(v[t]); });
    });
  }

  /// Columns of the window, second pass; product with the reference's spectrum; first pass back.
  DIC_HOST_DEVICE static void multiply(int thread, const Twiddles<B>& twiddles, const Complex* spectrum,
                                       Complex* z) {
    for_runs<threads>(thread, [&](int run, int c, int k) {
      Complex v[B];
      columns_second(c, k, twiddles, z, v);
      unrolled<B>([&](auto t) { v[t] = v[t] * spectrum[t * half * 16 + run]; });
      columns_back_first(c, k, twiddles, v, z);
    });
  }
  /// As multiply(), but from columns of the reference after their first pass, by twice as many threads.
  DIC_HOST_DEVICE static void multiply_columns(int thread, const Twiddles<B>& twiddles,
                                               const Complex* reference, Complex* z) {
    for_runs<2 * threads>(thread, [&](int, int c, int k) {
      Complex spectrum[B], v[B];
      columns_second(c, k, twiddles, reference, spectrum);
      columns_second(c, k, twiddles, z, v);
      unrolled<B>([&](auto t) { v[t] = v[t] * (Base::scale * conj(spectrum[t])); });
      columns_back_first(c, k, twiddles, v, z);
    });
  }

  /// Columns, second pass back: packs rows in pairs again.
  DIC_HOST_DEVICE static void columns_back(int thread, Complex* z) {
    const int c = thread % half, t = thread / half;
    Complex* const column = z + slot(t, c);
    Complex* const mirrored = z + slot(t, n - 1 - c);
    Complex v[16];
    unrolled<8>([&](auto q) {
      v[2 * q] = column[B * q * pitch];
      v[2 * q + 1] = mirrored[B * q * pitch];
    });
    Base::finish_column(v, B * pitch, column, mirrored);
  }

  DIC_HOST_DEVICE static void rows_back_first(int thread, PackedRows rows, const Twiddles<B>& twiddles,
                                              Complex* z) {
    const int count = rows.count();
    if (thread >= count * B) return;
    const int k = thread / count;
    Complex* const column = z + run_slot(rows[thread % count], 0, k);
    Complex v[16];
    unrolled<16>([&](auto j) { v[j] = column[run_slot(0, j, 0)]; });
    dft<16, Direction::inverse>(v);
    unrolled<16>([&](auto j) { column[run_slot(0, j, 0)] = conj(twiddles.rows[k][j]) * v[j]; });
  }

  /// Calls store(y, j, sums) for the places of the rows: sums[m] holds c[y, x] + i c[y + B, x] for x = j + 16
  /// m.
  template <typename Store>
  DIC_HOST_DEVICE static void rows_back_second(int thread, PackedRows rows, const Complex* z,
                                               const Store& store) {
    for (int task = thread; task < rows.count() * 16; task += threads) {
      const int row = rows[task / 16], j = task % 16;
      const Complex* const run = z + run_slot(row, j, 0);
      Complex v[B];
      unrolled<B>([&](auto k) { v[k] = run[k]; });
      Base::finish_row(v);
      store(Base::first_row(row), j, v);
    }
  }

 private:
  DIC_HOST_DEVICE static constexpr int slot(int row, int x) { return row * pitch + x + x / gap_period; }
  /// Equals slot(row, B j + k), k < B: the gap does not depend on k.
  DIC_HOST_DEVICE static constexpr int run_slot(int row, int j, int k) { return slot(row, B * j) + k; }
  /// Place of output k of the first pass over column c for t = 0; other t are `pitch` apart.
  DIC_HOST_DEVICE static constexpr int column_run(int c, int k) {
    return slot(B * (k / 2), k % 2 == 0 ? c : n - 1 - c);
  }

  /// Calls body(run, c, k) for the runs of B elements of columns that this thread, one of `all`, processes.
  template <int all, typename Body>
  DIC_HOST_DEVICE static void for_runs(int thread, const Body& body) {
    for (int run = thread; run < half * 16; run += all) body(run, run % half, run / half);
  }

  DIC_HOST_DEVICE static void columns_second(int c, int k, const Twiddles<B>& twiddles, const Complex* z,
                                             Complex (&v)[B]) {
    const Complex* const run = z + column_run(c, k);
    unrolled<B>([&](auto t) { v[t] = run[t * pitch]; });
    Base::transform_run(twiddles.columns[k], v);
  }
  DIC_HOST_DEVICE static void columns_back_first(int c, int k, const Twiddles<B>& twiddles, Complex (&v)[B],
                                                 Complex* z) {
    Base::transform_run_back(twiddles.columns[k], v);
    Complex* const run = z + column_run(c, k);
    unrolled<B>([&](auto t) { run[t * pitch] = v[t]; });
  }
};

}  // namespace dic::kernels
