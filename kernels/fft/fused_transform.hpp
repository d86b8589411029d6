#pragma once

#include <numeric>

#include "fft/dft.hpp"

/// Correlation of real matrices by transforms of N x N, N = 16 B, in place in (shared) memory. Each function
/// is what thread `thread` of FusedTransform<B>::threads does between two barriers.
///
/// Rows are transformed at the frequencies k + 1/2. There, too, a real row has values that are conjugates, at
/// k and N - 1 - k, but none is its own partner: half of the values hold everything, without special columns.
/// What wraps around in x comes back negated.
///
/// Two rows travel as real and imaginary part of one complex row: packed row t + B q (t < B) holds the rows
/// y = t + 2 B q and y + B. After the rows, column c < N/2 of these two rows lies at c and at N - 1 - c. In
/// every pass a thread writes where it has read; outputs of columns stay in the order in which they come out,
/// which the product does not mind.
namespace dic::kernels {

/// Twiddle factors, in the order in which the passes read them.
template <int B>
struct FusedTwiddles {
  Complex rows[B][16];     ///< exp(-2 pi i j (k + 1/2) / N) at [k][j]
  Complex columns[16][B];  ///< exp(-2 pi i t k / N) at [k][t]
};

template <int B>
constexpr FusedTwiddles<B> make_fused_twiddles() {
  FusedTwiddles<B> twiddles{};
  for (int k = 0; k < B; ++k)
    for (int j = 0; j < 16; ++j) twiddles.rows[k][j] = root<Direction::forward>(j * (2 * k + 1), 32 * B);
  for (int k = 0; k < 16; ++k)
    for (int t = 0; t < B; ++t) twiddles.columns[k][t] = root<Direction::forward>(t * k, 16 * B);
  return twiddles;
}

/// Packed rows 0 .. low - 1 and high .. N/2 - 1.
struct PackedRows {
  int low, high, all;

  DIC_HOST_DEVICE int count() const { return low + all - high; }
  DIC_HOST_DEVICE int operator[](int i) const { return i < low ? i : i - low + high; }
};

template <int B>
struct FusedTransform {
  static constexpr int n = 16 * B;
  static constexpr int half = n / 2;        ///< packed rows, and columns
  static constexpr int threads = half * B;  ///< one for every 16 elements
  /// Threads that take neighbouring rows, columns or runs of B meet different banks of shared memory.
  static constexpr int gap_period = std::lcm(B, 16);
  static constexpr int pitch = (n + n / gap_period) | 1;
  static constexpr int elements = half * pitch;
  static constexpr int spectrum_elements = half * n;

  /// Packed rows that hold the rows 0 .. last and first .. N - 1.
  static constexpr PackedRows packed_rows(int last, int first) {
    const auto group = [](int y) { return y / (2 * B) * B; };
    const int low = last < 0 ? 0 : group(last) + std::min(B, last % (2 * B) + 1);
    const int high = first >= n ? half : group(first) + std::max(0, first % (2 * B) - B);
    return {low, std::max(low, high), half};
  }

  /// Rows, first pass. row_of(y)[x] is element (y, x) of the matrix; packed rows from `used` on are not read.
  template <typename RowOf>
  DIC_HOST_DEVICE static void rows_first(int thread, int used, Complex* z, const RowOf& row_of) {
    for (int task = thread; task < used * 16; task += threads) {
      const int row = task / 16, j = task % 16;
      const auto a = row_of(first_row(row)), b = row_of(first_row(row) + B);
      Complex v[B];
      unrolled<B>([&](auto m) {
        v[m] = turned<Direction::forward, m, 2 * B>({a[j + 16 * m], b[j + 16 * m]});
      });
      dft<B, Direction::forward>(v);
      Complex* const run = z + run_slot(row, j, 0);
      unrolled<B>([&](auto k) { run[k] = v[k]; });
    }
  }

  DIC_HOST_DEVICE static void rows_second(int thread, int used, const FusedTwiddles<B>& twiddles,
                                          Complex* z) {
    if (thread >= used * B) return;
    const int k = thread / used;
    Complex* const column = z + run_slot(thread % used, 0, k);
    Complex v[16];
    unrolled<16>([&](auto j) { v[j] = twiddles.rows[k][j] * column[run_slot(0, j, 0)]; });
    dft<16, Direction::forward>(v);
    unrolled<16>([&](auto j) { column[run_slot(0, j, 0)] = v[j]; });
  }

  /// Columns, first pass, of what the packed rows hold: twice the transform of the matrix.
  DIC_HOST_DEVICE static void columns_first(int thread, int used, Complex* z) {
    const int c = thread % half, t = thread / half;
    Complex* const column = z + slot(t, c);
    Complex* const mirrored = z + slot(t, n - 1 - c);
    Complex v[16];
    unrolled<8>([&](auto q) {
      Complex a{}, b{};
      if (t + B * q < used) a = column[B * q * pitch], b = conj(mirrored[B * q * pitch]);
      v[2 * q] = a + b;
      v[2 * q + 1] = turned<Direction::forward, 1, 4>(a - b);
    });
    dft<16, Direction::forward>(v);
    unrolled<8>([&](auto q) {
      column[B * q * pitch] = v[2 * q];
      mirrored[B * q * pitch] = v[2 * q + 1];
    });
  }

  /// Columns of the reference, second pass: keeps the conjugate of the spectrum, scaled.
  DIC_HOST_DEVICE static void keep_spectrum(int thread, const FusedTwiddles<B>& twiddles, const Complex* z,
                                            Complex* spectrum) {
    constexpr float scale = 1.0f / (4.0f * n * n);  // both spectra come doubled, and so do inverse sums by N
    for_runs(thread, [&](int run, int c, int k) {
      Complex v[B];
      columns_second(c, k, twiddles, z, v);
      unrolled<B>([&](auto t) { spectrum[t * half * 16 + run] = scale * conj(v[t]); });
    });
  }

  /// Columns of the window, second pass; product with the reference's spectrum; first pass back.
  DIC_HOST_DEVICE static void multiply(int thread, const FusedTwiddles<B>& twiddles, const Complex* spectrum,
                                       Complex* z) {
    for_runs(thread, [&](int run, int c, int k) {
      Complex v[B];
      columns_second(c, k, twiddles, z, v);
      unrolled<B>([&](auto t) { v[t] = v[t] * spectrum[t * half * 16 + run]; });
      dft<B, Direction::inverse>(v);
      Complex* const to = z + column_run(c, k);
      unrolled<B>([&](auto t) { to[t * pitch] = conj(twiddles.columns[k][t]) * v[t]; });
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
    dft<16, Direction::inverse>(v);
    unrolled<8>([&](auto q) {
      const Complex a = v[2 * q], b = v[2 * q + 1];
      column[B * q * pitch] = a + turned<Direction::inverse, 1, 4>(b);
      mirrored[B * q * pitch] = conj(a) + turned<Direction::inverse, 1, 4>(conj(b));
    });
  }

  DIC_HOST_DEVICE static void rows_back_first(int thread, PackedRows rows, const FusedTwiddles<B>& twiddles,
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

  /// Calls store(y, j, sums) for the places of the rows: sums[m] holds c[y, x] + i c[y + B, x] of x = j + 16
  /// m.
  template <typename Store>
  DIC_HOST_DEVICE static void rows_back_second(int thread, PackedRows rows, const Complex* z,
                                               const Store& store) {
    for (int task = thread; task < rows.count() * 16; task += threads) {
      const int row = rows[task / 16], j = task % 16;
      const Complex* const run = z + run_slot(row, j, 0);
      Complex v[B];
      unrolled<B>([&](auto k) { v[k] = run[k]; });
      dft<B, Direction::inverse>(v);
      unrolled<B>([&](auto m) { v[m] = turned<Direction::inverse, m, 2 * B>(v[m]); });
      store(first_row(row), j, v);
    }
  }

 private:
  DIC_HOST_DEVICE static constexpr int slot(int row, int x) { return row * pitch + x + x / gap_period; }
  /// slot(row, B j + k), k < B: linear in j but for the gaps, which k does not move.
  DIC_HOST_DEVICE static constexpr int run_slot(int row, int j, int k) { return slot(row, B * j) + k; }
  /// Where output k of the first pass over column c lies for t = 0; those of other t follow every `pitch`.
  DIC_HOST_DEVICE static constexpr int column_run(int c, int k) {
    return slot(B * (k / 2), k % 2 == 0 ? c : n - 1 - c);
  }
  DIC_HOST_DEVICE static constexpr int first_row(int packed) { return packed % B + packed / B * (2 * B); }

  /// Calls body(run, c, k) for the runs of B elements of the columns that are this thread's.
  template <typename Body>
  DIC_HOST_DEVICE static void for_runs(int thread, const Body& body) {
    for (int run = thread; run < half * 16; run += threads) body(run, run % half, run / half);
  }

  DIC_HOST_DEVICE static void columns_second(int c, int k, const FusedTwiddles<B>& twiddles, const Complex* z,
                                             Complex (&v)[B]) {
    const Complex* const run = z + column_run(c, k);
    unrolled<B>([&](auto t) { v[t] = twiddles.columns[k][t] * run[t * pitch]; });
    dft<B, Direction::forward>(v);
  }
};

}  // namespace dic::kernels
