#pragma once

#include <limits>

#include "ncc/job_view.cuh"
#include "ncc/scoring/moments.cuh"

/// Scores of shifts and peaks of surfaces, by the rules of <dic/correlate.hpp>.
namespace dic::kernels {

/// Score of a shift that is not defined or has no contrast.
constexpr float undefined = -std::numeric_limits<float>::infinity();
/// Undefined score, or score without contrast: NaN, which fmaxf() ignores, and which 0 / 0 gives anyway.
constexpr float no_score = std::numeric_limits<float>::quiet_NaN();
constexpr float largest_float = std::numeric_limits<float>::max();
/// Index larger than those of all shifts.
constexpr int after_all_shifts = std::numeric_limits<int>::max();

/// 1 / sqrt(value) to float rounding, for normal values only.
__device__ inline float inverse_root(float value) {
  float root;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
  return root;
}
/// 1 / value to some units in the last place, for normal values only.
__device__ inline float inverse(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
__device__ inline double inverse_root(double value) { return rsqrt(value); }

/// covariance / sqrt(va vb), or `undefined` if vb is zero.
template <typename Value>
__device__ float normalized(Value covariance, Value inverse_root_of_va, Value vb) {
  const Value value = covariance * (inverse_root_of_va * inverse_root(vb));
  return vb > 0 ? static_cast<float>(min(max(value, Value{-1}), Value{1})) : undefined;
}

/// Score of a shift, larger is better; `undefined` if there is no contrast (zncc) or energy (ncc).
template <typename T, typename Sum>
__device__ float score(Criterion criterion, std::int64_t n, Sum product, const Moments<T>& a,
                       const Moments<T>& b) {
  if (criterion == Criterion::ssd) {
    const auto ssd = static_cast<Real<T>>(static_cast<Wide<T>>(a.squares) + static_cast<Wide<T>>(b.squares) -
                                          2 * static_cast<Wide<T>>(product));
    return -static_cast<float>(max(ssd, Real<T>{0}));
  }
  const bool zero_mean = criterion == Criterion::zncc;
  const Real<T> covariance = zero_mean ? centred<T>(n, product, a.sum, b.sum) : static_cast<Real<T>>(product);
  const Real<T> va = zero_mean ? a.variation : static_cast<Real<T>>(a.squares);
  const Real<T> vb = zero_mean ? b.variation : static_cast<Real<T>>(b.squares);
  return va > 0 ? normalized(covariance, inverse_root(va), vb) : undefined;
}

/// Calls body.operator()<criterion>().
template <typename Body>
__device__ void visit_criterion(Criterion criterion, Body&& body) {
  switch (criterion) {
    case Criterion::zncc:
      return body.template operator()<Criterion::zncc>();
    case Criterion::ncc:
      return body.template operator()<Criterion::ncc>();
    default:
      return body.template operator()<Criterion::ssd>();
  }
}

/// Value of a surface for a score, which rounding may have taken beyond the range of zncc and ncc.
__device__ inline float value_of(float score, Criterion criterion) {
  const bool is_ssd = criterion == Criterion::ssd;
  const float most = is_ssd ? largest_float : 1.0f;
  const float value = fminf(fmaxf(is_ssd ? -score : score, -most), most);
  return !is_ssd && score == undefined ? 0.0f : value;
}

/// The best score seen; ties go to the lower index.
struct Best {
  float score;
  int index;  ///< -1: none

  __device__ static Best none() { return {undefined, -1}; }
  __device__ void take(const Best& other) {
    const bool better = other.score > score || (other.score == score && other.index < index);
    if (better && other.score > undefined) *this = other;
  }
};

/// Maps the bits of a float to an integer so that the integers have the order of the floats. The map is its
/// own inverse.
__device__ inline int order_preserving(int bits) { return bits ^ (bits >> 31 & 0x7fffffff); }

/// Largest value of a warp; none may be NaN.
__device__ inline float max_of_warp(float value) {
  const int order = order_preserving(__float_as_int(value + 0.0f));  // + 0 removes negative zeros
  return __int_as_float(order_preserving(__reduce_max_sync(all_lanes, order)));
}

__device__ inline Best best_of_warp(const Best& best) {
  const float highest = max_of_warp(best.score);
  const int index = best.score == highest ? best.index : after_all_shifts;
  return {highest, __reduce_min_sync(all_lanes, index)};
}

constexpr int most_warps_of_block = 8;

/// Barrier for a block; one_warp: the block is known to be one warp.
template <bool one_warp>
__device__ void wait_for_block() {
  if constexpr (one_warp)
    __syncwarp();
  else
    __syncthreads();
}

/// The best of the warps of a block, returned in every thread; all threads of a warp must have its best.
__device__ inline Best best_of_warps(Best best) {
  __shared__ Best by_warp[most_warps_of_block];
  const int warps = blockDim.x / warp_size;
  if (warps == 1) return best;
  if (threadIdx.x % warp_size == 0) by_warp[threadIdx.x / warp_size] = best;
  __syncthreads();
#pragma unroll 1
  for (int w = 0; w < warps; ++w) best.take(by_warp[w]);
  __syncthreads();  // by_warp is used again
  return best;
}
/// The best of all threads of a block of whole warps, returned in every thread.
__device__ inline Best best_of_block(const Best& best) { return best_of_warps(best_of_warp(best)); }

/// True if shift `index` of a row-major surface is more than 2 px away from shift `peak` in x or y.
__device__ inline bool is_far(int index, int peak, int width) {
  return abs(index % width - peak % width) > 2 || abs(index / width - peak / width) > 2;
}

/// The best shift of a surface.
struct BestShift {
  float score;  ///< `undefined` if there is none
  int x, y;
};

/// Stores the Peak of a surface; score_at(x, y) returns the scores of the neighbours. For one warp, of which
/// each lane (`lane`) stores a word.
template <typename ScoreAt>
__device__ void store_peak(const JobView& view, Criterion criterion, const BestShift& best, float second,
                           Peak* out, ScoreAt&& score_at, int lane = threadIdx.x % warp_size) {
  constexpr int word = sizeof(int), words = sizeof(Peak) / word, flags = offsetof(Peak, found) / word,
                first_neighbour = offsetof(Peak, neighbourhood) / word;
  static_assert(offsetof(Peak, dx) == 0 && offsetof(Peak, dy) == word && offsetof(Peak, score) == 2 * word &&
                offsetof(Peak, at_border) == offsetof(Peak, found) + 1 &&
                offsetof(Peak, second_score) == (flags + 1) * word && words == first_neighbour + 9);
  const bool found = best.score > undefined;
  const unsigned neighbour_lane = lane - first_neighbour;
  const unsigned neighbour =
      neighbour_lane < 9 ? neighbour_lane : 4;  // lanes that store no neighbour load the peak itself
  const int x = best.x - 1 + static_cast<int>(neighbour % 3),
            y = best.y - 1 + static_cast<int>(neighbour / 3);
  const auto is_below = [](int i, int count) {
    return static_cast<unsigned>(i) < static_cast<unsigned>(count);
  };
  const bool exists = found && is_below(x, view.nx) && is_below(y, view.ny);
  const bool at_border = !is_below(best.x - 1, view.nx - 2) || !is_below(best.y - 1, view.ny - 2);
  float score = exists ? score_at(x, y) : undefined;
  if (!(score > undefined)) score = best.score;
  if (lane == flags + 1) score = second;
  int value = __float_as_int(score > undefined ? value_of(score, criterion) : 0.0f);
  if (lane == 0) value = view.dx_min + best.x;
  if (lane == 1) value = view.dy_min + best.y;
  if (lane == flags) value = 1 + at_border * 256;
  if (lane < words) reinterpret_cast<int*>(out)[lane] = found ? value : 0;
}

/// Stores the Peak of a surface in memory with rows `stride` apart; indices count in nx columns.
__device__ inline void store_peak(const JobView& view, Criterion criterion, const float* surface, int stride,
                                  const Best& best, const Best& second, Peak* out) {
  store_peak(view, criterion, {best.score, best.index % view.nx, best.index / view.nx}, second.score, out,
             [&](int x, int y) { return surface[std::int64_t{y} * stride + x]; });
}

}  // namespace dic::kernels
