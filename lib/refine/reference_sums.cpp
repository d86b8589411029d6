#include "refine/reference_sums.hpp"

#include <algorithm>
#include <cstddef>
#include <dic/shared/icgn.hpp>

#include "core/simd_targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "refine/reference_sums.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic::refine {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// Number of columns that are summed together.
constexpr int kLanes = 16;

/// The kinds of sums of a column for a shape function of this order: products of gradients times powers of j,
/// gradients and their products with the grey value, and so on. Grey values are relative to `offset`, the
/// mean of the column, so that sums of floats lose no digits.
template <int kOrder>
struct ColumnLayout {
  static constexpr int kPowers = 2 * kOrder + 1, kFew = kOrder + 1;
  static constexpr int dx_dx = 0, dx_dy = kPowers, dy_dy = 2 * kPowers, dx = 3 * kPowers, dy = dx + kFew;
  static constexpr int grey_dx = dy + kFew, grey_dy = grey_dx + kFew, grey_grey = grey_dy + kFew;
  static constexpr int grey = grey_grey + 1, offset = grey + 1, weight = offset + 1, kCount = weight + 1;
};

/// The sums of some columns. `sums` points to the first column; `stride`: floats from one kind to the next.
struct ColumnView {
  const float* sums;
  std::size_t stride;
  const float* of(int kind) const { return sums + kind * stride; }
};

// ---- down the columns ----

template <class D>
HWY_INLINE hn::Vec<D> weights_of(D d, const ReferencePatch& p, int first, int j) {
  if (p.mask.none()) return hn::LoadU(d, p.window.at(first, j));
  const auto mask = hn::LoadU(d, p.mask.at(first, j));
  return p.window.none() ? mask : hn::Mul(mask, hn::LoadU(d, p.window.at(first, j)));
}

/// Per-lane sums over the rows of value j^b, b = 0 .. kPowers - 1.
template <class D, int kPowers>
struct PowerSums {
  hn::Vec<D> of_power[kPowers];
  HWY_INLINE explicit PowerSums(D d) {
    for (auto& sum : of_power) sum = hn::Zero(d);
  }
  HWY_INLINE void add(hn::Vec<D> value, const hn::Vec<D>* powers_of_j) {
    of_power[0] = hn::Add(of_power[0], value);
    for (int b = 1; b < kPowers; ++b) of_power[b] = hn::MulAdd(value, powers_of_j[b], of_power[b]);
  }
  HWY_INLINE void store(D d, float* out, std::size_t stride) const {
    for (int b = 0; b < kPowers; ++b) hn::StoreU(of_power[b], d, out + b * stride);
  }
};

/// Computes means and weights of columns; the mean of a column of weight 0 is 0.
template <bool kWeighted, class D>
HWY_INLINE void mean_of_columns(D d, const ReferencePatch& p, int first, hn::Vec<D>& mean,
                                hn::Vec<D>& weight) {
  mean = weight = hn::Zero(d);
  for (int j = p.rect.top; j <= p.rect.bottom; ++j) {
    const auto w = kWeighted ? weights_of(d, p, first, j) : hn::Set(d, 1.0f);
    mean = hn::MulAdd(w, hn::LoadU(d, p.grey + j * p.stride + first), mean);
    weight = hn::Add(weight, w);
  }
  mean = hn::IfThenElseZero(hn::Gt(weight, hn::Zero(d)), hn::Div(mean, weight));
}

/// Computes the sums of one vector of columns of the patch, from column `first` on.
template <int kOrder, bool kWeighted, class D>
HWY_ATTR void sum_columns(D d, const ReferencePatch& p, int first, float* out, std::size_t stride) {
  using Layout = ColumnLayout<kOrder>;
  constexpr int powers = Layout::kPowers, few = Layout::kFew;
  hn::Vec<D> mean, weight;
  mean_of_columns<kWeighted>(d, p, first, mean, weight);
  PowerSums<D, powers> xx(d), xy(d), yy(d);
  PowerSums<D, few> x(d), y(d), fx(d), fy(d);
  auto f_sum = hn::Zero(d), ff_sum = hn::Zero(d);
  for (int j = p.rect.top; j <= p.rect.bottom; ++j) {
    const std::ptrdiff_t at = j * p.stride + first;
    hn::Vec<D> of_j[powers];
    of_j[0] = hn::Set(d, 1.0f);
    for (int b = 1; b < powers; ++b) of_j[b] = hn::Mul(of_j[b - 1], hn::Set(d, static_cast<float>(j)));
    const auto f = hn::Sub(hn::LoadU(d, p.grey + at), mean);
    const auto gx = hn::LoadU(d, p.dx + at), gy = hn::LoadU(d, p.dy + at);
    auto wf = f, wgx = gx, wgy = gy;
    if constexpr (kWeighted) {
      const auto w = weights_of(d, p, first, j);
      wf = hn::Mul(w, f);
      wgx = hn::Mul(w, gx);
      wgy = hn::Mul(w, gy);
    }
    f_sum = hn::Add(f_sum, wf);
    ff_sum = hn::MulAdd(wf, f, ff_sum);
    x.add(wgx, of_j);
    y.add(wgy, of_j);
    fx.add(hn::Mul(wf, gx), of_j);
    fy.add(hn::Mul(wf, gy), of_j);
    xx.add(hn::Mul(wgx, gx), of_j);
    xy.add(hn::Mul(wgx, gy), of_j);
    yy.add(hn::Mul(wgy, gy), of_j);
  }
  xx.store(d, out + Layout::dx_dx * stride, stride);
  xy.store(d, out + Layout::dx_dy * stride, stride);
  yy.store(d, out + Layout::dy_dy * stride, stride);
  x.store(d, out + Layout::dx * stride, stride);
  y.store(d, out + Layout::dy * stride, stride);
  fx.store(d, out + Layout::grey_dx * stride, stride);
  fy.store(d, out + Layout::grey_dy * stride, stride);
  hn::StoreU(ff_sum, d, out + Layout::grey_grey * stride);
  hn::StoreU(f_sum, d, out + Layout::grey * stride);
  hn::StoreU(mean, d, out + Layout::offset * stride);
  hn::StoreU(weight, d, out + Layout::weight * stride);
}

template <int kOrder>
HWY_ATTR void sum_all_columns(const ReferencePatch& p, float* out, std::size_t stride) {
  const hn::CappedTag<float, kLanes> d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int first = p.rect.left; first <= p.rect.right; first += lanes, out += lanes) {
    if (p.has_weights())
      sum_columns<kOrder, true>(d, p, first, out, stride);
    else
      sum_columns<kOrder, false>(d, p, first, out, stride);
  }
}

HWY_ATTR void run_column_sums(const ReferencePatch& patch, int order, float* out, std::size_t stride) {
  if (order == 0) return sum_all_columns<0>(patch, out, stride);
  if (order == 1) return sum_all_columns<1>(patch, out, stride);
  sum_all_columns<2>(patch, out, stride);
}

// ---- over the columns of a subset ----

/// Sums value(b, k) i^a over columns k = 0 .. count - 1 for all a + b < kPowers. first: i of the first
/// column. value: returns a vector of columns from k on; lanes beyond the last column are ignored.
template <int kPowers, class D, class Value>
HWY_INLINE void add_moments(D d, int count, int first, const Value& value, double* out) {
  constexpr int moments = icgn::monomial_count(kPowers - 1);
  const int lanes = static_cast<int>(hn::Lanes(d));
  hn::Vec<D> sums[moments];
  for (auto& sum : sums) sum = hn::Zero(d);
  for (int k = 0; k < count; k += lanes) {
    const auto inside = hn::FirstN(d, static_cast<std::size_t>(count - k));
    const auto i = hn::Add(hn::Iota(d, 0.0f), hn::Set(d, static_cast<float>(first + k)));
    for (int b = 0; b < kPowers; ++b) {
      auto term = hn::IfThenElseZero(inside, value(b, k));
      for (int a = 0; a + b < kPowers; ++a) {
        auto& sum = sums[icgn::monomial_index(a, b)];
        sum = hn::Add(sum, term);
        term = hn::Mul(term, i);
      }
    }
  }
  for (int m = 0; m < moments; ++m) out[m] = hn::GetLane(hn::SumOfLanes(d, sums[m]));
}

template <int kOrder, class D>
HWY_INLINE float mean_of(D d, const ColumnView& columns, int count, double& weight) {
  using Layout = ColumnLayout<kOrder>;
  const float* offset = columns.of(Layout::offset);
  const auto origin = hn::Set(d, offset[0]);
  double grey = 0;
  const auto load = [&](int kind, int k) HWY_ATTR { return hn::LoadU(d, columns.of(kind) + k); };
  add_moments<1>(
      d, count, 0, [&](int, int k) HWY_ATTR { return load(Layout::weight, k); }, &weight);
  const auto above_origin = [&](int, int k) HWY_ATTR {
    return hn::MulAdd(load(Layout::weight, k), hn::Sub(load(Layout::offset, k), origin),
                      load(Layout::grey, k));
  };
  add_moments<1>(d, count, 0, above_origin, &grey);
  // The error of rounding to float is far below the noise of a grey level.
  return static_cast<float>(weight > 0 ? offset[0] + grey / weight : 0);
}

template <int kOrder>
HWY_ATTR void add_up(const ColumnView& columns, int count, int first, const float* given_mean,
                     ReferenceSubsetSums& out) {
  using Layout = ColumnLayout<kOrder>;
  constexpr int powers = Layout::kPowers, few = Layout::kFew;
  const hn::CappedTag<float, kLanes> d;
  const float own_mean = mean_of<kOrder>(d, columns, count, out.count);
  const float mean = given_mean ? *given_mean : own_mean;
  out.mean = mean;
  const auto load = [&](int kind, int k) HWY_ATTR { return hn::LoadU(d, columns.of(kind) + k); };
  const auto rise = [&](int k) HWY_ATTR { return hn::Sub(load(Layout::offset, k), hn::Set(d, mean)); };
  const auto sums_of = [&](int kind) HWY_ATTR {
    return [&load, kind](int b, int k) HWY_ATTR { return load(kind + b, k); };
  };
  const auto grey_sums_of = [&](int kind, int gradient) HWY_ATTR {
    return [&load, &rise, kind, gradient](int b, int k)
               HWY_ATTR { return hn::MulAdd(rise(k), load(gradient + b, k), load(kind + b, k)); };
  };
  add_moments<powers>(d, count, first, sums_of(Layout::dx_dx), out.dx_dx);
  add_moments<powers>(d, count, first, sums_of(Layout::dx_dy), out.dx_dy);
  add_moments<powers>(d, count, first, sums_of(Layout::dy_dy), out.dy_dy);
  add_moments<few>(d, count, first, sums_of(Layout::dx), out.dx);
  add_moments<few>(d, count, first, sums_of(Layout::dy), out.dy);
  add_moments<few>(d, count, first, grey_sums_of(Layout::grey_dx, Layout::dx), out.grey_dx);
  add_moments<few>(d, count, first, grey_sums_of(Layout::grey_dy, Layout::dy), out.grey_dy);
  const auto grey = [&](int, int k) HWY_ATTR {
    return hn::MulAdd(rise(k), load(Layout::weight, k), load(Layout::grey, k));
  };
  add_moments<1>(d, count, first, grey, &out.grey);
  // sum (f + rise)^2 = sum f^2 + rise (sum f + sum (f + rise))
  const auto squares = [&](int b, int k) HWY_ATTR {
    return hn::MulAdd(rise(k), hn::Add(load(Layout::grey, k), grey(b, k)), load(Layout::grey_grey, k));
  };
  add_moments<1>(d, count, first, squares, &out.grey_grey);
}

HWY_ATTR void run_add_up(const float* sums, std::size_t stride, int order, int count, int first,
                         const float* mean, ReferenceSubsetSums& out) {
  const ColumnView columns{sums, stride};
  if (order == 0) return add_up<0>(columns, count, first, mean, out);
  if (order == 1) return add_up<1>(columns, count, first, mean, out);
  add_up<2>(columns, count, first, mean, out);
}

int kinds_of_sums(int order) {
  return order == 0   ? ColumnLayout<0>::kCount
         : order == 1 ? ColumnLayout<1>::kCount
                      : ColumnLayout<2>::kCount;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace dic::refine
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::refine {
namespace {

HWY_EXPORT(run_column_sums);
HWY_EXPORT(run_add_up);

constexpr std::size_t kWidestVector = 16;  // number of floats

}  // namespace

void ColumnSums::sum(const ReferencePatch& patch, int order) {
  order_ = order;
  first_ = patch.rect.left;
  // The last vector of a subset begins in its last column at the latest.
  stride_ = static_cast<std::size_t>(std::max(patch.rect.right - patch.rect.left + 1, 0)) + 2 * kWidestVector;
  sums_.resize(std::max(sums_.size(), stride_ * HWY_STATIC_DISPATCH(kinds_of_sums)(order)));
  HWY_DYNAMIC_DISPATCH(run_column_sums)(patch, order, sums_.data(), stride_);
}

ReferenceSubsetSums ColumnSums::over(const SubsetColumns& columns) const {
  ReferenceSubsetSums out;
  add_up(columns, nullptr, out);
  return out;
}

ReferenceSubsetSums ColumnSums::over(const SubsetColumns& columns, float mean) const {
  ReferenceSubsetSums out;
  add_up(columns, &mean, out);
  return out;
}

void ColumnSums::add_up(const SubsetColumns& c, const float* mean, ReferenceSubsetSums& out) const {
  HWY_DYNAMIC_DISPATCH(run_add_up)
  (sums_.data() + (c.left - first_), stride_, order_, c.right - c.left + 1, c.left - c.centre, mean, out);
}

ReferenceSubsetSums reference_sums(const ReferencePatch& patch, int order) {
  ColumnSums columns;
  columns.sum(patch, order);
  return columns.over({patch.rect.left, patch.rect.right, 0});
}

ReferenceSubsetSums reference_sums_about(float mean, const ReferencePatch& patch, int order) {
  ColumnSums columns;
  columns.sum(patch, order);
  return columns.over({patch.rect.left, patch.rect.right, 0}, mean);
}

}  // namespace dic::refine
#endif
