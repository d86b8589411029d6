#include "refine/current_sums.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <dic/shared/icgn.hpp>
#include <type_traits>

#include "core/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "refine/current_sums.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic::refine {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Loads floats into the lanes of d.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const float* from) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float))
    return hn::LoadU(d, from);
  else
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<float, D>(), from));
}

template <class D>
HWY_INLINE hn::Vec<D> columns(D d, int first) {
  return hn::Add(hn::Iota(d, 0.0f), hn::Set(d, static_cast<float>(first)));
}

/// Weights of the pixels of row j from column `first` on; 0 past the right edge of the subset.
template <class D>
HWY_INLINE hn::Vec<D> lane_weights(D d, const ReferencePatch& p, int first, int j) {
  const int left = p.rect.right - first + 1;
  const auto inside = hn::FirstN(d, static_cast<std::size_t>(left));
  const auto weight =
      hn::IfThenElseZero(inside, p.mask.none() ? hn::Set(d, hn::TFromD<D>{1}) : load(d, p.mask.at(first, j)));
  return p.window.none() ? weight : hn::Mul(weight, load(d, p.window.at(first, j)));
}

/// Per-lane sums over the rows of sum_j value j^b, b = 0..kPowers-1.
template <class D, int kPowers>
struct RowMoments {
  hn::Vec<D> power[kPowers];
  HWY_INLINE explicit RowMoments(D d) {
    for (auto& p : power) p = hn::Zero(d);
  }
  HWY_INLINE void add(hn::Vec<D> value, hn::Vec<D> j) {
    power[0] = hn::Add(power[0], value);
    for (int b = 1; b < kPowers; ++b) {
      power[b] = hn::MulAdd(value, j, power[b]);
      value = hn::Mul(value, j);
    }
  }
  /// Adds sum i^a j^b for all a + b < kPowers to `out`, i per lane.
  HWY_INLINE void finish(D d, hn::Vec<D> i, double* out) const {
    for (int b = 0; b < kPowers; ++b) {
      auto value = power[b];
      for (int a = 0; a + b < kPowers; ++a) {
        out[icgn::monomial_index(a, b)] += hn::GetLane(hn::SumOfLanes(d, value));
        value = hn::Mul(value, i);
      }
    }
  }
};

/// Weights of the degree + 1 spline coefficients around a position t in [0, 1) past a knot, times 6 (cubic)
/// or 120 (quintic).
template <class D>
HWY_INLINE void scaled_spline_weights(D d, hn::Vec<D> t, hn::Vec<D> (&w)[4]) {
  const auto s = hn::Sub(hn::Set(d, 1.0f), t);
  const auto four = hn::Set(d, 4.0f), minus_six = hn::Set(d, -6.0f), three = hn::Set(d, 3.0f);
  const auto t2 = hn::Mul(t, t), s2 = hn::Mul(s, s);
  w[0] = hn::Mul(s2, s);
  w[3] = hn::Mul(t2, t);
  w[1] = hn::MulAdd(three, w[3], hn::MulAdd(minus_six, t2, four));
  w[2] = hn::MulAdd(three, w[0], hn::MulAdd(minus_six, s2, four));
}

template <class D>
HWY_INLINE void scaled_spline_weights(D d, hn::Vec<D> t, hn::Vec<D> (&w)[6]) {
  const auto s = hn::Sub(hn::Set(d, 1.0f), t);
  const auto t2 = hn::Mul(t, t), s2 = hn::Mul(s, s);
  // 120 beta5 = 66 - 60 x^2 + 30 x^4 - 10 |x|^5 for |x| < 1 and (3 - x)^5 - 6 (2 - x)^5 for 1 <= x < 2.
  const auto inner = [&](hn::Vec<D> x, hn::Vec<D> x2) {
    const auto quartic = hn::NegMulAdd(hn::Set(d, 10.0f), x, hn::Set(d, 30.0f));
    return hn::MulAdd(x2, hn::MulAdd(x2, quartic, hn::Set(d, -60.0f)), hn::Set(d, 66.0f));
  };
  const auto fifth = [](hn::Vec<D> x, hn::Vec<D> x2) { return hn::Mul(hn::Mul(x2, x2), x); };
  w[0] = fifth(s, s2);
  w[5] = fifth(t, t2);
  w[2] = inner(t, t2);
  w[3] = inner(s, s2);
  const auto two = hn::Set(d, 2.0f), minus_six = hn::Set(d, -6.0f);
  const auto s1 = hn::Sub(two, t), t1 = hn::Sub(two, s);
  w[1] = hn::MulAdd(minus_six, w[0], fifth(s1, hn::Mul(s1, s1)));
  w[4] = hn::MulAdd(minus_six, w[5], fifth(t1, hn::Mul(t1, t1)));
}

/// Weights for one more tap: lanes beyond the next knot (t >= 1) use taps 1.., the others taps 0...
template <int kDegree, class D>
HWY_INLINE void scaled_spline_weights(D d, hn::Vec<D> t, hn::Vec<D> (&w)[kDegree + 2]) {
  const auto one = hn::Set(d, 1.0f);
  const auto past = hn::Ge(t, one);
  hn::Vec<D> narrow[kDegree + 1];
  scaled_spline_weights(d, hn::Sub(t, hn::IfThenElseZero(past, one)), narrow);
  w[0] = hn::IfThenZeroElse(past, narrow[0]);
  for (int k = 1; k <= kDegree; ++k) w[k] = hn::IfThenElse(past, narrow[k - 1], narrow[k]);
  w[kDegree + 1] = hn::IfThenElseZero(past, narrow[kDegree]);
}

/// Sums of neighbouring coefficients, weighted by row and column. `taps`: the top-left coefficient of lane 0.
template <int kRows, int kColumns = kRows, class D>
HWY_INLINE hn::Vec<D> weighted_taps(D d, const float* taps, std::ptrdiff_t stride,
                                    const hn::Vec<D> (&wx)[kColumns + 1], const hn::Vec<D> (&wy)[kRows + 1]) {
  auto value = hn::Zero(d);
  for (int r = 0; r <= kRows; ++r, taps += stride) {
    auto row = hn::Mul(wx[0], load(d, taps));
    for (int k = 1; k <= kColumns; ++k) row = hn::MulAdd(wx[k], load(d, taps + k), row);
    value = hn::MulAdd(wy[r], row, value);
  }
  return value;
}

/// Spline values of lanes that read the same rows and neighbouring columns; kExtraX, kExtraY = 1 if a knot is
/// crossed within the vector. `taps`: the top-left coefficient of lane 0.
template <int kDegree, int kExtraX, int kExtraY, class D>
HWY_INLINE hn::Vec<D> interpolate(D d, const float* taps, std::ptrdiff_t stride, hn::Vec<D> tx,
                                  hn::Vec<D> ty) {
  hn::Vec<D> wx[kDegree + 1 + kExtraX], wy[kDegree + 1 + kExtraY];
  if constexpr (kExtraX)
    scaled_spline_weights<kDegree>(d, tx, wx);
  else
    scaled_spline_weights(d, tx, wx);
  if constexpr (kExtraY)
    scaled_spline_weights<kDegree>(d, ty, wy);
  else
    scaled_spline_weights(d, ty, wy);
  return weighted_taps<kDegree + kExtraY, kDegree + kExtraX>(d, taps, stride, wx, wy);
}

/// The floats at from[index[lane]].
template <class D, class Index>
HWY_INLINE hn::Vec<D> gather(D d, const float* from, Index index) {
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float))
    return hn::GatherIndex(d, from, index);
  else
    return hn::PromoteTo(d, hn::GatherIndex(hn::Rebind<float, D>(), from, index));
}

/// Converts whole numbers to 32-bit integers.
template <class D>
HWY_INLINE auto integers(D, hn::Vec<D> values) {
  const hn::Rebind<std::int32_t, D> di;
  if constexpr (sizeof(hn::TFromD<D>) == sizeof(float))
    return hn::ConvertTo(di, values);
  else
    return hn::DemoteTo(di, values);
}

/// Spline values at any positions (x, y) relative to `origin`. It takes a gather per tap, for deformations
/// that cross several knots within a vector.
template <int kDegree, class D>
HWY_INLINE hn::Vec<D> interpolate_gather(D d, const float* origin, std::ptrdiff_t stride, hn::Vec<D> x,
                                         hn::Vec<D> y) {
  const hn::Rebind<std::int32_t, D> di;
  const auto fx = hn::Floor(x), fy = hn::Floor(y);
  hn::Vec<D> wx[kDegree + 1], wy[kDegree + 1];
  scaled_spline_weights(d, hn::Sub(x, fx), wx);
  scaled_spline_weights(d, hn::Sub(y, fy), wy);
  const auto index =
      hn::Add(hn::Mul(integers(d, fy), hn::Set(di, static_cast<std::int32_t>(stride))), integers(d, fx));
  const float* taps = origin - (kDegree / 2) * (stride + 1);
  auto value = hn::Zero(d);
  for (int r = 0; r <= kDegree; ++r, taps += stride) {
    auto row = hn::Zero(d);
    for (int k = 0; k <= kDegree; ++k) row = hn::MulAdd(wx[k], gather(d, taps + k, index), row);
    value = hn::MulAdd(wy[r], row, value);
  }
  return value;
}

/// One component of the displacement along a subset row: base + slope i + curvature i^2. Floats are precise
/// enough because the integer part was subtracted.
template <typename T>
struct RowDisplacement {
  T base, slope, curvature;
  T at(float i) const { return base + i * (slope + i * curvature); }
};

/// Floors of the range of a displacement; the range may be wider than necessary.
struct FloorRange {
  float low, high;
  float extra() const { return high - low; }
};

template <int kOrder, typename T>
HWY_INLINE FloorRange floor_range(const RowDisplacement<T>& row, float first, float last) {
  const T a = row.at(first), b = row.at(last);
  T slack = 0;
  if constexpr (kOrder == 2) slack = std::abs(row.curvature) * 0.25f * (last - first) * (last - first);
  return {static_cast<float>(std::floor(std::min(a, b) - slack)),
          static_cast<float>(std::floor(std::max(a, b) + slack))};
}

/// Shape parameters of one displacement component, arranged for a loop over rows.
template <typename T>
struct ShapeRows {
  T u, ux, uy, uxx, uxy, uyy;
  template <int kOrder>
  RowDisplacement<T> row(float j) const {
    if constexpr (kOrder == 0) return {u, 0, 0};
    if constexpr (kOrder == 1) return {u + j * uy, ux, 0};
    return {u + j * (uy + j * uyy), ux + j * uxy, uxx};
  }
  /// Range of the displacement over columns first..last of all rows top..bottom.
  template <int kOrder>
  FloorRange range(float first, float last, float top, float bottom) const {
    const FloorRange a = floor_range<kOrder>(row<kOrder>(top), first, last);
    const FloorRange b = floor_range<kOrder>(row<kOrder>(bottom), first, last);
    float slack = 0;
    if constexpr (kOrder == 2)
      slack = static_cast<float>(std::ceil(std::abs(uyy) * 0.25f * (bottom - top) * (bottom - top)));
    return {std::min(a.low, b.low) - slack, std::max(a.high, b.high) + slack};
  }
};

template <class D>
using RowOf = RowDisplacement<hn::TFromD<D>>;

/// Displacement of the columns of a subset row.
template <typename T>
struct RowShift {
  RowDisplacement<T> u, v;
};

/// Shape parameters of a subset.
template <typename T>
struct SubsetShape {
  ShapeRows<T> u, v;

  template <int kOrder>
  RowShift<T> row(float j) const {
    return {u.template row<kOrder>(j), v.template row<kOrder>(j)};
  }
};

/// Rows of spline coefficients; `at` is the one of a segment's first column and of a row, for zero
/// displacement.
struct CoefficientRow {
  const float* at;
  std::ptrdiff_t stride;
};

/// Columns of a row, inclusive.
struct Columns {
  float first, last;
};

template <int kOrder, class D>
HWY_INLINE hn::Vec<D> displacement(D d, const RowOf<D>& row, float floor, hn::Vec<D> i) {
  const auto base = hn::Set(d, row.base - floor);
  if constexpr (kOrder <= 0) return base;
  if constexpr (kOrder == 1) return hn::MulAdd(i, hn::Set(d, row.slope), base);
  return hn::MulAdd(i, hn::MulAdd(i, hn::Set(d, row.curvature), hn::Set(d, row.slope)), base);
}

/// Spline values of one vector of a subset row, for any deformation. first: column of the first lane. usable:
/// the columns whose positions are in the image's memory; lanes beyond them repeat the nearest one.
template <int kDegree, int kOrder, class D>
HWY_INLINE hn::Vec<D> gather_row(D d, const CoefficientRow& row, const RowShift<hn::TFromD<D>>& shift,
                                 float first, const Columns& usable, hn::Vec<D> i) {
  const auto column = hn::Max(hn::Min(i, hn::Set(d, static_cast<hn::TFromD<D>>(usable.last))),
                              hn::Set(d, static_cast<hn::TFromD<D>>(usable.first)));
  const auto lane = hn::Sub(column, hn::Set(d, first));
  return interpolate_gather<kDegree>(d, row.at, row.stride,
                                     hn::Add(lane, displacement<kOrder>(d, shift.u, 0, column)),
                                     displacement<kOrder>(d, shift.v, 0, column));
}

/// Spline values of one vector of a subset row, by the fastest method that is exact for the deformation.
template <int kDegree, int kOrder, class D>
HWY_INLINE hn::Vec<D> interpolate_row(D d, const CoefficientRow& row, const RowShift<hn::TFromD<D>>& shift,
                                      const Columns& columns, hn::Vec<D> i) {
  const FloorRange x = floor_range<kOrder>(shift.u, columns.first, columns.last),
                   y = floor_range<kOrder>(shift.v, columns.first, columns.last);
  if (x.extra() > 1 || y.extra() > 1)
    return gather_row<kDegree, kOrder>(d, row, shift, columns.first, columns, i);
  const std::ptrdiff_t stride = row.stride;
  const float* taps =
      row.at + (static_cast<int>(y.low) - kDegree / 2) * stride + static_cast<int>(x.low) - kDegree / 2;
  const auto tx = displacement<kOrder>(d, shift.u, x.low, i), ty = displacement<kOrder>(d, shift.v, y.low, i);
  if (x.extra() == 0 && y.extra() == 0) return interpolate<kDegree, 0, 0>(d, taps, stride, tx, ty);
  if (y.extra() == 0) return interpolate<kDegree, 1, 0>(d, taps, stride, tx, ty);
  if (x.extra() == 0) return interpolate<kDegree, 0, 1>(d, taps, stride, tx, ty);
  return interpolate<kDegree, 1, 1>(d, taps, stride, tx, ty);
}

/// Sums over columns of a subset, one column per lane, from `first` on.
template <int kOrder, bool kPartial, class D>
class SegmentSums {
 public:
  HWY_INLINE SegmentSums(D d, const ReferencePatch& p, const GreyFit& fit, int first)
      : patch_(p),
        first_(first),
        mean_(set(fit.mean)),
        level_(set(fit.level)),
        contrast_(set(fit.contrast)),
        e_(hn::Zero(d)),
        ee_(hn::Zero(d)),
        fe_(hn::Zero(d)),
        x_(d),
        y_(d) {}

  /// Adds row j. vj: j in all lanes; grey: grey values of the current image at the displaced pixels.
  HWY_INLINE void add(int j, hn::Vec<D> vj, hn::Vec<D> grey) {
    const D d;
    const std::ptrdiff_t at = j * patch_.stride + first_;
    const auto f = hn::Sub(load(d, patch_.grey + at), mean_);
    const auto e = hn::NegMulAdd(contrast_, f, hn::Sub(grey, level_));
    auto we = e;
    if constexpr (kPartial) we = hn::Mul(e, lane_weights(d, patch_, first_, j));
    e_ = hn::Add(e_, we);
    ee_ = hn::MulAdd(we, e, ee_);
    fe_ = hn::MulAdd(f, we, fe_);
    x_.add(hn::Mul(we, load(d, patch_.dx + at)), vj);
    y_.add(hn::Mul(we, load(d, patch_.dy + at)), vj);
  }

  HWY_INLINE void finish(CurrentSums& out) const {
    const D d;
    const auto i = columns(d, first_);
    out.rest += hn::GetLane(hn::SumOfLanes(d, e_));
    out.rest_rest += hn::GetLane(hn::SumOfLanes(d, ee_));
    out.reference_rest += hn::GetLane(hn::SumOfLanes(d, fe_));
    x_.finish(d, i, out.dx);
    y_.finish(d, i, out.dy);
  }

 private:
  static HWY_INLINE hn::Vec<D> set(double value) { return hn::Set(D(), static_cast<hn::TFromD<D>>(value)); }

  const ReferencePatch& patch_;
  int first_;
  hn::Vec<D> mean_, level_, contrast_, e_, ee_, fe_;
  RowMoments<D, kOrder + 1> x_, y_;
};

/// Adds the sums of the columns first .. first + lanes - 1 that are inside the subset. grey_at(j, float(j))
/// interpolates row j.
template <int kOrder, bool kPartial, class D, class GreyAt>
HWY_INLINE void add_rows(D d, const ReferencePatch& p, const GreyFit& fit, int first, CurrentSums& out,
                         const GreyAt& grey_at) {
  SegmentSums<kOrder, kPartial, D> sums(d, p, fit, first);
  for (int j = p.rect.top; j <= p.rect.bottom; ++j) {
    const float fj = static_cast<float>(j);
    sums.add(j, hn::Set(d, static_cast<hn::TFromD<D>>(j)), grey_at(j, fj));
  }
  sums.finish(out);
}

/// One component of the displacement along subset columns: base + slope j + curvature j^2, a column per lane.
template <int kOrder, class D>
struct ColumnDisplacements {
  hn::Vec<D> base, slope, curvature;

  HWY_INLINE ColumnDisplacements(D d, const ShapeRows<hn::TFromD<D>>& s, float floor, hn::Vec<D> i)
      : base(displacement<kOrder>(d, {s.u, s.ux, s.uxx}, floor, i)),
        slope(displacement<kOrder - 1>(d, {s.uy, s.uxy, 0}, 0, i)),
        curvature(hn::Set(d, s.uyy)) {}
  HWY_INLINE hn::Vec<D> at(hn::Vec<D> j) const {
    if constexpr (kOrder == 0) return base;
    if constexpr (kOrder == 1) return hn::MulAdd(j, slope, base);
    return hn::MulAdd(j, hn::MulAdd(j, curvature, slope), base);
  }
};

/// Whole pixels of the displacement of a segment that crosses no knot, and its top-left coefficient of row 0.
struct SmoothTaps {
  float u_floor, v_floor;
  const float* taps;
};

/// Like add_rows(), for a segment that crosses no knot. From the position of a row to its sums a processor
/// waits for about 100 cycles, but it looks only some 150 instructions ahead. Therefore three rows are in
/// work at a time, each in one of three stages that do not wait for each other.
template <int kDegree, int kOrder, bool kPartial, class D>
HWY_INLINE void add_smooth_rows(D d, const ReferencePatch& p, const CurrentPatch& c,
                                const SubsetShape<hn::TFromD<D>>& shape, const SmoothTaps& at, int first,
                                CurrentSums& out) {
  SegmentSums<kOrder, kPartial, D> sums(d, p, c.fit, first);
  const auto i = columns(d, first);
  const ColumnDisplacements<kOrder, D> x(d, shape.u, at.u_floor, i), y(d, shape.v, at.v_floor, i);
  hn::Vec<D> wx[kDegree + 1], wy[kDegree + 1];
  const auto weigh = [&](hn::Vec<D> j) HWY_ATTR {
    scaled_spline_weights(d, x.at(j), wx);
    scaled_spline_weights(d, y.at(j), wy);
  };
  const auto grey_at = [&](int j) HWY_ATTR {
    return weighted_taps<kDegree>(d, at.taps + j * c.stride, c.stride, wx, wy);
  };
  const SubsetRect& r = p.rect;
  const auto one = hn::Set(d, hn::TFromD<D>{1});
  auto vj = hn::Set(d, static_cast<hn::TFromD<D>>(r.top)), ahead = hn::Add(vj, one);
  weigh(vj);
  auto grey = grey_at(r.top);
  weigh(ahead);
  for (int j = r.top; j < r.bottom; ++j) {
    sums.add(j, vj, grey);
    grey = grey_at(j + 1);
    vj = ahead;
    ahead = hn::Add(ahead, one);
    weigh(ahead);
  }
  sums.add(r.bottom, vj, grey);
  sums.finish(out);
}

/// Adds the sums of one column of a segment that crosses no knot. Its rows are the lanes, because a vector of
/// columns would use only one lane (subsets of 17, 33, 49 px). The loop over rows is faster only at order 0,
/// where all rows have the same weights.
template <int kDegree, int kOrder, class D>
HWY_ATTR void add_column(D d, const ReferencePatch& p, const CurrentPatch& c, const SubsetShape<float>& shape,
                         const SmoothTaps& at, int column, CurrentSums& out) {
  constexpr int most = 16;
  const int lanes = static_cast<int>(hn::Lanes(d));
  HWY_ALIGN float near[kDegree + 1][most + kDegree] = {}, f[most] = {}, dx[most] = {}, dy[most] = {};
  const float i = static_cast<float>(column);
  const auto of_column = [i](const ShapeRows<float>& s, float floor) {  // coefficients of 1, j and j^2
    return RowDisplacement<float>{s.u - floor + i * (s.ux + i * s.uxx), s.uy + i * s.uxy, s.uyy};
  };
  const RowDisplacement<float> x = of_column(shape.u, at.u_floor), y = of_column(shape.v, at.v_floor);
  const float* taps = at.taps;
  const auto set = [d](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const auto mean = set(c.fit.mean), level = set(c.fit.level), contrast = set(c.fit.contrast);
  auto e_sum = hn::Zero(d), ee_sum = hn::Zero(d), fe_sum = hn::Zero(d);
  RowMoments<D, kOrder + 1> x_moments(d), y_moments(d);
  for (int top = p.rect.top; top <= p.rect.bottom; top += lanes) {
    const int rows = std::min(lanes, p.rect.bottom - top + 1);
    for (int row = 0; row < rows + kDegree; ++row)
      for (int k = 0; k <= kDegree; ++k) near[k][row] = taps[(top + row) * c.stride + k];
    for (int row = 0; row < rows; ++row) {
      const std::ptrdiff_t pixel = (top + row) * p.stride + column;
      f[row] = p.grey[pixel];
      dx[row] = p.dx[pixel];
      dy[row] = p.dy[pixel];
    }
    const auto j = columns(d, top);
    hn::Vec<D> wx[kDegree + 1], wy[kDegree + 1];
    scaled_spline_weights(d, displacement<kOrder>(d, {x.base, x.slope, x.curvature}, 0, j), wx);
    scaled_spline_weights(d, displacement<kOrder>(d, {y.base, y.slope, y.curvature}, 0, j), wy);
    auto grey = hn::Zero(d);
    for (int r = 0; r <= kDegree; ++r) {
      auto row = hn::Mul(wx[0], hn::LoadU(d, near[0] + r));
      for (int k = 1; k <= kDegree; ++k) row = hn::MulAdd(wx[k], hn::LoadU(d, near[k] + r), row);
      grey = hn::MulAdd(wy[r], row, grey);
    }
    const auto centred = hn::Sub(hn::Load(d, f), mean);
    const auto e = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(rows)),
                                      hn::NegMulAdd(contrast, centred, hn::Sub(grey, level)));
    e_sum = hn::Add(e_sum, e);
    ee_sum = hn::MulAdd(e, e, ee_sum);
    fe_sum = hn::MulAdd(centred, e, fe_sum);
    x_moments.add(hn::Mul(e, hn::Load(d, dx)), j);
    y_moments.add(hn::Mul(e, hn::Load(d, dy)), j);
  }
  out.rest += hn::GetLane(hn::SumOfLanes(d, e_sum));
  out.rest_rest += hn::GetLane(hn::SumOfLanes(d, ee_sum));
  out.reference_rest += hn::GetLane(hn::SumOfLanes(d, fe_sum));
  x_moments.finish(d, hn::Set(d, i), out.dx);
  y_moments.finish(d, hn::Set(d, i), out.dy);
}

HWY_INLINE Columns columns_of(const PartRow& row) {
  return {static_cast<float>(row.first), static_cast<float>(row.last)};
}

/// How the columns of a segment are read: neighbouring columns together if few knots are crossed, otherwise
/// each one separately.
enum class Taps { shared, gathered };

template <int kDegree, int kOrder, Taps kTaps, bool kPartial, class D>
HWY_ATTR void add_current_segment(D d, const ReferencePatch& p, const CurrentPatch& c,
                                  const SubsetShape<hn::TFromD<D>>& shape, int first, CurrentSums& out) {
  const SubsetRect& r = p.rect;
  const auto i = columns(d, first);
  const float i0 = static_cast<float>(first);
  const float i1 = static_cast<float>(std::min(first + static_cast<int>(hn::Lanes(d)) - 1, r.right));
  const float j0 = static_cast<float>(r.top), j1 = static_cast<float>(r.bottom);
  if constexpr (kTaps == Taps::gathered) {
    add_rows<kOrder, kPartial>(d, p, c.fit, first, out, [&](int j, float fj) HWY_ATTR {
      return gather_row<kDegree, kOrder>(d, {c.coefficients + j * c.stride + first, c.stride},
                                         shape.template row<kOrder>(fj), i0,
                                         p.rows ? columns_of(p.rows[j]) : Columns{i0, i1}, i);
    });
    return;
  }
  const FloorRange x = shape.u.template range<kOrder>(i0, i1, j0, j1),
                   y = shape.v.template range<kOrder>(i0, i1, j0, j1);
  if (x.extra() == 0 && y.extra() == 0) {  // the usual case: no knot is crossed in the whole segment
    const float* taps = c.coefficients + first + (static_cast<int>(y.low) - kDegree / 2) * c.stride +
                        static_cast<int>(x.low) - kDegree / 2;
    const SmoothTaps at{x.low, y.low, taps};
    if constexpr (kPartial && kOrder > 0 && std::is_same_v<hn::TFromD<D>, float>)
      if (first == r.right && !p.has_weights()) {
        add_column<kDegree, kOrder>(hn::CappedTag<float, 16>(), p, c, shape, at, first, out);
        return;
      }
    add_smooth_rows<kDegree, kOrder, kPartial>(d, p, c, shape, at, first, out);
    return;
  }
  add_rows<kOrder, kPartial>(d, p, c.fit, first, out, [&](int j, float fj) HWY_ATTR {
    return interpolate_row<kDegree, kOrder>(d, {c.coefficients + j * c.stride + first, c.stride},
                                            shape.template row<kOrder>(fj), {i0, i1}, i);
  });
}

/// Largest change of the displacement from one column to the next.
HWY_INLINE double steepness(const ShapeParameters& s, const SubsetRect& r) {
  const double curved = std::max(std::abs(s.uxx) + std::abs(s.uxy), std::abs(s.vxx) + std::abs(s.vxy)) *
                        std::max({-r.left, r.right, -r.top, r.bottom});
  return std::max(std::abs(s.ux), std::abs(s.vx)) + curved;
}

/// The rows of the subset that may have pixels in some columns; bottom < top if there are none.
SubsetRect rows_of(const ReferencePatch& p, int first, int last) {
  SubsetRect rect = p.rect;
  if (!p.part) return rect;
  const auto is_empty = [&](int j) { return p.part[j].first > last || p.part[j].last < first; };
  while (rect.top <= rect.bottom && is_empty(rect.top)) ++rect.top;
  while (rect.top <= rect.bottom && is_empty(rect.bottom)) --rect.bottom;
  return rect;
}

/// Adds columns in vectors of up to `widest` lanes, and the rest in the narrowest vector that holds them.
template <typename T, int kDegree, int kOrder, Taps kTaps>
HWY_ATTR void add_segments(const ReferencePatch& p, const CurrentPatch& c, int widest, CurrentSums& out) {
  const hn::CappedTag<T, 16> d;
  const hn::CappedTag<T, 8> d8;
  const hn::CappedTag<T, 4> d4;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const ShapeParameters& s = c.shape;
  const auto t = [](double value) { return static_cast<T>(value); };
  const SubsetShape<T> shape{{t(s.u), t(s.ux), t(s.uy), t(0.5 * s.uxx), t(s.uxy), t(0.5 * s.uyy)},
                             {t(s.v), t(s.vx), t(s.vy), t(0.5 * s.vxx), t(s.vxy), t(0.5 * s.vyy)}};
  int first = p.rect.left;
  for (; !p.has_weights() && widest >= lanes && first + lanes - 1 <= p.rect.right; first += lanes)
    add_current_segment<kDegree, kOrder, kTaps, false>(d, p, c, shape, first, out);
  while (first <= p.rect.right) {
    const int left = std::min(widest, p.rect.right - first + 1),
              width = left <= 4   ? 4
                      : left <= 8 ? 8
                                  : 16,
              wide = std::min(lanes, width);
    ReferencePatch some = p;
    some.rect = rows_of(p, first, first + wide - 1);
    const int at = std::exchange(first, first + wide);
    if (some.rect.top > some.rect.bottom) continue;
    if (left <= 4)
      add_current_segment<kDegree, kOrder, kTaps, true>(d4, some, c, shape, at, out);
    else if (left <= 8)
      add_current_segment<kDegree, kOrder, kTaps, true>(d8, some, c, shape, at, out);
    else
      add_current_segment<kDegree, kOrder, kTaps, true>(d, some, c, shape, at, out);
  }
}

/// Adds columns in vectors so narrow that the displacement crosses at most one knot along them; gathering is
/// faster than vectors below 8 columns.
template <typename T, int kDegree, int kOrder>
HWY_ATTR void add_current(const ReferencePatch& p, const CurrentPatch& c, CurrentSums& out) {
  const double slope = steepness(c.shape, p.rect);
  if (slope * 7 < 1 && !p.rows)
    add_segments<T, kDegree, kOrder, Taps::shared>(p, c, slope * 15 < 1 ? 16 : 8, out);
  else
    add_segments<T, kDegree, kOrder, Taps::gathered>(p, c, 16, out);
}

template <typename T, int kDegree>
HWY_ATTR void add_current_of_order(const ReferencePatch& p, const CurrentPatch& c, int order,
                                   CurrentSums& out) {
  if (order == 0) return add_current<T, kDegree, 0>(p, c, out);
  if (order == 1) return add_current<T, kDegree, 1>(p, c, out);
  add_current<T, kDegree, 2>(p, c, out);
}

template <typename T>
HWY_ATTR void add_current_of_degree(const ReferencePatch& p, const CurrentPatch& c, int order,
                                    Interpolation interpolation, CurrentSums& out) {
  if (interpolation == Interpolation::cubic) return add_current_of_order<T, 3>(p, c, order, out);
  add_current_of_order<T, 5>(p, c, order, out);
}

HWY_ATTR void run_current_sums(const ReferencePatch& p, const CurrentPatch& c, int order,
                               Interpolation interpolation, Arithmetic arithmetic, CurrentSums& out) {
  out = {};
  if (arithmetic == Arithmetic::floats) return add_current_of_degree<float>(p, c, order, interpolation, out);
  add_current_of_degree<double>(p, c, order, interpolation, out);
}

HWY_ATTR const char* target_name() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dic::refine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::refine {
namespace {
HWY_EXPORT(run_current_sums);
HWY_EXPORT(target_name);
}  // namespace

void current_sums(const ReferencePatch& reference, const CurrentPatch& current, int order,
                  Interpolation interpolation, Arithmetic arithmetic, CurrentSums& out) {
  HWY_DYNAMIC_DISPATCH(run_current_sums)(reference, current, order, interpolation, arithmetic, out);
}

std::string_view simd_target_name() { return HWY_DYNAMIC_DISPATCH(target_name)(); }

}  // namespace dic::refine
#endif
