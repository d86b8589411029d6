#include "correlate/cpu/scoring.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "core/simd_targets.hpp"  // before Highway
#include "correlate/backend.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "correlate/cpu/scoring.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#ifndef DIC_CORRELATE_SCORING_ONCE
#define DIC_CORRELATE_SCORING_ONCE
namespace dic::correlate {

/// Sums over columns of a window. u8: exact up to 66,051 rows (references have at most 32,768); i32 wraps as
/// its products do.
template <typename T>
using ColumnSum =
    std::conditional_t<std::is_floating_point_v<T>, double,
                       std::conditional_t<std::is_same_v<T, std::uint8_t>, std::uint32_t, std::uint64_t>>;

struct ScoringTable {
  std::tuple<Scoring<std::uint8_t>, Scoring<std::uint16_t>, Scoring<std::int32_t>, Scoring<float>,
             Scoring<double>>
      by_type;
  Peak (*peak)(const float* scores, const Shifts& shifts);
};

// Float variances below this part of the mean square are rounding, not contrast.
constexpr double kFloatFlat = 1e-13;

}  // namespace dic::correlate
#endif

HWY_BEFORE_NAMESPACE();
namespace dic::correlate {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ---- Column sums ----

// Elements of T, widened to ColumnSum<T>, and their squares. For floats relative to `origin`, an element of
// the window, so that a flat window gives exact zeros.
template <typename T>
struct Widen {
  using D = hn::ScalableTag<ColumnSum<T>>;
  using V = hn::Vec<D>;
  V origin;

  explicit Widen(T value) : origin(hn::Set(D(), static_cast<ColumnSum<T>>(value))) {}

  V load(const T* p) const {
    const hn::Rebind<T, D> narrow;
    const auto v = hn::LoadU(narrow, p);
    if constexpr (std::is_same_v<T, double>)
      return hn::Sub(v, origin);
    else if constexpr (std::is_same_v<T, float>)
      return hn::Sub(hn::PromoteTo(D(), v), origin);
    else if constexpr (std::is_same_v<T, std::uint8_t>)
      return hn::PromoteTo(D(), v);
    else if constexpr (std::is_same_v<T, std::uint16_t>)
      return hn::PromoteTo(D(), hn::PromoteTo(hn::Rebind<std::uint32_t, D>(), v));
    else
      return hn::BitCast(D(), hn::PromoteTo(hn::RebindToSigned<D>(), v));
  }
  ColumnSum<T> load_one(T value) const {
    if constexpr (std::is_floating_point_v<T>)
      return static_cast<double>(value) - hn::GetLane(origin);
    else
      return static_cast<ColumnSum<T>>(value);
  }
};

// Sums of kVectors vectors of columns from x on.
template <int kVectors, typename T>
HWY_INLINE void column_block(const Block<T>& window, int first, int rows, const Widen<T>& widen, int x,
                             ColumnSum<T>* sums, ColumnSum<T>* squares) {
  const hn::ScalableTag<ColumnSum<T>> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  hn::Vec<decltype(d)> sum[kVectors], square[kVectors];
  for (int k = 0; k < kVectors; ++k) sum[k] = square[k] = hn::Zero(d);
  for (int i = first; i < first + rows; ++i)
    for (int k = 0; k < kVectors; ++k) {
      const auto v = widen.load(window.row(i) + x + k * lanes);
      sum[k] = hn::Add(sum[k], v);
      square[k] = hn::Add(square[k], hn::Mul(v, v));
    }
  for (int k = 0; k < kVectors; ++k) {
    hn::StoreU(sum[k], d, sums + x + k * lanes);
    hn::StoreU(square[k], d, squares + x + k * lanes);
  }
}

// sums[x] and squares[x] over rows first .. first + rows - 1 of the window.
template <typename T>
void column_sums(const Block<T>& window, int first, int rows, const Widen<T>& widen, ColumnSum<T>* sums,
                 ColumnSum<T>* squares) {
  const hn::ScalableTag<ColumnSum<T>> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  if (window.width < lanes) {
    for (int x = 0; x < window.width; ++x) {
      sums[x] = squares[x] = 0;
      for (int i = first; i < first + rows; ++i) {
        const ColumnSum<T> v = widen.load_one(window.row(i)[x]);
        sums[x] += v;
        squares[x] += v * v;
      }
    }
    return;
  }
  int x = 0;
  for (; x + 4 * lanes <= window.width; x += 4 * lanes)
    column_block<4, T>(window, first, rows, widen, x, sums, squares);
  for (; x < window.width; x += lanes)  // the last vector overlaps the one before
    column_block<1, T>(window, first, rows, widen, std::min(x, window.width - lanes), sums, squares);
}

// Moves exact integer column sums down by one row.
template <typename T>
void slide_down(const T* HWY_RESTRICT leaving, const T* HWY_RESTRICT entering, int width,
                ColumnSum<T>* HWY_RESTRICT sums, ColumnSum<T>* HWY_RESTRICT squares) {
  using S = ColumnSum<T>;
  for (int x = 0; x < width; ++x) {
    const S out = static_cast<S>(leaving[x]), in = static_cast<S>(entering[x]);
    sums[x] += in - out;
    squares[x] += in * in - out * out;
  }
}

// ---- Box sums: over a reference's width, for each dx ----

inline double sum_of(const double* values, int n) {
  const hn::ScalableTag<double> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  auto sums = hn::Zero(d);
  int j = 0;
  for (; j + lanes <= n; j += lanes) sums = hn::Add(sums, hn::LoadU(d, values + j));
  double sum = hn::GetLane(hn::SumOfLanes(d, sums));
  for (; j < n; ++j) sum += values[j];
  return sum;
}

template <typename T>
void box_row(const ColumnSum<T>* HWY_RESTRICT columns, int width, int nx, Sum<T>* HWY_RESTRICT out) {
  if constexpr (std::is_floating_point_v<T>) {
    // No running sums: an element that leaves them would leave its rounding error behind.
    for (int dx = 0; dx < nx; ++dx) out[dx] = sum_of(columns + dx, width);
  } else {
    std::uint64_t sum = 0;
    for (int j = 0; j < width; ++j) sum += columns[j];
    out[0] = static_cast<Sum<T>>(sum);
    for (int dx = 1; dx < nx; ++dx) {
      sum += std::uint64_t{columns[dx + width - 1]} - columns[dx - 1];
      out[dx] = static_cast<Sum<T>>(sum);
    }
  }
}

// A reference's mask as bit patterns for vectors of widened elements: all bits set where an element counts.
// A row's last vector overlaps the one before; elements of both count in one of them.
template <typename T>
class WideMask {
 public:
  static std::size_t size(const Block<std::uint8_t>& mask) {
    return static_cast<std::size_t>(mask.height) * vectors(mask) * kLanes;
  }

  // memory: size(mask) elements.
  WideMask(const Block<std::uint8_t>& mask, ColumnSum<T>* memory) : mask_(mask), bits_(memory) {
    ColumnSum<T> all;
    std::memset(&all, 0xff, sizeof all);
    for (int i = 0; i < mask.height; ++i)
      for (int k = 0; k < vectors(mask); ++k)
        for (int x = first(k); x < first(k) + kLanes; ++x) {
          const bool counts = x >= k * kLanes && x < mask.width && mask.row(i)[x];
          *memory++ = counts ? all : ColumnSum<T>{};
        }
  }

  // Sums of the elements of `at` (as large as the mask) that count, and of their squares.
  void sums(const Block<T>& at, const Widen<T>& widen, Sum<T>& sum, Sum<T>& square) const {
    Total total{}, squares{};
    if (mask_.width < kLanes) {
      for (int i = 0; i < mask_.height; ++i)
        for (int x = 0; x < mask_.width; ++x) {
          const auto v = mask_.row(i)[x] ? static_cast<Total>(widen.load_one(at.row(i)[x])) : Total{};
          total += v;
          squares += v * v;
        }
    } else {
      for (int row = 0; row < mask_.height; row += kRows)
        add_rows(at, row, std::min(row + kRows, mask_.height), widen, total, squares);
    }
    sum = static_cast<Sum<T>>(total);
    square = static_cast<Sum<T>>(squares);
  }

 private:
  using D = hn::ScalableTag<ColumnSum<T>>;
  using Total = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  static constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
  static constexpr int kRows = 8;  // of 32,768 u8 squares in 4 lanes: below 2^32

  static int vectors(const Block<std::uint8_t>& mask) { return (mask.width + kLanes - 1) / kLanes; }
  int first(int k) const { return std::max(0, std::min(k * kLanes, mask_.width - kLanes)); }

  void add_rows(const Block<T>& at, int begin, int end, const Widen<T>& widen, Total& total,
                Total& squares) const {
    const D d;
    const int across = vectors(mask_);
    const ColumnSum<T>* bits = bits_ + static_cast<std::ptrdiff_t>(begin) * across * kLanes;
    auto sum = hn::Zero(d), square = hn::Zero(d);
    for (int i = begin; i < end; ++i)
      for (int k = 0; k < across; ++k, bits += kLanes) {
        const auto v = hn::And(widen.load(at.row(i) + first(k)), hn::LoadU(d, bits));
        sum = hn::Add(sum, v);
        square = hn::Add(square, hn::Mul(v, v));
      }
    ColumnSum<T> lanes[2][kLanes];
    hn::StoreU(sum, d, lanes[0]);
    hn::StoreU(square, d, lanes[1]);
    for (int k = 0; k < kLanes; ++k) total += lanes[0][k], squares += lanes[1][k];
  }

  Block<std::uint8_t> mask_;
  const ColumnSum<T>* bits_;
};

// ---- Normalization ----

// Values that all rows of a tile need.
template <typename T>
struct Normalizer {
  double n, offset, reference_rest, reference_variation, reference_energy, origin, error;

  Normalizer(const ScoreTile<T>& t, T window_origin)
      : n(static_cast<double>(t.reference.count)),
        offset(static_cast<double>(t.offset)),
        reference_rest(static_cast<double>(t.reference.sum - t.reference.count * t.offset)),
        reference_variation(t.reference.variation),
        reference_energy(static_cast<double>(t.reference.squares)),
        origin(std::is_floating_point_v<T> ? static_cast<double>(window_origin) : 0.0),
        error(t.error) {}
};

inline float clamp_score(double numerator, double denominator) {
  return static_cast<float>(std::min(1.0, std::max(-1.0, numerator / denominator)));
}

inline float score_or_gap(double numerator, double power, double error) {
  if (!(power > 0)) return kUndefined;
  const double denominator = std::sqrt(power);
  if (error > kScoreTolerance * denominator) return std::numeric_limits<float>::quiet_NaN();
  return clamp_score(numerator, denominator);
}

// True where n * (sum of products) is exact in float64.
template <typename T>
bool fits_double(double n) {
  if constexpr (std::is_same_v<T, std::uint8_t>) return n < (1 << 18);
  if constexpr (std::is_same_v<T, std::uint16_t>) return n < 1448;
  return std::is_floating_point_v<T>;
}

template <typename T>
void zncc_row(const Normalizer<T>& z, const Sum<T>* HWY_RESTRICT products, const Sum<T>* HWY_RESTRICT sums,
              const Sum<T>* HWY_RESTRICT squares, int nx, float* HWY_RESTRICT out) {
  // For floats the window's sums are relative to z.origin: sum r (d + o) = sum r d + o sum r.
  const double shift = z.origin * z.reference_rest;
  const double flat = std::is_floating_point_v<T> ? kFloatFlat : 0.0;
  for (int x = 0; x < nx; ++x) {
    const double s = static_cast<double>(sums[x]), q = static_cast<double>(squares[x]);
    const double numerator = z.n * (static_cast<double>(products[x]) - shift) - z.reference_rest * s;
    const double variation = z.n * q - s * s;
    const bool contrast = variation > flat * (z.n * q);
    const double denominator = std::sqrt(contrast ? variation * (z.n * z.reference_variation) : 1.0);
    const double score = std::min(1.0, std::max(-1.0, numerator / denominator));
    const bool sure = z.n * z.error <= kScoreTolerance * denominator;
    const float value = sure ? static_cast<float>(score) : std::numeric_limits<float>::quiet_NaN();
    out[x] = contrast ? value : kUndefined;
  }
}

// The same where float64 would round: 128-bit integers.
template <typename T>
void zncc_row_wide(const ScoreTile<T>& t, const Sum<T>* products, const Sum<T>* sums, const Sum<T>* squares,
                   float* out) {
  using Wide = __int128;
  const Wide n = static_cast<Wide>(t.reference.count);
  const Wide rest = static_cast<Wide>(t.reference.sum) - n * static_cast<Wide>(t.offset);
  for (int x = 0; x < t.nx; ++x) {
    const Wide s = static_cast<Wide>(sums[x]);
    const double numerator = static_cast<double>(n * static_cast<Wide>(products[x]) - rest * s);
    const double variation = static_cast<double>(n * static_cast<Wide>(squares[x]) - s * s);
    const double count = static_cast<double>(n);
    out[x] = score_or_gap(numerator, variation * (count * t.reference.variation), count * t.error);
  }
}

template <typename T>
void ncc_row(const Normalizer<T>& z, const Sum<T>* products, const Sum<T>* sums, const Sum<T>* squares,
             int nx, float* out) {
  for (int x = 0; x < nx; ++x) {
    // Back from the window's origin: sums of the elements themselves.
    const double d = static_cast<double>(sums[x]);
    const double s = d + z.n * z.origin;
    const double q = static_cast<double>(squares[x]) + z.origin * (2 * d + z.n * z.origin);
    const double numerator = static_cast<double>(products[x]) + z.offset * s;
    out[x] = score_or_gap(numerator, std::max(0.0, q) * z.reference_energy, z.error);
  }
}

template <typename T>
void ssd_row(const ScoreTile<T>& t, const Normalizer<T>& z, const Sum<T>* products, const Sum<T>* sums,
             const Sum<T>* squares, float* out) {
  for (int x = 0; x < t.nx; ++x) {
    Sum<T> s = sums[x], q = squares[x];
    if constexpr (std::is_floating_point_v<T>) {
      q += z.origin * (2 * s + z.n * z.origin);
      s += z.n * z.origin;
    }
    const double ssd = static_cast<double>(t.reference.squares - 2 * (products[x] + t.offset * s) + q);
    const bool sure = 2 * t.error <= kScoreTolerance * ssd;
    out[x] = sure || t.error == 0 ? static_cast<float>(-std::max(0.0, ssd))
                                  : std::numeric_limits<float>::quiet_NaN();
  }
}

template <typename T>
void normalize_row(const ScoreTile<T>& t, const Normalizer<T>& z, int dy, const Sum<T>* sums,
                   const Sum<T>* squares) {
  const Sum<T>* products = t.products + static_cast<std::ptrdiff_t>(dy) * t.nx;
  float* out = t.scores + dy * t.score_stride;
  if (t.criterion == Criterion::ncc)
    ncc_row<T>(z, products, sums, squares, t.nx, out);
  else if (t.criterion == Criterion::ssd)
    ssd_row<T>(t, z, products, sums, squares, out);
  else if (!(t.reference.variation > 0))
    std::fill_n(out, t.nx, kUndefined);
  else if (fits_double<T>(z.n))
    zncc_row<T>(z, products, sums, squares, t.nx, out);
  else if constexpr (std::is_integral_v<T>)
    zncc_row_wide<T>(t, products, sums, squares, out);
}

// Calls take(dy, sums, squares) with the sums over the window for every row of shifts.
template <typename T, typename Take>
void for_window_sums(const ScoreTile<T>& t, T origin, ScoringScratch& scratch, const Take& take) {
  static_assert(sizeof(Sum<T>) == sizeof(double) && sizeof(ColumnSum<T>) <= sizeof(double));
  const std::size_t rest = t.mask.data ? WideMask<T>::size(t.mask) : 2 * t.window.width;
  scratch.memory.resize(2 * static_cast<std::size_t>(t.nx) + rest);
  Sum<T>* sums = reinterpret_cast<Sum<T>*>(scratch.memory.data());
  Sum<T>* squares = sums + t.nx;
  auto* columns = reinterpret_cast<ColumnSum<T>*>(squares + t.nx);
  const Widen<T> widen(origin);
  if (t.mask.data) {
    const WideMask<T> mask(t.mask, columns);
    for (int dy = 0; dy < t.ny; ++dy) {
      for (int dx = 0; dx < t.nx; ++dx)
        mask.sums(t.window.at(dy, dx, t.size.height, t.size.width), widen, sums[dx], squares[dx]);
      take(dy, sums, squares);
    }
    return;
  }
  auto* column_squares = columns + t.window.width;
  for (int dy = 0; dy < t.ny; ++dy) {
    if (dy == 0 || std::is_floating_point_v<T>)
      column_sums<T>(t.window, dy, t.size.height, widen, columns, column_squares);
    else
      slide_down<T>(t.window.row(dy - 1), t.window.row(dy + t.size.height - 1), t.window.width, columns,
                    column_squares);
    box_row<T>(columns, t.size.width, t.nx, sums);
    box_row<T>(column_squares, t.size.width, t.nx, squares);
    take(dy, sums, squares);
  }
}

template <typename T>
void score(const ScoreTile<T>& t, ScoringScratch& scratch) {
  const T origin = *t.window.row(0);
  const Normalizer<T> z(t, origin);
  for_window_sums<T>(t, origin, scratch, [&](int dy, const Sum<T>* sums, const Sum<T>* squares) HWY_ATTR {
    normalize_row<T>(t, z, dy, sums, squares);
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
    const double origin = static_cast<double>(*reference.row(0));
    s.squares += origin * (2 * s.sum + s.count * origin);
    s.sum += s.count * origin;
  }
  return s;
}

// ---- Peaks ----

inline float largest(const float* row, int n) {
  const hn::ScalableTag<float> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  float best = kUndefined;
  int x = 0;
  if (n >= lanes) {
    auto m = hn::LoadU(d, row);
    for (x = lanes; x + lanes <= n; x += lanes) m = hn::Max(m, hn::LoadU(d, row + x));
    best = hn::GetLane(hn::MaxOfLanes(d, m));
  }
  for (; x < n; ++x) best = row[x] > best ? row[x] : best;
  return best;
}

// Best value more than 2 px away from (px, py) in x or y.
inline float second_best(const float* scores, int ny, int nx, int py, int px) {
  const int left = std::max(0, px - 2), right = std::min(nx, px + 3);
  float best = kUndefined;
  for (int y = 0; y < ny; ++y) {
    const float* row = scores + static_cast<std::ptrdiff_t>(y) * nx;
    if (std::abs(y - py) > 2) {
      best = std::max(best, largest(row, nx));
    } else {
      best = std::max(best, largest(row, left));
      best = std::max(best, largest(row + right, nx - right));
    }
  }
  return best;
}

// Position of the best score in dx, dy (0-based), its value and its second_score: the parts of a Peak that
// need the whole surface.
Peak find_peak(const float* scores, const Shifts& shifts) {
  const int ny = shifts.ny(), nx = shifts.nx();
  Peak peak;
  peak.score = kUndefined;
  for (int y = 0; y < ny; ++y) {
    const float best = largest(scores + static_cast<std::ptrdiff_t>(y) * nx, nx);
    if (best > peak.score) peak.score = best, peak.dy = y;
  }
  if (peak.score == kUndefined) return peak;
  const float* row = scores + static_cast<std::ptrdiff_t>(peak.dy) * nx;
  while (row[peak.dx] != peak.score) ++peak.dx;
  peak.found = true;
  peak.second_score = second_best(scores, ny, nx, peak.dy, peak.dx);
  return peak;
}

void fill_table(ScoringTable& table) {
  table.by_type = {{reference_sums<std::uint8_t>, score<std::uint8_t>, add_offset<std::uint8_t>},
                   {reference_sums<std::uint16_t>, score<std::uint16_t>, add_offset<std::uint16_t>},
                   {reference_sums<std::int32_t>, score<std::int32_t>, add_offset<std::int32_t>},
                   {reference_sums<float>, score<float>, add_offset<float>},
                   {reference_sums<double>, score<double>, add_offset<double>}};
  table.peak = find_peak;
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
  return std::get<Scoring<T>>(table().by_type);
}
template const Scoring<std::uint8_t>& scoring();
template const Scoring<std::uint16_t>& scoring();
template const Scoring<std::int32_t>& scoring();
template const Scoring<float>& scoring();
template const Scoring<double>& scoring();

Peak extract_peak(const float* scores, const Shifts& shifts, Criterion criterion) {
  Peak peak = table().peak(scores, shifts);
  if (!peak.found) return Peak{};
  const int ny = shifts.ny(), nx = shifts.nx();
  const int px = peak.dx, py = peak.dy;
  for (int i = 0; i < 9; ++i) {
    const int y = py + i / 3 - 1, x = px + i % 3 - 1;
    const bool inside = y >= 0 && y < ny && x >= 0 && x < nx;
    const float s = inside ? scores[static_cast<std::ptrdiff_t>(y) * nx + x] : kUndefined;
    peak.neighbourhood[i] = score_to_value(s == kUndefined ? peak.score : s, criterion);
  }
  peak.at_border = px == 0 || py == 0 || px == nx - 1 || py == ny - 1;
  peak.second_score = peak.second_score == kUndefined ? 0.0F : score_to_value(peak.second_score, criterion);
  peak.score = score_to_value(peak.score, criterion);
  peak.dx += shifts.dx_min;
  peak.dy += shifts.dy_min;
  return peak;
}

}  // namespace dic::correlate
#endif
