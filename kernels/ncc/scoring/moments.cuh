#pragma once

#include <cstdint>
#include <type_traits>

#include "common/launch.cuh"

/// Sums over the elements of a patch, and differences of large numbers: exact for integers, float64
/// otherwise.
namespace dic::kernels {

template <typename T>
constexpr bool is_exact = std::is_integral_v<T>;

/// Integer sums wrap modulo 2^64; sums of products of i32 beyond 2^63 are outside the stated range anyway.
template <typename T>
using MomentValue = std::conditional_t<is_exact<T>, std::int64_t, double>;

/// Type that holds n * sum(a * b) - sum(a) * sum(b) without rounding: below 2^63 for u8 with n up to 2^23.
template <typename T>
using Wide =
    std::conditional_t<!is_exact<T>, double, std::conditional_t<sizeof(T) == 1, std::int64_t, __int128>>;

/// Type of such a difference. The difference is rounded once: float is enough if it was exact.
template <typename T>
using Real = std::conditional_t<is_exact<T>, float, double>;

/// Difference n * product - sum_a * sum_b.
template <typename T, typename Product, typename SumA, typename SumB>
__device__ Real<T> centred(std::int64_t n, Product product, SumA sum_a, SumB sum_b) {
  return static_cast<Real<T>>(static_cast<Wide<T>>(n) * static_cast<Wide<T>>(product) -
                              static_cast<Wide<T>>(sum_a) * static_cast<Wide<T>>(sum_b));
}

/// Variations of floats below this fraction of all summed squares are rounding errors.
constexpr double rounding = 1e-13;

/// n * sum of squared deviations of float elements; 0 if only rounding is left. `summed`: all squares that
/// were ever added, including those that were subtracted again.
__device__ inline double variation_of(double n, double sum, double squares, double summed) {
  const double variation = n * squares - sum * sum;
  return variation > rounding * n * summed ? variation : 0;
}

/// Moments of n elements.
template <typename T>
struct Moments {
  MomentValue<T> sum, squares;
  Real<T> variation;  ///< n * sum of squared deviations from the mean; 0 = no contrast
};

/// Moments from sums of the elements less `origin` (0 for integers). `summed`: see variation_of.
template <typename T>
__device__ Moments<T> moments_of(std::int64_t n, MomentValue<T> sum, MomentValue<T> squares,
                                 MomentValue<T> summed, T origin) {
  if constexpr (is_exact<T>) {
    return {sum, squares, centred<T>(n, squares, sum, sum)};
  } else {
    const auto count = static_cast<double>(n), zero = static_cast<double>(origin);
    const double energy = squares + zero * (2 * sum + count * zero);
    const bool has_energy = energy > rounding * (summed + count * zero * zero);
    return {sum + count * zero, has_energy ? energy : 0, variation_of(count, sum, squares, summed)};
  }
}

/// Sums elements. Floats are summed relative to `origin`, one of them, so that the sums of a constant patch
/// are exact zeros.
template <typename T>
class MomentSums {
 public:
  __device__ explicit MomentSums(T origin) : origin_(is_exact<T> ? T{0} : origin) {}

  __device__ void add(T element) { add_weighted(element, 1); }
  /// Undoes add(), except for the rounding errors of floats.
  __device__ void remove(T element) { add_weighted(element, -1); }
  __device__ void sum_over_warp() {
    sum_ = warp_sum(sum_);
    squares_ = warp_sum(squares_);
    if constexpr (!is_exact<T>) summed_ = warp_sum(summed_);
  }

  __device__ Moments<T> moments(std::int64_t n) const {
    return moments_of<T>(n, sum_, squares_, summed_, origin_);
  }

 private:
  __device__ void add_weighted(T element, int weight) {
    const auto value = static_cast<MomentValue<T>>(element) - static_cast<MomentValue<T>>(origin_);
    sum_ += weight * value;
    squares_ += weight * (value * value);
    if constexpr (!is_exact<T>) summed_ += value * value;
  }

  T origin_;
  MomentValue<T> sum_ = 0, squares_ = 0;
  MomentValue<T> summed_ = 0;  ///< for floats: all squares that were added or removed
};

}  // namespace dic::kernels
