#include "match/pose_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/simd_targets.hpp"  // must precede Highway's headers

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "match/pose_kernels.cpp"  // NOLINT: how Highway compiles one file per target
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace dic::match {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;

struct Weights {
  V w[6];
};

/// 120 times the quintic B-spline's values at the six knots around a fraction.
HWY_INLINE Weights quintic_weights(V t) {
  const D d;
  const auto c = [&](float value) HWY_ATTR { return hn::Set(d, value); };
  const V s = hn::Sub(c(1), t);
  const V t2 = hn::Mul(t, t), s2 = hn::Mul(s, s);
  const auto inner = [&](V u, V u2) HWY_ATTR {  // distance u < 1
    return hn::MulAdd(u2, hn::MulAdd(u2, hn::NegMulAdd(c(10), u, c(30)), c(-60)), c(66));
  };
  const auto outer = [&](V near) HWY_ATTR {  // distance near + 1, from 1 to 2
    const V u = hn::Add(near, c(1));
    V p = hn::MulAdd(c(5), u, c(-45));
    p = hn::MulAdd(p, u, c(150));
    p = hn::MulAdd(p, u, c(-210));
    p = hn::MulAdd(p, u, c(75));
    return hn::MulAdd(p, u, c(51));
  };
  return {{hn::Mul(hn::Mul(s2, s2), s), outer(t), inner(t, t2), inner(s, s2), outer(s),
           hn::Mul(hn::Mul(t2, t2), t)}};
}

/// Lagrange's polynomials of degree 5 through the six pixels around a fraction.
HWY_INLINE Weights lagrange_weights(V t) {
  const D d;
  V from[6];  // distance from each pixel
  for (int k = 0; k < 6; ++k) from[k] = hn::Sub(t, hn::Set(d, static_cast<float>(k - 2)));
  constexpr float kNorm[6] = {-120, 24, -12, 12, -24, 120};
  Weights weights;
  for (int k = 0; k < 6; ++k) {
    V product = hn::Set(d, 1 / kNorm[k]);
    for (int j = 0; j < 6; ++j)
      if (j != k) product = hn::Mul(product, from[j]);
    weights.w[k] = product;
  }
  return weights;
}

constexpr int kLanes = hn::MaxLanes(D());

/// Sums of 6 x 6 pixels around each position of a vector, which begin `at` behind `corner`, by the weights of
/// columns and rows. Rows are read as vectors: 36 gathers take several times as long.
HWY_INLINE V weighted_sum(const float* corner, std::ptrdiff_t stride, hn::Vec<DI> at, const Weights& across,
                          const Weights& down) {
  const D d;
  const DI di;
  const hn::CappedTag<float, 4>
      dc;  // columns from 0 to 3, and from 2 to 5, of which the first two count already
  constexpr int kColumns = hn::MaxLanes(hn::CappedTag<float, 4>());
  HWY_ALIGN float left[4 * kLanes], right[4 * kLanes], of_rows[6][kLanes], sums[4 * kLanes];
  HWY_ALIGN std::int32_t offsets[kLanes];
  hn::StoreInterleaved4(across.w[0], across.w[1], across.w[2], across.w[3], d, left);
  hn::StoreInterleaved4(hn::Zero(d), hn::Zero(d), across.w[4], across.w[5], d, right);
  for (int j = 0; j < 6; ++j) hn::Store(down.w[j], d, of_rows[j]);
  hn::Store(at, di, offsets);
  for (int p = 0; p < kLanes; ++p)
    for (int c = 0; c < 4; c += kColumns) {
      const float* row = corner + offsets[p] + c;
      auto first = hn::Zero(dc), last = hn::Zero(dc);
      for (int j = 0; j < 6; ++j, row += stride) {
        const auto weight = hn::Set(dc, of_rows[j][p]);
        first = hn::MulAdd(weight, hn::LoadU(dc, row), first);
        last = hn::MulAdd(weight, hn::LoadU(dc, row + 2), last);
      }
      const int at_column = 4 * p + c;
      hn::Store(
          hn::MulAdd(first, hn::Load(dc, left + at_column), hn::Mul(last, hn::Load(dc, right + at_column))),
          dc, sums + at_column);
    }
  V a, b, c, e;
  hn::LoadInterleaved4(d, sums, a, b, c, e);
  return hn::Add(hn::Add(a, b), hn::Add(c, e));
}

template <Sampling kSampling>
void sample_block(const SampleImage& image, const pose::Warp& warp, const PixelList& pixels,
                  std::size_t begin, float* HWY_RESTRICT values, float* HWY_RESTRICT inside) {
  const D d;
  const DI di;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto c = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<float>(value)); };
  const V xx = c(warp.xx), xy = c(warp.xy), yx = c(warp.yx), yy = c(warp.yy);
  // The centre is split into pixel and fraction, so that positions in large images keep their digits.
  const int whole_x = static_cast<int>(std::floor(std::clamp(warp.center_x, -1e6, 1e6)));
  const int whole_y = static_cast<int>(std::floor(std::clamp(warp.center_y, -1e6, 1e6)));
  const V cx = c(warp.center_x - whole_x), cy = c(warp.center_y - whole_y);
  // Pixels without a margin are read 2 px to the left and 3 px to the right (Lagrange), or 1 px to the right.
  constexpr int kBefore = kSampling == Sampling::lagrange ? 2 : 0;
  constexpr int kAfter = kSampling == Sampling::lagrange ? 3 : kSampling == Sampling::bilinear ? 1 : 0;
  constexpr int kMargin =
      kSampling == Sampling::lagrange ? 2 : 0;  // places beside the edge that are not sampled
  const V x_min = c(kBefore - whole_x), y_min = c(kBefore - whole_y);
  const V x_max = c(image.width - 1 - kMargin - whole_x), y_max = c(image.height - 1 - kMargin - whole_y);
  const V x_last = c(image.width - 1 - kAfter - whole_x), y_last = c(image.height - 1 - kAfter - whole_y);
  const auto stride = hn::Set(di, static_cast<std::int32_t>(image.stride));
  const float* base = image.values + whole_y * image.stride + whole_x;
  const float* mask =
      image.mask ? image.mask + static_cast<std::ptrdiff_t>(whole_y) * image.width + whole_x : nullptr;
  for (int k = 0; k < PixelList::kBlock; k += lanes) {
    const V xi = hn::LoadU(d, pixels.xi.data() + begin + k),
            eta = hn::LoadU(d, pixels.eta.data() + begin + k);
    V x = hn::MulAdd(xx, xi, hn::MulAdd(xy, eta, cx)), y = hn::MulAdd(yx, xi, hn::MulAdd(yy, eta, cy));
    const auto is_inside =
        hn::And(hn::And(hn::Ge(x, x_min), hn::Le(x, x_max)), hn::And(hn::Ge(y, y_min), hn::Le(y, y_max)));
    x = hn::Min(hn::Max(x, x_min), x_max);
    y = hn::Min(hn::Max(y, y_min), y_max);
    const V x0 = hn::Min(hn::Floor(x), x_last), y0 = hn::Min(hn::Floor(y), y_last);
    const V fx = hn::Sub(x, x0), fy = hn::Sub(y, y0);
    const auto ix = hn::ConvertTo(di, x0), iy = hn::ConvertTo(di, y0);
    const auto at = hn::Add(hn::Mul(iy, stride), ix);
    V value;
    if constexpr (kSampling != Sampling::bilinear) {
      const bool is_spline = kSampling == Sampling::quintic;
      const Weights across = is_spline ? quintic_weights(fx) : lagrange_weights(fx);
      const Weights down = is_spline ? quintic_weights(fy) : lagrange_weights(fy);
      value = weighted_sum(base - 2 * image.stride - 2, image.stride, at, across, down);
    } else {
      const V a = hn::GatherIndex(d, base, at), b = hn::GatherIndex(d, base + 1, at);
      const V e = hn::GatherIndex(d, base + image.stride, at),
              f = hn::GatherIndex(d, base + image.stride + 1, at);
      const V top = hn::MulAdd(fx, hn::Sub(b, a), a), bottom = hn::MulAdd(fx, hn::Sub(f, e), e);
      value = hn::MulAdd(fy, hn::Sub(bottom, top), top);
    }
    V counts = hn::IfThenElseZero(is_inside, c(1));
    if (mask) {
      const auto half = hn::ConvertTo(di, hn::Floor(hn::Add(x, c(0.5))));
      const auto row = hn::ConvertTo(di, hn::Floor(hn::Add(y, c(0.5))));
      counts =
          hn::Mul(counts, hn::GatherIndex(d, mask, hn::Add(hn::Mul(row, hn::Set(di, image.width)), half)));
    }
    hn::StoreU(hn::Add(value, c(image.offset)), d, values + k);
    hn::StoreU(counts, d, inside + k);
  }
  for (std::size_t k = 0; k < PixelList::kBlock; ++k)
    if (begin + k >= static_cast<std::size_t>(pixels.count)) inside[k] = 0;
}

void sample_any(const SampleImage& image, const pose::Warp& warp, const PixelList& pixels, std::size_t begin,
                float* values, float* inside) {
  switch (image.sampling) {
    case Sampling::bilinear:
      return sample_block<Sampling::bilinear>(image, warp, pixels, begin, values, inside);
    case Sampling::lagrange:
      return sample_block<Sampling::lagrange>(image, warp, pixels, begin, values, inside);
    case Sampling::quintic:
      return sample_block<Sampling::quintic>(image, warp, pixels, begin, values, inside);
  }
}

void add_products_block(const PixelList& pixels, std::size_t begin, const float* HWY_RESTRICT values,
                        const float* HWY_RESTRICT weights, double* HWY_RESTRICT products) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  constexpr int kBlock = PixelList::kBlock;
  HWY_ALIGN float terms[pose::kTerms][kBlock];
  for (int k = 0; k < kBlock; k += lanes) {
    const std::size_t at = begin + k;
    const V xi = hn::LoadU(d, pixels.xi.data() + at), eta = hn::LoadU(d, pixels.eta.data() + at);
    const V tx = hn::LoadU(d, pixels.tx.data() + at), ty = hn::LoadU(d, pixels.ty.data() + at);
    hn::Store(tx, d, terms[0] + k);
    hn::Store(ty, d, terms[1] + k);
    hn::Store(hn::Mul(xi, tx), d, terms[2] + k);
    hn::Store(hn::Mul(eta, tx), d, terms[3] + k);
    hn::Store(hn::Mul(xi, ty), d, terms[4] + k);
    hn::Store(hn::Mul(eta, ty), d, terms[5] + k);
    hn::Store(hn::LoadU(d, pixels.t.data() + at), d, terms[6] + k);
    hn::Store(hn::Set(d, 1.0F), d, terms[7] + k);
    hn::Store(hn::LoadU(d, values + k), d, terms[8] + k);
  }
  HWY_ALIGN float weighted[pose::kTerms][kBlock];
  for (int i = 0; i < pose::kTerms; ++i)
    for (int k = 0; k < kBlock; k += lanes)
      hn::Store(hn::Mul(hn::Load(d, terms[i] + k), hn::LoadU(d, weights + k)), d, weighted[i] + k);
  constexpr int kTile = 3;  // products of so many terms by so many: their sums fit into registers
  static_assert(pose::kTerms % kTile == 0);
  for (int i = 0; i < pose::kTerms; i += kTile)
    for (int j = i; j < pose::kTerms; j += kTile) {
      V sums[kTile][kTile];
      for (auto& row : sums)
        for (V& sum : row) sum = hn::Zero(d);
      for (int k = 0; k < kBlock; k += lanes)
        for (int q = 0; q < kTile; ++q) {
          const V term = hn::Load(d, terms[j + q] + k);
          for (int p = 0; p < kTile; ++p)
            sums[p][q] = hn::MulAdd(hn::Load(d, weighted[i + p] + k), term, sums[p][q]);
        }
      for (int p = 0; p < kTile; ++p)
        for (int q = i == j ? p : 0; q < kTile; ++q)
          products[pose::product_index(i + p, j + q)] +=
              static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sums[p][q])));
    }
}

void add_scores_block(const float* HWY_RESTRICT t, const float* HWY_RESTRICT values,
                      const float* HWY_RESTRICT weights, ScoreSums& sums) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  V n = hn::Zero(d), st = n, tt = n, sv = n, vv = n, tv = n;
  for (int k = 0; k < PixelList::kBlock; k += lanes) {
    const V w = hn::LoadU(d, weights + k), a = hn::LoadU(d, t + k), b = hn::LoadU(d, values + k);
    const V wa = hn::Mul(w, a), wb = hn::Mul(w, b);
    n = hn::Add(n, w);
    st = hn::Add(st, wa);
    sv = hn::Add(sv, wb);
    tt = hn::MulAdd(wa, a, tt);
    vv = hn::MulAdd(wb, b, vv);
    tv = hn::MulAdd(wa, b, tv);
  }
  const auto total = [&](V v) HWY_ATTR { return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, v))); };
  sums.n += total(n), sums.t += total(st), sums.tt += total(tt);
  sums.v += total(sv), sums.vv += total(vv), sums.tv += total(tv);
}

void weight_any(const PixelList& pixels, std::size_t begin, const WeightRule& rule,
                const float* HWY_RESTRICT values, const float* HWY_RESTRICT inside,
                float* HWY_RESTRICT weights) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const V gain = hn::Set(d, rule.gain), offset = hn::Set(d, rule.offset), one = hn::Set(d, 1.0F);
  const V one_limit = hn::Set(d, 1 / rule.limit);
  for (std::size_t k = 0; k < PixelList::kBlock; k += lanes) {
    const V model = hn::MulAdd(gain, hn::LoadU(d, pixels.t.data() + begin + k), offset);
    const V q = hn::Mul(hn::Sub(hn::LoadU(d, values + k), model), one_limit);
    const V rest = hn::Max(hn::NegMulAdd(q, q, one), hn::Zero(d));
    hn::StoreU(hn::Mul(hn::LoadU(d, inside + k), hn::Mul(rest, rest)), d, weights + k);
  }
}

void weighted_products_any(const WeightedRows& of, int rows, int columns, double* HWY_RESTRICT products) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  for (int a = 0; a < rows; ++a) {
    const float* left = of.first + a * of.stride;
    for (int b = 0; b < columns; ++b) {
      double& product = products[a * columns + b];
      if (b < a) {
        product = products[b * columns + a];
        continue;
      }
      const float* right = of.first + b * of.stride;
      V sum = hn::Zero(d);
      for (int k = 0; k < of.count; k += lanes)
        sum = hn::MulAdd(hn::Mul(hn::LoadU(d, of.weights + k), hn::LoadU(d, left + k)),
                         hn::LoadU(d, right + k), sum);
      product = static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
    }
  }
}

void add_squared_products_any(const WeightedRows& of, int rows, const float* HWY_RESTRICT coefficients,
                              int pairs, double* HWY_RESTRICT products, double* HWY_RESTRICT differences) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const V half = hn::Set(d, 0.5F);
  for (int pair = 0; pair < pairs; ++pair) {
    const float *of_a = coefficients + pair * rows, *of_b = of_a + pairs * rows;
    V product = hn::Zero(d), difference = hn::Zero(d);
    for (int k = 0; k < of.count; k += lanes) {
      V a = hn::Zero(d), b = hn::Zero(d);
      for (int row = 0; row < rows; ++row) {
        const V value = hn::LoadU(d, of.first + row * of.stride + k);
        a = hn::MulAdd(hn::Set(d, of_a[row]), value, a), b = hn::MulAdd(hn::Set(d, of_b[row]), value, b);
      }
      const V weight = hn::LoadU(d, of.weights + k);
      const V both = hn::Mul(weight, hn::Mul(a, b));
      const V apart = hn::Mul(hn::Mul(half, weight), hn::Sub(hn::Mul(a, a), hn::Mul(b, b)));
      product = hn::MulAdd(both, both, product), difference = hn::MulAdd(apart, apart, difference);
    }
    products[pair] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, product)));
    differences[pair] += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, difference)));
  }
}

/// Sums of bytes are exact in 16 bits; floats are summed as floats.
template <typename T, typename S>
void halve_rows_of(const T* const* rows, int width, S* HWY_RESTRICT columns, float* HWY_RESTRICT out) {
  const D d;
  const hn::Rebind<S, D> ds;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const auto low_pass = [&](auto a, auto b, auto c, auto e) HWY_ATTR {
    return hn::Add(hn::Add(a, e), hn::Mul(hn::Set(ds, S{3}), hn::Add(b, c)));
  };
  const auto load = [&](const T* from) HWY_ATTR {
    if constexpr (std::is_same_v<T, S>)
      return hn::LoadU(ds, from);
    else
      return hn::PromoteTo(ds, hn::LoadU(hn::Rebind<T, D>(), from));
  };
  S* middle = columns + 1;
  int x = 0;
  for (; x + lanes <= width; x += lanes)
    hn::StoreU(low_pass(load(rows[0] + x), load(rows[1] + x), load(rows[2] + x), load(rows[3] + x)), ds,
               middle + x);
  for (; x < width; ++x)
    middle[x] = static_cast<S>(S(rows[0][x]) + S(rows[3][x]) + S{3} * (S(rows[1][x]) + S(rows[2][x])));
  columns[0] = middle[0];
  middle[width] = middle[width - 1];
  constexpr float kNorm = 1.0F / 64;
  for (x = 0; x + lanes <= width / 2 - 1; x += lanes) {  // the last vector would end behind the columns
    decltype(hn::Zero(ds)) a, b, c, e;
    hn::LoadInterleaved2(ds, columns + 2 * x, a, b);
    hn::LoadInterleaved2(ds, columns + 2 * x + 2, c, e);
    const auto sum = low_pass(a, b, c, e);
    if constexpr (std::is_same_v<S, float>)
      hn::StoreU(hn::Mul(hn::Set(d, kNorm), sum), d, out + x);
    else
      hn::StoreU(hn::Mul(hn::Set(d, kNorm), hn::ConvertTo(d, hn::PromoteTo(DI(), sum))), d, out + x);
  }
  for (; x < width / 2; ++x) {
    const S* p = columns + 2 * x;
    out[x] = kNorm * static_cast<float>(S(p[0] + p[3]) + S{3} * S(p[1] + p[2]));
  }
}

void halve_bytes(const std::uint8_t* const* rows, int width, std::uint16_t* columns, float* out) {
  halve_rows_of<std::uint8_t, std::uint16_t>(rows, width, columns, out);
}
void halve_floats(const float* const* rows, int width, float* columns, float* out) {
  halve_rows_of<float, float>(rows, width, columns, out);
}

/// Scores of patterns inside the image: window sums follow from sums of rows.
template <int kVectors>
void correlate_whole(const CoarseImage& image, const CoarsePattern& pattern, std::ptrdiff_t at,
                     const CoarseRules& rules, float* HWY_RESTRICT scores) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  constexpr int kSums = 3;  // of products, grey values and their squares
  V all[kSums][kVectors], of_side[CoarsePattern::kSides][kSums][kVectors];
  for (int q = 0; q < kSums; ++q)
    for (int v = 0; v < kVectors; ++v) {
      all[q][v] = hn::Zero(d);
      for (auto& side : of_side) side[q][v] = hn::Zero(d);
    }
  const float* values = image.values.data() + at;
  const float *sum = image.sum.data() + at, *square = image.sum_squares.data() + at;
  for (int block = 0; block < CoarsePattern::kBlocks; ++block) {
    V sums[kSums][kVectors];
    for (auto& row : sums)
      for (V& one : row) one = hn::Zero(d);
    for (std::size_t k = pattern.element_begin[block]; k < pattern.element_begin[block + 1]; ++k) {
      const CoarsePattern::Element& e = pattern.elements[k];
      const V t = hn::Set(d, e.t);
      for (int v = 0; v < kVectors; ++v)
        sums[0][v] = hn::MulAdd(t, hn::LoadU(d, values + e.offset + v * lanes), sums[0][v]);
    }
    for (std::size_t k = pattern.run_begin[block]; k < pattern.run_begin[block + 1]; ++k) {
      const CoarsePattern::Run& r = pattern.runs[k];
      for (int v = 0; v < kVectors; ++v) {
        const auto part = [&](const float* from) HWY_ATTR {
          return hn::Sub(hn::LoadU(d, from + r.end + v * lanes), hn::LoadU(d, from + r.first + v * lanes));
        };
        sums[1][v] = hn::Add(sums[1][v], part(sum));
        sums[2][v] = hn::Add(sums[2][v], part(square));
      }
    }
    for (int q = 0; q < kSums; ++q)
      for (int v = 0; v < kVectors; ++v) {
        all[q][v] = hn::Add(all[q][v], sums[q][v]);
        for (int side = 0; side < CoarsePattern::kSides; ++side)
          if (CoarsePattern::is_at(block, side))
            of_side[side][q][v] = hn::Add(of_side[side][q][v], sums[q][v]);
      }
  }
  for (int v = 0; v < kVectors; ++v) {
    V best = hn::Set(d, -1.0F);
    for (int p = 0; p <= CoarsePattern::kSides; ++p) {
      const CoarsePattern::Part& part = pattern.parts[p];
      if (part.weight == 0) continue;
      const auto of_part = [&](int q) HWY_ATTR {
        return p == 0 ? all[q][v] : hn::Sub(all[q][v], of_side[p - 1][q][v]);
      };
      const V values_sum = of_part(1);
      const V variation = hn::NegMulAdd(hn::Mul(values_sum, values_sum), hn::Set(d, 1 / part.n), of_part(2));
      const V least = hn::Set(d, rules.least_variance * part.n);
      const V both = hn::NegMulAdd(values_sum, hn::Set(d, part.t / part.n), of_part(0));
      V score = hn::Div(hn::Mul(hn::Set(d, part.weight), both),
                        hn::Sqrt(hn::Mul(hn::Set(d, part.tt), hn::Max(variation, least))));
      if (rules.any_polarity) score = hn::Abs(score);
      best = hn::Max(best, score);
    }
    hn::StoreU(best, d, scores + v * lanes);
  }
}

/// Scores of the visible pixels.
void correlate_part(const CoarseImage& image, const CoarsePattern& pattern, std::ptrdiff_t at,
                    const CoarseRules& rules, float* HWY_RESTRICT scores) {
  const D d;
  enum { kN, kT, kTT, kV, kVV, kTV, kSums };
  V all[kSums], of_side[CoarsePattern::kSides][kSums];
  for (V& one : all) one = hn::Zero(d);
  for (auto& side : of_side)
    for (V& one : side) one = hn::Zero(d);
  for (int block = 0; block < CoarsePattern::kBlocks; ++block) {
    V n = hn::Zero(d), st = n, tt = n, sv = n, vv = n, tv = n;
    for (std::size_t k = pattern.element_begin[block]; k < pattern.element_begin[block + 1]; ++k) {
      const CoarsePattern::Element& e = pattern.elements[k];
      const V t = hn::Set(d, e.t);
      const V counted = hn::Mul(t, hn::LoadU(d, image.counts.data() + at + e.offset));
      st = hn::Add(st, counted);
      tt = hn::MulAdd(t, counted, tt);
      tv = hn::MulAdd(t, hn::LoadU(d, image.values.data() + at + e.offset), tv);
    }
    for (std::size_t k = pattern.run_begin[block]; k < pattern.run_begin[block + 1]; ++k) {
      const CoarsePattern::Run& r = pattern.runs[k];
      const auto part = [&](const std::vector<float>& from) HWY_ATTR {
        return hn::Sub(hn::LoadU(d, from.data() + at + r.end), hn::LoadU(d, from.data() + at + r.first));
      };
      n = hn::Add(n, part(image.number));
      sv = hn::Add(sv, part(image.sum));
      vv = hn::Add(vv, part(image.sum_squares));
    }
    const V sums[kSums] = {n, st, tt, sv, vv, tv};
    for (int q = 0; q < kSums; ++q) {
      all[q] = hn::Add(all[q], sums[q]);
      for (int side = 0; side < CoarsePattern::kSides; ++side)
        if (CoarsePattern::is_at(block, side)) of_side[side][q] = hn::Add(of_side[side][q], sums[q]);
    }
  }
  // The visible part must have a good part of the template's contrast.
  const V contrast = hn::Set(
      d, CoarsePattern::kLeastContrast * static_cast<float>(pattern.energy / pattern.elements.size()));
  V best = hn::Zero(d);
  for (int p = 0; p <= CoarsePattern::kSides; ++p) {
    const CoarsePattern::Part& part = pattern.parts[p];
    if (part.weight == 0) continue;
    V sums[kSums];
    for (int q = 0; q < kSums; ++q) sums[q] = p == 0 ? all[q] : hn::Sub(all[q], of_side[p - 1][q]);
    const V n = sums[kN], one_n = hn::Div(hn::Set(d, 1.0F), hn::Max(n, hn::Set(d, 1.0F)));
    const V of_t = hn::NegMulAdd(hn::Mul(sums[kT], sums[kT]), one_n, sums[kTT]);
    const V of_v = hn::NegMulAdd(hn::Mul(sums[kV], sums[kV]), one_n, sums[kVV]);
    const V both = hn::NegMulAdd(hn::Mul(sums[kT], sums[kV]), one_n, sums[kTV]);
    const V least_v = hn::Mul(hn::Set(d, rules.least_variance), n);
    const V visible = hn::Set(d, CoarseRules::kLeastVisible * static_cast<float>(pattern.elements.size()));
    const auto valid = hn::And(hn::Ge(n, visible), hn::Ge(of_t, hn::Mul(contrast, n)));
    const V power = hn::Max(hn::Mul(of_t, hn::Max(of_v, least_v)), hn::Set(d, 1e-20F));
    V score = hn::Div(hn::Mul(hn::Set(d, part.weight), both), hn::Sqrt(power));
    if (rules.any_polarity) score = hn::Abs(score);
    best = hn::Max(best, hn::IfThenElseZero(valid, score));
  }
  hn::StoreU(best, d, scores);
}

void correlate_row_any(const CoarseImage& image, const CoarsePattern& pattern, int x, int y, int n,
                       const CoarseRules& rules, float* scores) {
  const D d;
  const int lanes = static_cast<int>(hn::Lanes(d));
  const bool inside_y = y + pattern.top >= 0 && y + pattern.bottom < image.height && !image.has_mask;
  const auto is_whole = [&](int first, int count) {
    return inside_y && first + pattern.left >= 0 && first + count - 1 + pattern.right < image.width;
  };
  constexpr int kVectors = 4;
  int i = 0;
  while (i < n) {
    const std::ptrdiff_t at = image.place(x + i, y);
    if (i + kVectors * lanes <= n && is_whole(x + i, kVectors * lanes)) {
      correlate_whole<kVectors>(image, pattern, at, rules, scores + i);
      i += kVectors * lanes;
    } else if (is_whole(x + i, lanes)) {
      correlate_whole<1>(image, pattern, at, rules, scores + i);
      i += lanes;
    } else {
      correlate_part(image, pattern, at, rules, scores + i);
      i += lanes;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace dic::match
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace dic::match {
HWY_EXPORT(sample_any);
HWY_EXPORT(add_products_block);
HWY_EXPORT(add_scores_block);
HWY_EXPORT(weight_any);
HWY_EXPORT(weighted_products_any);
HWY_EXPORT(add_squared_products_any);
HWY_EXPORT(correlate_row_any);
HWY_EXPORT(halve_bytes);
HWY_EXPORT(halve_floats);

void sample(const SampleImage& image, const pose::Warp& warp, const PixelList& pixels, std::size_t begin,
            float* values, float* inside) {
  HWY_DYNAMIC_DISPATCH(sample_any)(image, warp, pixels, begin, values, inside);
}
void add_products(const PixelList& pixels, std::size_t begin, const float* values, const float* weights,
                  double* products) {
  HWY_DYNAMIC_DISPATCH(add_products_block)(pixels, begin, values, weights, products);
}
void add_scores(const float* t, const float* values, const float* weights, ScoreSums& sums) {
  HWY_DYNAMIC_DISPATCH(add_scores_block)(t, values, weights, sums);
}
void weight(const PixelList& pixels, std::size_t begin, const WeightRule& rule, const float* values,
            const float* inside, float* weights) {
  HWY_DYNAMIC_DISPATCH(weight_any)(pixels, begin, rule, values, inside, weights);
}
void weighted_products(const WeightedRows& of, int rows, int columns, double* products) {
  HWY_DYNAMIC_DISPATCH(weighted_products_any)(of, rows, columns, products);
}
void add_squared_products(const WeightedRows& of, int rows, const float* coefficients, int pairs,
                          double* products, double* differences) {
  HWY_DYNAMIC_DISPATCH(add_squared_products_any)(of, rows, coefficients, pairs, products, differences);
}
void correlate_row(const CoarseImage& image, const CoarsePattern& pattern, int x, int y, int n,
                   const CoarseRules& rules, float* scores) {
  HWY_DYNAMIC_DISPATCH(correlate_row_any)(image, pattern, x, y, n, rules, scores);
}

void halve_rows(const std::array<const std::uint8_t*, 4>& rows, int width, std::uint16_t* columns,
                float* out) {
  HWY_DYNAMIC_DISPATCH(halve_bytes)(rows.data(), width, columns, out);
}
void halve_rows(const std::array<const float*, 4>& rows, int width, float* columns, float* out) {
  HWY_DYNAMIC_DISPATCH(halve_floats)(rows.data(), width, columns, out);
}

CoarseLine line_at(const CoarseImage& image, const CoarsePattern& pattern, int x, int y,
                   const CoarseRules& rules) {
  ScoreSums blocks[CoarsePattern::kBlocks];
  const std::ptrdiff_t at = image.place(x, y);
  for (int block = 0; block < CoarsePattern::kBlocks; ++block)
    for (std::size_t k = pattern.element_begin[block]; k < pattern.element_begin[block + 1]; ++k) {
      const double t = pattern.elements[k].t;
      const std::ptrdiff_t place = at + pattern.elements[k].offset;
      const double counts = image.counts[place], v = image.values[place];
      ScoreSums& s = blocks[block];
      s.n += counts, s.t += counts * t, s.tt += counts * t * t;
      s.v += v, s.vv += v * v, s.tv += t * v;
    }
  // A fit of all blocks converges from farther away, and finds what is hidden itself unless that is much.
  constexpr double kNearlyAsWell = 0.8;
  CoarseLine line;
  double best = 0, of_all = 0;
  for (int p = 0; p <= CoarsePattern::kSides; ++p) {
    ScoreSums s;
    for (int block = 0; block < CoarsePattern::kBlocks; ++block) {
      if (!CoarsePattern::has(p, block)) continue;
      const ScoreSums& b = blocks[block];
      s.n += b.n, s.t += b.t, s.tt += b.tt, s.v += b.v, s.vv += b.vv, s.tv += b.tv;
    }
    if (s.n < 2 || pattern.parts[p].weight == 0) continue;
    const double tt = s.tt - s.t * s.t / s.n, tv = s.tv - s.t * s.v / s.n;
    const double vv = std::max(s.vv - s.v * s.v / s.n, rules.least_variance * s.n);
    double score = tt > 0 && vv > 0 ? tv / std::sqrt(tt * vv) : 0;
    if (rules.any_polarity) score = std::abs(score);
    if (p == 0) of_all = score;
    if (!(score > best)) continue;
    best = score;
    const double gain = tv / tt;
    line = {gain, (s.v - gain * s.t) / s.n + image.mean - gain * pattern.mean};
  }
  return of_all < kNearlyAsWell * best ? line : CoarseLine{};
}

}  // namespace dic::match
#endif
