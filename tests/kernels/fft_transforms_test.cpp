#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <set>
#include <vector>

#include "fft/axis.hpp"
#include "fft/batches.hpp"
#include "fft/fused_transform.hpp"
#include "fft/transform_output.hpp"

// Tests the parts of the FFT kernels that also run on the host.
namespace dic::kernels {
namespace {

std::vector<float> random_floats(int count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> values(-1, 2);
  std::vector<float> floats(count);
  for (float& f : floats) f = values(random);
  return floats;
}

template <int n, Direction direction>
void check_dft() {
  const std::vector<float> values = random_floats(2 * n, n);
  Complex z[n];
  for (int j = 0; j < n; ++j) z[j] = {values[2 * j], values[2 * j + 1]};
  dft<n, direction>(z);
  for (int k = 0; k < n; ++k) {
    std::complex<double> want = 0;
    for (int j = 0; j < n; ++j)
      want += std::complex<double>(values[2 * j], values[2 * j + 1]) *
              std::polar(1.0, (direction == Direction::forward ? -2 : 2) * std::numbers::pi * j * k / n);
    EXPECT_NEAR(z[k].re, want.real(), 1e-6 * n) << n << " " << k;
    EXPECT_NEAR(z[k].im, want.imag(), 1e-6 * n) << n << " " << k;
  }
}

template <int... n>
void check_dfts() {
  (check_dft<n, Direction::forward>(), ...);
  (check_dft<n, Direction::inverse>(), ...);
}

TEST(Dft, IsTheSumThatDefinesIt) { check_dfts<1, 2, 3, 4, 6, 8, 9, 12, 16, 24>(); }

TEST(Dft, RootsOfUnityAreExactToDouble) {
  for (const int n : {1, 2, 3, 7, 16, 256})
    for (int k = -n; k <= 2 * n; ++k) {
      EXPECT_NEAR(cosine_sine(k, n).cosine, std::cos(2 * std::numbers::pi * k / n), 4e-15);
      EXPECT_NEAR(cosine_sine(k, n).sine, std::sin(2 * std::numbers::pi * k / n), 4e-15);
    }
}

struct Line {
  int reference, window, shift_min, shift_max;
};
const Line lines[] = {{1, 1, 0, 0},      {31, 61, 0, 30}, {32, 32, -31, 31}, {5, 9, -50, 40},
                      {7, 3, -6, 2},     {4, 4, 10, 12},  {9, 20, 3, 5},     {9, 20, -8, -1},
                      {20, 9, -30, -12}, {3, 100, 50, 60}};

double overlap_sum(const std::vector<float>& reference, const std::vector<float>& window, int shift) {
  double sum = 0;
  for (int i = 0; i < std::ssize(reference); ++i)
    if (i + shift >= 0 && i + shift < std::ssize(window)) sum += double{reference[i]} * window[i + shift];
  return sum;
}

TEST(FftAxis, CircularSumsOfTheLeastLengthHoldEveryShift) {
  for (const Line& line : lines) {
    const FftAxis axis = make_fft_axis(line.reference, line.window, line.shift_min, line.shift_max);
    const std::vector<float> a = random_floats(line.reference, 1), b = random_floats(line.window, 2);
    std::set<int> seen;
    const int length = axis.least_length(line.reference);
    for (int place = 0; place < length; ++place) {
      const int shift = axis.shift_at(place, length);
      if (!axis.holds(shift)) continue;
      double sum = 0;
      for (int i = 0; i < line.reference; ++i) {
        const int j = (i + place) % length;
        if (j < axis.used) sum += double{a[i]} * b[axis.first + j];
      }
      EXPECT_NEAR(sum, overlap_sum(a, b, axis.first + shift), 1e-9);
      const int index = shift - axis.low + axis.shifts_before;
      EXPECT_EQ(index, axis.first + shift - line.shift_min);
      seen.insert(index);
    }
    EXPECT_EQ(std::ssize(seen), axis.shifts());
    for (int shift = line.shift_min; shift <= line.shift_max; ++shift)
      EXPECT_TRUE(seen.contains(shift - line.shift_min) || overlap_sum(a, b, shift) == 0);
  }
}

TEST(FftLength, IsSmoothAndNoLongerThanNeeded) {
  EXPECT_EQ(fft_length(1), 4);
  EXPECT_EQ(fft_length(31), 32);
  EXPECT_EQ(fft_length(61), 64);
  EXPECT_EQ(fft_length(63), 64);
  EXPECT_EQ(fft_length(65), 80);
  EXPECT_EQ(fft_length(123), 128);
  EXPECT_EQ(fft_length(203), 224);
  EXPECT_EQ(fft_length(511), 512);
}

TEST(FftBatches, DoEveryPairOnceWithinTheMemory) {
  for (const std::int64_t m : {1, 2, 7, 50})
    for (const bool shared : {false, true})
      for (const std::int64_t slots : {2, 3, 10, 60, 1000})
        for (const auto& [first, pairs] : {std::pair{0, 100}, std::pair{3, 1}, std::pair{13, 77}}) {
          const FftBatches batches(first, pairs, m, shared, slots);
          EXPECT_LE(batches.slots(), slots);
          std::int64_t next = first;
          batches.for_each([&](const FftBatch& batch) {
            EXPECT_EQ(batch.first_pair, next);
            next += batch.pairs;
            EXPECT_GE(batch.pairs, 1);
            EXPECT_LE(batch.pairs, batches.pairs());
            EXPECT_LE(batch.references, batches.references());
            EXPECT_LE(batch.windows, batches.windows());
            for (std::int64_t pair = batch.first_pair; pair < next; ++pair) {
              const std::int64_t reference = pair / m - batch.first_reference;
              EXPECT_TRUE(reference >= 0 && reference < batch.references);
              const std::int64_t window = shared ? pair % m : pair;
              EXPECT_TRUE(window >= batch.first_window && window < batch.first_window + batch.windows);
              EXPECT_TRUE(batches.has_products() || window - batch.first_window == pair - batch.first_pair);
            }
          });
          EXPECT_EQ(next, first + pairs);
        }
}

/// A fused correlation that runs the threads of a phase one after the other.
template <int B>
class SerialFused {
 public:
  using Transform = FusedTransform<B>;

  template <typename RowOf>
  void forward(int rows, const RowOf& row_of) {
    each([&](int thread) { Transform::rows_first(thread, rows, z_.data(), row_of); });
    each([&](int thread) { Transform::rows_second(thread, rows, twiddles, z_.data()); });
    each([&](int thread) { Transform::columns_first(thread, rows, z_.data()); });
  }
  void keep_reference() {
    columns_ = z_;
    each([&](int thread) { Transform::keep_spectrum(thread, twiddles, z_.data(), spectrum_.data()); });
  }
  /// from_columns: starts with the reference after its first pass over the columns.
  template <typename Store>
  void back(bool from_columns, PackedRows rows, const Store& store) {
    if (from_columns)
      for (int thread = 0; thread < 2 * Transform::threads; ++thread)
        Transform::multiply_columns(thread, twiddles, columns_.data(), z_.data());
    else
      each([&](int thread) { Transform::multiply(thread, twiddles, spectrum_.data(), z_.data()); });
    each([&](int thread) { Transform::columns_back(thread, z_.data()); });
    each([&](int thread) { Transform::rows_back_first(thread, rows, twiddles, z_.data()); });
    each([&](int thread) { Transform::rows_back_second(thread, rows, z_.data(), store); });
  }

 private:
  static constexpr Twiddles<B> twiddles = make_twiddles<B>();

  template <typename Phase>
  static void each(const Phase& phase) {
    for (int thread = 0; thread < Transform::threads; ++thread) phase(thread);
  }

  std::vector<Complex> z_ = std::vector<Complex>(Transform::elements, Complex{NAN, NAN});
  std::vector<Complex> columns_;
  std::vector<Complex> spectrum_ = std::vector<Complex>(Transform::spectrum_elements, Complex{NAN, NAN});
};

/// Rows of an h x w matrix, of which up to `rows` x `columns` elements from (y0, x0) enter a transform.
struct PaddedRows {
  const std::vector<float>& values;
  int w, y0, x0, rows, columns;

  struct Row {
    const PaddedRows& matrix;
    int y;
    float operator[](int x) const {
      if (y >= matrix.rows || x >= matrix.columns) return 0;
      return matrix.values[(y + matrix.y0) * matrix.w + x + matrix.x0];
    }
  };
  Row operator()(int y) const { return {*this, y}; }
};

double overlap_sum(const std::vector<float>& reference, const std::vector<float>& window, int w, int sw,
                   int dy, int dx) {
  const int h = static_cast<int>(reference.size()) / w, sh = static_cast<int>(window.size()) / sw;
  double sum = 0;
  for (int y = std::max(0, -dy); y < std::min(h, sh - dy); ++y)
    for (int x = std::max(0, -dx); x < std::min(w, sw - dx); ++x)
      sum += double{reference[y * w + x]} * window[(y + dy) * sw + x + dx];
  return sum;
}

template <int B>
void check_fused(bool from_columns, const Line& y_line, const Line& x_line) {
  using Transform = FusedTransform<B>;
  constexpr int n = Transform::n;
  const auto axis_of = [](const Line& l) {
    return make_fft_axis(l.reference, l.window, l.shift_min, l.shift_max);
  };
  const FftAxis y_axis = axis_of(y_line), x_axis = axis_of(x_line);
  ASSERT_LE(y_axis.least_length(y_line.reference), n);
  ASSERT_LE(x_axis.least_length(x_line.reference), n);
  const int w = x_line.reference, sw = x_line.window, h = y_line.reference, sh = y_line.window;
  const std::vector<float> a = random_floats(h * w, 1), b = random_floats(sh * sw, 2);
  SerialFused<B> fused;
  fused.forward(Transform::packed_rows(h - 1, n).low, PaddedRows{a, w, 0, 0, h, w});
  fused.keep_reference();
  fused.forward(Transform::packed_rows(y_axis.used - 1, n).low,
                PaddedRows{b, sw, y_axis.first, x_axis.first, y_axis.used, x_axis.used});
  const int ny = y_line.shift_max - y_line.shift_min + 1, nx = x_line.shift_max - x_line.shift_min + 1;
  const TransformShape shape{.y = y_axis,
                             .x = x_axis,
                             .output_rows = Transform::packed_rows(y_axis.high, n + std::min(y_axis.low, 0))};
  constexpr float poison = 1e30f;
  std::vector<float> sums(ny * nx, poison);
  const int origin = (y_axis.shifts_before - y_axis.low) * nx + x_axis.shifts_before - x_axis.low;
  fused.back(from_columns, shape.output_rows, TransformOutput<B>{shape, nx, sums.data() + origin});
  for (int row = 0; row < ny; ++row)
    for (int column = 0; column < nx; ++column) {
      const int dy = y_line.shift_min + row, dx = x_line.shift_min + column;
      const bool overlaps = dy > -h && dy < sh && dx > -w && dx < sw;
      const double want = overlaps ? overlap_sum(a, b, w, sw, dy, dx) : poison;
      ASSERT_NEAR(sums[row * nx + column], want, 1e-6 * std::sqrt(double{1} * h * w * sh * sw))
          << dy << " " << dx;
    }
}

template <int B>
void check_fused_length() {
  constexpr int n = 16 * B, h = n / 2, inner = h - 3;
  SCOPED_TRACE(n);
  for (const bool from_columns : {false, true}) {
    const auto check = [&](const Line& y, const Line& x) { check_fused<B>(from_columns, y, x); };
    check({h, h, 1 - h, h - 1}, {h, h, 1 - h, h - 1});
    check({inner, n, 0, n - inner}, {h + 1, n, 0, h - 1});
    check({5, h, 3, 9}, {h - 2, h, -4, 7});
    check({7, h, -3, -1}, {7, h, -5, 2});
    check({9, h, -7, -2}, {11, h, -9, -4});
    check({h, 9, -40, 50}, {3, h, -60, 70});
  }
}

TEST(FusedTransform, Correlates) {
  check_fused_length<2>();
  check_fused_length<3>();
  check_fused_length<4>();
  check_fused_length<6>();
  check_fused_length<8>();
}

}  // namespace
}  // namespace dic::kernels
