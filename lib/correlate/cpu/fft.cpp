#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/simd_targets.hpp"  // must precede Highway's headers
#include "correlate/cpu/fft_plan.hpp"
#include "correlate/cpu/kernel.hpp"
#include "correlate/cpu/variants.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "correlate/cpu/fft.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/aligned_allocator.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DIC_CORRELATE_FFT_ONCE
#define DIC_CORRELATE_FFT_ONCE
namespace dic::correlate {

/// One pass of a transform: butterflies of `radix` elements `step` apart, with their twiddle factors
/// cos, sin of -2 pi j k / (radix step), ordered by j, then k = 1 .. radix - 1.
template <typename R>
struct FftPass {
  int radix = 0;
  int step = 0;
  std::vector<R> cosine, sine;
};

template <typename R>
std::vector<FftPass<R>> fft_passes(int n) {
  std::vector<FftPass<R>> passes;
  int length = n;
  for (int radix : fft_radices(n)) {
    FftPass<R> pass{.radix = radix, .step = length / radix, .cosine = {}, .sine = {}};
    for (int j = 0; j < pass.step; ++j)
      for (int k = 1; k < radix; ++k) {
        const double angle = -2 * std::numbers::pi * (static_cast<std::int64_t>(j) * k % length) / length;
        pass.cosine.push_back(static_cast<R>(std::cos(angle)));
        pass.sine.push_back(static_cast<R>(std::sin(angle)));
      }
    passes.push_back(std::move(pass));
    length /= radix;
  }
  return passes;
}

}  // namespace dic::correlate
#endif

// Transforms run over rows of vectors: every lane is a column of its own, so that no butterfly moves values
// between lanes. Forward transforms leave their result in digit-reversed order, and inverse transforms expect
// that order: the product of spectra does not depend on it. Two real tiles of the window form the real and
// the imaginary part of one complex tile.

HWY_BEFORE_NAMESPACE();
namespace dic::correlate {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <typename R>
using Buffer = hwy::AlignedFreeUniquePtr<R[]>;

template <typename R>
using Lane = hn::ScalableTag<R>;

// A vector of complex numbers.
template <typename R>
struct Complex {
  using V = hn::Vec<Lane<R>>;
  V re, im;

  // The product with -i (forward) or +i (inverse).
  template <bool kInverse>
  Complex times_i() const {
    if constexpr (kInverse) return {hn::Neg(im), re};
    return {im, hn::Neg(re)};
  }
};

// Operators are not friends of Complex: GCC forgets the SIMD target of functions defined in a class template.
template <typename R>
HWY_INLINE Complex<R> operator+(Complex<R> a, Complex<R> b) {
  return {hn::Add(a.re, b.re), hn::Add(a.im, b.im)};
}
template <typename R>
HWY_INLINE Complex<R> operator-(Complex<R> a, Complex<R> b) {
  return {hn::Sub(a.re, b.re), hn::Sub(a.im, b.im)};
}
template <typename R>
HWY_INLINE Complex<R> scaled(Complex<R> a, R factor) {
  const auto f = hn::Set(Lane<R>(), factor);
  return {hn::Mul(a.re, f), hn::Mul(a.im, f)};
}
template <typename R>
HWY_INLINE Complex<R> operator*(Complex<R> a, Complex<R> b) {
  return {hn::NegMulAdd(a.im, b.im, hn::Mul(a.re, b.re)), hn::MulAdd(a.im, b.re, hn::Mul(a.re, b.im))};
}

// Discrete Fourier transform of kRadix numbers, in place.
template <int kRadix, bool kInverse, typename R>
HWY_INLINE void butterfly(Complex<R>* z) {
  if constexpr (kRadix == 2) {
    const Complex<R> a = z[0];
    z[0] = a + z[1];
    z[1] = a - z[1];
  } else if constexpr (kRadix == 3) {
    constexpr R kSine = static_cast<R>(0.86602540378443864676);  // sin(2 pi / 3)
    const Complex<R> sum = z[1] + z[2];
    const Complex<R> rotated = scaled(z[1] - z[2], kSine).template times_i<kInverse>();
    const Complex<R> middle = z[0] - scaled(sum, R{0.5});
    z[0] = z[0] + sum;
    z[1] = middle + rotated;
    z[2] = middle - rotated;
  } else if constexpr (kRadix == 4) {
    const Complex<R> a = z[0] + z[2], b = z[0] - z[2], c = z[1] + z[3];
    const Complex<R> d = (z[1] - z[3]).template times_i<kInverse>();
    z[0] = a + c;
    z[1] = b + d;
    z[2] = a - c;
    z[3] = b - d;
  } else {
    constexpr R kCos1 = static_cast<R>(0.30901699437494742410);   // cos(2 pi / 5)
    constexpr R kCos2 = static_cast<R>(-0.80901699437494742410);  // cos(4 pi / 5)
    constexpr R kSin1 = static_cast<R>(0.95105651629515357212);
    constexpr R kSin2 = static_cast<R>(0.58778525229247312917);
    const Complex<R> s1 = z[1] + z[4], s2 = z[2] + z[3], d1 = z[1] - z[4], d2 = z[2] - z[3];
    const Complex<R> m1 = z[0] + scaled(s1, kCos1) + scaled(s2, kCos2),
                     m2 = z[0] + scaled(s1, kCos2) + scaled(s2, kCos1);
    const Complex<R> t1 = (scaled(d1, kSin1) + scaled(d2, kSin2)).template times_i<kInverse>();
    const Complex<R> t2 = (scaled(d1, kSin2) - scaled(d2, kSin1)).template times_i<kInverse>();
    z[0] = z[0] + s1 + s2;
    z[1] = m1 + t1;
    z[2] = m2 + t2;
    z[3] = m2 - t2;
    z[4] = m1 - t1;
  }
}

// One pass over n rows of vectors: decimation in frequency (forward) or in time (inverse).
template <int kRadix, bool kInverse, typename R>
void run_pass(const FftPass<R>& pass, int n, R* HWY_RESTRICT re, R* HWY_RESTRICT im) {
  const Lane<R> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int j = 0; j < pass.step; ++j) {
    Complex<R> twiddle[kRadix];
    for (int k = 1; k < kRadix; ++k) {
      const std::size_t i = static_cast<std::size_t>(j) * (kRadix - 1) + (k - 1);
      const R sine = kInverse ? -pass.sine[i] : pass.sine[i];
      twiddle[k] = {hn::Set(d, pass.cosine[i]), hn::Set(d, sine)};
    }
    for (int b = j; b < n; b += pass.step * kRadix) {
      Complex<R> z[kRadix];
      for (int k = 0; k < kRadix; ++k) {
        const int at = (b + k * pass.step) * lanes;
        z[k] = {hn::Load(d, re + at), hn::Load(d, im + at)};
        if (kInverse && k > 0) z[k] = z[k] * twiddle[k];
      }
      butterfly<kRadix, kInverse>(z);
      for (int k = 0; k < kRadix; ++k) {
        if (!kInverse && k > 0) z[k] = z[k] * twiddle[k];
        const int at = (b + k * pass.step) * lanes;
        hn::Store(z[k].re, d, re + at);
        hn::Store(z[k].im, d, im + at);
      }
    }
  }
}

template <bool kInverse, typename R>
void run_passes(const std::vector<FftPass<R>>& passes, int n, R* re, R* im) {
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const FftPass<R>& pass = passes[kInverse ? passes.size() - 1 - i : i];
    if (pass.radix == 2) run_pass<2, kInverse>(pass, n, re, im);
    if (pass.radix == 3) run_pass<3, kInverse>(pass, n, re, im);
    if (pass.radix == 4) run_pass<4, kInverse>(pass, n, re, im);
    if (pass.radix == 5) run_pass<5, kInverse>(pass, n, re, im);
  }
}

// Sets to[c * to_stride + r] = from[r * from_stride + c]; rows and columns are multiples of 16 bytes.
template <typename R>
void transpose(const R* HWY_RESTRICT from, std::ptrdiff_t from_stride, int rows, int columns,
               R* HWY_RESTRICT to, std::ptrdiff_t to_stride) {
#if HWY_TARGET != HWY_SCALAR
  constexpr int kSide = 16 / sizeof(R);
  const hn::FixedTag<R, kSide> d;
  const hn::FixedTag<double, 2> d64;
  for (int r = 0; r < rows; r += kSide)
    for (int c = 0; c < columns; c += kSide) {
      const R* p = from + r * from_stride + c;
      R* q = to + c * to_stride + r;
      const auto a = hn::LoadU(d, p), b = hn::LoadU(d, p + from_stride);
      if constexpr (kSide == 2) {
        hn::StoreU(hn::InterleaveLower(d, a, b), d, q);
        hn::StoreU(hn::InterleaveUpper(d, a, b), d, q + to_stride);
      } else {
        const auto e = hn::LoadU(d, p + 2 * from_stride), f = hn::LoadU(d, p + 3 * from_stride);
        const auto ab0 = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
        const auto ab1 = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
        const auto ef0 = hn::BitCast(d64, hn::InterleaveLower(d, e, f));
        const auto ef1 = hn::BitCast(d64, hn::InterleaveUpper(d, e, f));
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab0, ef0)), d, q);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab0, ef0)), d, q + to_stride);
        hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, ab1, ef1)), d, q + 2 * to_stride);
        hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, ab1, ef1)), d, q + 3 * to_stride);
      }
    }
#else
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c) to[c * to_stride + r] = from[r * from_stride + c];
#endif
}

// A real tile to transform: elements minus an origin, zero beyond the block and where the mask is zero.
template <typename T>
struct RealTile {
  Block<T> block;
  double origin = 0;
  Block<std::uint8_t> mask{};  // as large as the block; null data: no mask
};

// Correlation of complex tiles with one reference through 2-D transforms of a fixed size.
template <typename R>
class Transform {
 public:
  // Ends a transform early, by Cancelled.
  void set_stop(const std::stop_token& stop) { stop_ = stop; }

  void resize(FftSize size) {
    if (size.ny == size_.ny && size.nx == size_.nx) return;
    size_ = size;
    passes_y_ = fft_passes<R>(size.ny);
    passes_x_ = fft_passes<R>(size.nx);
    // A stride of a power of two would put whole columns into one cache set, so it is a cache line longer.
    stride_ = size.ny + 64 / static_cast<int>(sizeof(R));
    const std::size_t plane = static_cast<std::size_t>(size.nx) * stride_;
    for (Buffer<R>* buffer : {&re_, &im_, &spectrum_re_, &spectrum_im_})
      *buffer = hwy::AllocateAligned<R>(plane);
    const std::size_t strip = static_cast<std::size_t>(std::max(size.ny, size.nx)) * vector_lanes();
    strip_re_ = hwy::AllocateAligned<R>(strip);
    strip_im_ = hwy::AllocateAligned<R>(strip);
  }

  template <typename T>
  void set_reference(const RealTile<T>& reference) {
    columns_forward(reference, RealTile<T>{});
    const R scale = R{1} / (static_cast<R>(size_.ny) * static_cast<R>(size_.nx));
    for_row_strips([&](int ky) HWY_ATTR {
      run_passes<false>(passes_x_, size_.nx, strip_re_.get(), strip_im_.get());
      const Lane<R> d;
      for (int x = 0; x < size_.nx; ++x) {  // conjugated: correlation, not convolution
        const Complex<R> z = scaled(strip(x), scale);
        hn::StoreU(z.re, d, spectrum_re_.get() + place(x, ky));
        hn::StoreU(hn::Neg(z.im), d, spectrum_im_.get() + place(x, ky));
      }
    });
  }

  // Calls take(y, x0, lanes, re, im) with the correlations of both tiles, for y < ny and x0 < nx.
  template <typename T, typename Take>
  void correlate(const RealTile<T>& first, const RealTile<T>& second, int ny, int nx, const Take& take) {
    columns_forward(first, second);
    const Lane<R> d;
    for_row_strips([&](int ky) HWY_ATTR {
      run_passes<false>(passes_x_, size_.nx, strip_re_.get(), strip_im_.get());
      for (int x = 0; x < size_.nx; ++x) {
        const Complex<R> s = {hn::LoadU(d, spectrum_re_.get() + place(x, ky)),
                              hn::LoadU(d, spectrum_im_.get() + place(x, ky))};
        const Complex<R> z = strip(x) * s;
        hn::Store(z.re, d, strip_re_.get() + x * vector_lanes());
        hn::Store(z.im, d, strip_im_.get() + x * vector_lanes());
      }
      run_passes<true>(passes_x_, size_.nx, strip_re_.get(), strip_im_.get());
      for (int x = 0; x < size_.nx; ++x) {
        const Complex<R> z = strip(x);
        hn::StoreU(z.re, d, re_.get() + place(x, ky));
        hn::StoreU(z.im, d, im_.get() + place(x, ky));
      }
    });
    for (int x0 = 0; x0 < nx; x0 += vector_lanes()) {
      check_stop(stop_);
      transpose(re_.get() + place(x0, 0), stride_, vector_lanes(), size_.ny, strip_re_.get(), vector_lanes());
      transpose(im_.get() + place(x0, 0), stride_, vector_lanes(), size_.ny, strip_im_.get(), vector_lanes());
      run_passes<true>(passes_y_, size_.ny, strip_re_.get(), strip_im_.get());
      for (int y = 0; y < ny; ++y)
        take(y, x0, std::min(vector_lanes(), nx - x0), strip_re_.get() + y * vector_lanes(),
             strip_im_.get() + y * vector_lanes());
    }
  }

 private:
  static int vector_lanes() { return static_cast<int>(hn::Lanes(Lane<R>())); }
  std::ptrdiff_t place(int x, int ky) const { return static_cast<std::ptrdiff_t>(x) * stride_ + ky; }
  Complex<R> strip(int x) const {
    const Lane<R> d;
    return {hn::Load(d, strip_re_.get() + x * vector_lanes()),
            hn::Load(d, strip_im_.get() + x * vector_lanes())};
  }

  // Transforms the columns; the result lies transposed, [x][ky], in re_ and im_.
  template <typename T>
  void columns_forward(const RealTile<T>& first, const RealTile<T>& second) {
    for (int x0 = 0; x0 < size_.nx; x0 += vector_lanes()) {
      check_stop(stop_);
      fill_strip(first, x0, strip_re_.get());
      fill_strip(second, x0, strip_im_.get());
      if (x0 < std::max(first.block.width, second.block.width))
        run_passes<false>(passes_y_, size_.ny, strip_re_.get(), strip_im_.get());
      transpose(strip_re_.get(), vector_lanes(), size_.ny, vector_lanes(), re_.get() + place(x0, 0), stride_);
      transpose(strip_im_.get(), vector_lanes(), size_.ny, vector_lanes(), im_.get() + place(x0, 0), stride_);
    }
  }

  template <typename T>
  void fill_strip(const RealTile<T>& tile, int x0, R* HWY_RESTRICT to) const {
    const int lanes = vector_lanes(), columns = std::clamp(tile.block.width - x0, 0, lanes);
    const int rows = columns > 0 ? tile.block.height : 0;
    const double origin = tile.origin;
    for (int y = 0; y < rows; ++y, to += lanes) {
      const T* HWY_RESTRICT row = tile.block.row(y) + x0;
      for (int x = 0; x < columns; ++x) to[x] = static_cast<R>(static_cast<double>(row[x]) - origin);
      if (tile.mask.data)
        for (int x = 0; x < columns; ++x) to[x] = tile.mask.row(y)[x0 + x] ? to[x] : R{0};
      for (int x = columns; x < lanes; ++x) to[x] = 0;
    }
    std::fill_n(to, static_cast<std::ptrdiff_t>(size_.ny - rows) * lanes, R{0});
  }

  // Calls body(ky) for ky = 0, lanes, 2 lanes ...; the strip then holds all x of ky .. ky + lanes - 1.
  template <typename Body>
  void for_row_strips(const Body& body) {
    const Lane<R> d;
    for (int ky = 0; ky < size_.ny; ky += vector_lanes()) {
      check_stop(stop_);
      for (int x = 0; x < size_.nx; ++x) {
        hn::Store(hn::LoadU(d, re_.get() + place(x, ky)), d, strip_re_.get() + x * vector_lanes());
        hn::Store(hn::LoadU(d, im_.get() + place(x, ky)), d, strip_im_.get() + x * vector_lanes());
      }
      body(ky);
    }
  }

  FftSize size_;
  int stride_ = 0;
  std::vector<FftPass<R>> passes_y_, passes_x_;
  Buffer<R> re_, im_, spectrum_re_, spectrum_im_, strip_re_, strip_im_;
  std::stop_token stop_;
};

// Sum of the squares of a tile; float32 is precise enough for an error bound.
template <typename T>
double energy(const RealTile<T>& tile) {
  constexpr int kParts = 16;  // independent sums, which the compiler may keep in one vector
  const float origin = static_cast<float>(tile.origin);
  double total = 0;
  for (int y = 0; y < tile.block.height; ++y) {
    const T* HWY_RESTRICT row = tile.block.row(y);
    float parts[kParts] = {};
    int x = 0;
    for (; x + kParts <= tile.block.width; x += kParts)
      for (int k = 0; k < kParts; ++k) {
        const float v = static_cast<float>(row[x + k]) - origin;
        parts[k] += v * v;
      }
    for (; x < tile.block.width; ++x) {
      const float v = static_cast<float>(row[x]) - origin;
      parts[0] += v * v;
    }
    for (float part : parts) total += part;
  }
  return total;
}

template <typename T>
class FftKernel final : public Kernel<T> {
 public:
  void begin(const CorrelateShape& shape) override {
    size_ = choose_fft_size(shape);
    transform_.set_stop(this->stop_);
    exact_transform_.set_stop(this->stop_);
    exact_ = shape.criterion == Criterion::cross_correlation;
    if (exact_)
      exact_transform_.resize(size_);
    else
      transform_.resize(size_);
    height_ = shape.reference.height;
    width_ = shape.reference.width;
  }

  TileSize tile() const override { return {size_.ny - height_ + 1, 2 * (size_.nx - width_ + 1)}; }
  bool inexact() const override { return !exact_; }

  Sum<T> set_reference(const Block<T>& reference, const Block<std::uint8_t>& mask,
                       const ReferenceSums<T>& sums) override {
    const double count = std::max(1.0, static_cast<double>(sums.count));  // a mask may exclude all elements
    // Subtracting the reference's mean keeps the sums and their errors small.
    const double mean = static_cast<double>(sums.sum) / count;
    const double offset = std::is_integral_v<T> ? std::round(mean) : mean;
    reference_rest_ = sums.sum_from(static_cast<Sum<T>>(offset));
    reference_norm_ = std::sqrt(sums.variation + reference_rest_ * reference_rest_ / count);
    origin_ = offset;
    const RealTile<T> tile = {reference, offset, mask};
    if (exact_)
      exact_transform_.set_reference(tile);
    else
      transform_.set_reference(tile);
    return static_cast<Sum<T>>(offset);
  }

  double correlate(const Block<T>& window, int ny, int nx, Sum<T>* out) override {
    const bool pair = nx > size_.nx - width_ + 1;
    const int half = pair ? (nx + 1) / 2 : nx;
    const RealTile<T> first = {window.at(0, 0, window.height, half + width_ - 1), origin_};
    RealTile<T> second;
    if (pair) second = {window.at(0, half, window.height, nx - half + width_ - 1), origin_};
    const double base = origin_ * reference_rest_;
    const auto take = [&](int y, int x0, int n, const auto* re, const auto* im) HWY_ATTR {
      Sum<T>* to = out + static_cast<std::ptrdiff_t>(y) * nx + x0;
      store(re, n, base, to);
      if (pair) store(im, std::min(n, nx - half - x0), base, to + half);
    };
    if (exact_) {
      exact_transform_.correlate(first, second, ny, half, take);
      return 0;
    }
    transform_.correlate(first, second, ny, half, take);
    // The error spreads over the tile like white noise: this bound is several times its largest value.
    constexpr double kRounding = 1.0 / (1 << 24);
    constexpr double kToInteger = std::is_integral_v<T> ? 0.5 : 0;
    return kRounding * reference_norm_ * std::sqrt(energy(first) + energy(second)) + kToInteger;
  }

 private:
  template <typename R>
  static void store(const R* HWY_RESTRICT from, int n, double base, Sum<T>* HWY_RESTRICT to) {
    for (int x = 0; x < n; ++x) {
      const double v = static_cast<double>(from[x]) + base;
      to[x] = std::is_integral_v<T> ? static_cast<Sum<T>>(v + (v < 0 ? -0.5 : 0.5)) : static_cast<Sum<T>>(v);
    }
  }

  FftSize size_;
  bool exact_ = false;
  int height_ = 0, width_ = 0;
  double origin_ = 0, reference_rest_ = 0, reference_norm_ = 0;
  Transform<float> transform_;
  Transform<double> exact_transform_;
};

std::unique_ptr<KernelBase> make_fft(ScalarType type) { return make_kernel<FftKernel>(type); }

}  // namespace HWY_NAMESPACE
}  // namespace dic::correlate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::correlate {
HWY_EXPORT(make_fft);

namespace {

// Why exact sums are impossible, or empty. Rounding to integers is exact while the worst error of float64
// transforms stays below one half: eps * c log2(N) * |reference| * |window| with c = 4 and every element at
// the end of its range.
std::string fft_unsupported_reason(const CorrelateShape& shape) {
  const FftSize size = choose_fft_size(shape);
  if (size.ny == 0) return "cpu-fft takes references of at most 2048 px.";
  if (shape.criterion != Criterion::cross_correlation || shape.type == ScalarType::f32 ||
      shape.type == ScalarType::f64)
    return {};
  const double range = shape.type == ScalarType::u8 ? 255 : 65535;
  const double area = static_cast<double>(size.ny) * size.nx;
  const double norms = range * range * std::sqrt(2.0 * shape.reference.height * shape.reference.width * area);
  if (0x1p-53 * 4 * std::log2(area) * norms < 0.5) return {};
  return "cpu-fft cannot promise exact sums of " + std::string(to_string(shape.type)) +
         " images at this size: use cpu-direct.";
}

}  // namespace

CpuVariant fft_variant() {
  return {
      .info = {.name = "cpu-fft",
               .backend = "cpu",
               .pairings = all_pairings(),
               .types = {ScalarType::u8, ScalarType::u16, ScalarType::f32, ScalarType::f64},
               .criteria = all_criteria(),
               .masks = true,
               .idea = "overlap-save transforms, two tiles as one complex; scores within 2e-6, peaks exact"},
      .make = [](ScalarType type) { return HWY_DYNAMIC_DISPATCH(make_fft)(type); },
      .unsupported_reason = fft_unsupported_reason};
}

}  // namespace dic::correlate
#endif
