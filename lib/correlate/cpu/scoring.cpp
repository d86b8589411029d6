#include "correlate/cpu/scoring.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <tuple>
#include <type_traits>

#include "core/simd_targets.hpp"  // must precede Highway's headers
#include "correlate/backend.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "correlate/cpu/scoring.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DIC_CORRELATE_SCORING_ONCE
#define DIC_CORRELATE_SCORING_ONCE
namespace dic::correlate {

/// Type of a sum over a column of a window. For u8 it is exact up to 66,051 rows (references have at most
/// 32,768); for i32 it wraps, as the products do.
template <typename T>
using ColumnSum =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_same_v<T, std::uint8_t>, std::uint32_t, std::uint64_t>>;

using ScoringTable = std::tuple<Scoring<std::uint8_t>, Scoring<std::uint16_t>, Scoring<std::int32_t>,
                                Scoring<float>, Scoring<double>>;

// Shifts that fill a vector; shorter rows are scored together.
constexpr int kShortRow = 16;
// Variance of floats, as a fraction of the mean square, below which it is rounding and not contrast.
constexpr double kFloatFlat = 1e-13;

}  // namespace dic::correlate
#endif

HWY_BEFORE_NAMESPACE();
namespace dic::correlate {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#include "correlate/cpu/window_sums-inl.hpp"

// ---- Normalization ----

// Values that all rows of a tile need.
template <typename T>
struct Normalizer {
  double n, offset, reference_rest, reference_variation, reference_energy, origin;
  double error, raise;  // error bound of the products, and what is added to them for upper bounds
  double least;         // uncertain scores that are surely lower become marked bounds

  Normalizer(const ScoreTile<T>& t, T window_origin)
      : n(static_cast<double>(t.reference.count)),
        offset(static_cast<double>(t.offset)),
        reference_rest(t.reference.sum_from(t.offset)),
        reference_variation(t.reference.variation),
        reference_energy(static_cast<double>(t.reference.squares)),
        origin(std::is_floating_point_v<T> ? static_cast<double>(window_origin) : 0.0),
        error(t.upper_bounds ? 0 : t.error),
        raise(t.upper_bounds ? t.error : 0),
        least(t.least_score) {}

  bool has_least() const { return error > 0 && least > kUndefined; }
};

inline float clamp_score(double numerator, double denominator) {
  return static_cast<float>(std::min(1.0, std::max(-1.0, numerator / denominator)));
}

// An uncertain score: its marked upper bound if that is below `least`, otherwise NaN.
inline float marked_bound(double numerator, double denominator, double error, double least) {
  const double bound = (numerator + error) / denominator;
  return bound < least ? static_cast<float>(std::max(-1.0, bound) + kBoundMark)
                       : std::numeric_limits<float>::quiet_NaN();
}

inline float score_or_gap(double numerator, double power, double error, double least) {
  if (!(power > 0)) return kUndefined;
  const double denominator = std::sqrt(power);
  if (error > kScoreTolerance * denominator) return marked_bound(numerator, denominator, error, least);
  return clamp_score(numerator, denominator);
}

// True where n * (sum of products) is exact in float64.
template <typename T>
bool fits_double(double n) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return n < (1 << 18);
  if constexpr (std::is_same_v<T, std::uint16_t>) return n < 1448;
  return std::is_floating_point_v<T>;
}

template <bool kHasLeast, typename T>
void zncc_row(const Normalizer<T>& z, const Sum<T>* HWY_RESTRICT products, const Sum<T>* HWY_RESTRICT sums,
              const Sum<T>* HWY_RESTRICT squares, int nx, float* HWY_RESTRICT out) {
  // For floats the window's sums are relative to z.origin: sum r (d + o) = sum r d + o sum r.
  const double shift = z.origin * z.reference_rest;
  const double flat = std::is_floating_point_v<T> ? kFloatFlat : 0.0;
  for (int x = 0; x < nx; ++x) {
    const double s = static_cast<double>(sums[x]), q = static_cast<double>(squares[x]);
    const double numerator =
        z.n * (static_cast<double>(products[x]) + z.raise - shift) - z.reference_rest * s;
    const double variation = z.n * q - s * s;
    const bool contrast = variation > flat * (z.n * q);
    const double denominator = std::sqrt(contrast ? variation * (z.n * z.reference_variation) : 1.0);
    const double score = std::min(1.0, std::max(-1.0, numerator / denominator));
    const bool sure = z.n * z.error <= kScoreTolerance * denominator;
    float value = sure ? static_cast<float>(score) : std::numeric_limits<float>::quiet_NaN();
    if constexpr (kHasLeast) {
      const double bound = std::max(-1.0, (numerator + z.n * z.error) / denominator);
      value = !sure && bound < z.least ? static_cast<float>(bound + kBoundMark) : value;
    }
    out[x] = contrast ? value : kUndefined;
  }
}

// zncc_row() in 128-bit integers, for sums that float64 would round.
template <typename T>
void zncc_row_wide(const ScoreTile<T>& t, const Normalizer<T>& z, const Sum<T>* products, const Sum<T>* sums,
                   const Sum<T>* squares, int nx, float* out) {
  using Wide = __int128;
  const Wide n = static_cast<Wide>(t.reference.count);
  const Wide rest = static_cast<Wide>(t.reference.sum) - n * static_cast<Wide>(t.offset);
  for (int x = 0; x < nx; ++x) {
    const Wide s = static_cast<Wide>(sums[x]);
    const double products_of_rests = static_cast<double>(n * static_cast<Wide>(products[x]) - rest * s);
    const double variation = static_cast<double>(n * static_cast<Wide>(squares[x]) - s * s);
    out[x] = score_or_gap(products_of_rests + z.n * z.raise, variation * (z.n * z.reference_variation),
                          z.n * z.error, z.least);
  }
}

template <typename T>
void ncc_row(const Normalizer<T>& z, const Sum<T>* products, const Sum<T>* sums, const Sum<T>* squares,
             int nx, float* out) {
  for (int x = 0; x < nx; ++x) {
    // Sums of the elements themselves, without the window's origin.
    const double d = static_cast<double>(sums[x]);
    const double s = d + z.n * z.origin;
    const double q = static_cast<double>(squares[x]) + z.origin * (2 * d + z.n * z.origin);
    const double numerator = static_cast<double>(products[x]) + z.raise + z.offset * s;
    out[x] = score_or_gap(numerator, std::max(0.0, q) * z.reference_energy, z.error, z.least);
  }
}

template <typename T>
void ssd_row(const ScoreTile<T>& t, const Normalizer<T>& z, const Sum<T>* products, const Sum<T>* sums,
             const Sum<T>* squares, int nx, float* out) {
  for (int x = 0; x < nx; ++x) {
    Sum<T> s = sums[x], q = squares[x];
    if constexpr (std::is_floating_point_v<T>) {
      q += z.origin * (2 * s + z.n * z.origin);
      s += z.n * z.origin;
    }
    const double ssd =
        static_cast<double>(t.reference.squares - 2 * (products[x] + t.offset * s) + q) - 2 * z.raise;
    const bool sure = 2 * z.error <= kScoreTolerance * ssd;
    out[x] = sure || z.error == 0 ? static_cast<float>(-std::max(0.0, ssd))
                                  : std::numeric_limits<float>::quiet_NaN();
  }
}

// Scores nx shifts that begin at row dy.
template <typename T>
void normalize_row(const ScoreTile<T>& t, const Normalizer<T>& z, int dy, int nx, const Sum<T>* sums,
                   const Sum<T>* squares) {
  const Sum<T>* products = t.products + static_cast<std::ptrdiff_t>(dy) * t.nx;
  float* out = t.scores + dy * t.score_stride;
  if (t.criterion == Criterion::ncc)
    ncc_row<T>(z, products, sums, squares, nx, out);
  else if (t.criterion == Criterion::ssd)
    ssd_row<T>(t, z, products, sums, squares, nx, out);
  else if (!(t.reference.variation > 0))
    std::fill_n(out, nx, kUndefined);
  else if (fits_double<T>(z.n))
    z.has_least() ? zncc_row<true, T>(z, products, sums, squares, nx, out)
                  : zncc_row<false, T>(z, products, sums, squares, nx, out);
  else if constexpr (std::is_integral_v<T>)
    zncc_row_wide<T>(t, z, products, sums, squares, nx, out);
}

// Scores all rows as one: they are too short to fill a vector, and adjacent in memory.
template <typename T>
void score_short_rows(const ScoreTile<T>& t, const Normalizer<T>& z, T origin, ScoringScratch& scratch) {
  const int count = t.ny * t.nx;
  scratch.rows.resize(2 * static_cast<std::size_t>(count));
  Sum<T>* const all_sums = reinterpret_cast<Sum<T>*>(scratch.rows.data());
  Sum<T>* const all_squares = all_sums + count;
  for_window_sums<T>(t, origin, scratch, [&](int dy, const Sum<T>* sums, const Sum<T>* squares) HWY_ATTR {
    std::copy_n(sums, t.nx, all_sums + dy * t.nx);
    std::copy_n(squares, t.nx, all_squares + dy * t.nx);
  });
  normalize_row<T>(t, z, 0, count, all_sums, all_squares);
}

template <typename T>
void score(const ScoreTile<T>& t, ScoringScratch& scratch) {
  const T origin = *t.window.row(0);
  const Normalizer<T> z(t, origin);
  if (t.nx < kShortRow && t.score_stride == t.nx) return score_short_rows<T>(t, z, origin, scratch);
  for_window_sums<T>(t, origin, scratch, [&](int dy, const Sum<T>* sums, const Sum<T>* squares) HWY_ATTR {
    normalize_row<T>(t, z, dy, t.nx, sums, squares);
  });
}

template <typename T>
void add_offset(const ScoreTile<T>& t, ScoringScratch& scratch, Sum<T>* products) {
  for_window_sums<T>(t, T{0}, scratch, [&](int, const Sum<T>* sums, const Sum<T>*) HWY_ATTR {
    for (int dx = 0; dx < t.nx; ++dx) *products++ += t.offset * sums[dx];
  });
}

// ---- Reference sums ----

template <typename T>
double variation_of(const ReferenceSums<T>& s) {
  if constexpr (std::is_floating_point_v<T>) {
    return s.squares - s.sum * s.sum / s.count;
  } else {
    using Wide = __int128;
    const Wide n = static_cast<Wide>(s.count), sum = static_cast<Wide>(s.sum);
    return static_cast<double>(n * static_cast<Wide>(s.squares) - sum * sum) / static_cast<double>(n);
  }
}

template <typename T>
ReferenceSums<T> masked_reference_sums(const Block<T>& reference, const Block<std::uint8_t>& mask,
                                       const Widen<T>& widen) {
  using S = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  S count = 0, sum = 0, squares = 0;
  for (int i = 0; i < reference.height; ++i) {
    const T* HWY_RESTRICT row = reference.row(i);
    const std::uint8_t* HWY_RESTRICT counts = mask.row(i);
    for (int j = 0; j < reference.width; ++j) {
      const S v = counts[j] ? static_cast<S>(widen.load_one(row[j])) : S{0};
      count += counts[j] != 0;
      sum += v;
      squares += v * v;
    }
  }
  return {static_cast<Sum<T>>(count), static_cast<Sum<T>>(sum), static_cast<Sum<T>>(squares), 0};
}

template <typename T>
ReferenceSums<T> whole_reference_sums(const Block<T>& reference, const Widen<T>& widen) {
  constexpr int kPart = 64;
  ColumnSum<T> sums[kPart], squares[kPart];
  std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t> sum = 0, square = 0;
  for (int x = 0; x < reference.width; x += kPart) {
    const int n = std::min(kPart, reference.width - x);
    column_sums<T>(reference.at(0, x, reference.height, n), 0, reference.height, widen, sums, squares);
    for (int j = 0; j < n; ++j) sum += sums[j], square += squares[j];
  }
  return {static_cast<Sum<T>>(reference.height) * static_cast<Sum<T>>(reference.width),
          static_cast<Sum<T>>(sum), static_cast<Sum<T>>(square), 0};
}

template <typename T>
ReferenceSums<T> reference_sums(const Block<T>& reference, const Block<std::uint8_t>& mask) {
  const Widen<T> widen(*reference.row(0));
  ReferenceSums<T> s = mask.data ? masked_reference_sums<T>(reference, mask, widen)
                                 : whole_reference_sums<T>(reference, widen);
  if (s.count == 0) return s;
  s.variation = variation_of<T>(s);
  if constexpr (std::is_floating_point_v<T>) {
    if (s.variation <= kFloatFlat * s.squares) s.variation = 0;
    s.origin = static_cast<double>(*reference.row(0));
    s.sum_from_origin = s.sum;
    s.squares += s.origin * (2 * s.sum + s.count * s.origin);
    s.sum += s.count * s.origin;
  }
  return s;
}

void fill_table(ScoringTable& table) {
  table = {{reference_sums<std::uint8_t>, score<std::uint8_t>, add_offset<std::uint8_t>},
           {reference_sums<std::uint16_t>, score<std::uint16_t>, add_offset<std::uint16_t>},
           {reference_sums<std::int32_t>, score<std::int32_t>, add_offset<std::int32_t>},
           {reference_sums<float>, score<float>, add_offset<float>},
           {reference_sums<double>, score<double>, add_offset<double>}};
}

}  // namespace HWY_NAMESPACE
}  // namespace dic::correlate
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::correlate {
HWY_EXPORT(fill_table);

namespace {
const ScoringTable& table() {
  static const ScoringTable filled = [] {
    ScoringTable t;
    HWY_DYNAMIC_DISPATCH(fill_table)(t);
    return t;
  }();
  return filled;
}
}  // namespace

template <typename T>
const Scoring<T>& scoring() {
  return std::get<Scoring<T>>(table());
}
template const Scoring<std::uint8_t>& scoring();
template const Scoring<std::uint16_t>& scoring();
template const Scoring<std::int32_t>& scoring();
template const Scoring<float>& scoring();
template const Scoring<double>& scoring();

}  // namespace dic::correlate
#endif
