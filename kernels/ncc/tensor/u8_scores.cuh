#pragma once

#include "ncc/scoring/scoring.cuh"
#include "ncc/scoring/window_statistics.cuh"
#include "ncc/tensor/u8_sums.cuh"

/// Scores of 8-bit images from exact sums of products.
namespace dic::kernels {

/// Values of a reference of n elements that scores need. Zncc is
///
///     n (sum (a - m) b - rest * sum b) / roots of both variations,    rest = mean of a - m
///
/// where m is the rounded mean of a. The first sum is an exact integer. Its rounding to float is as small as
/// the covariance or `rest` are: the error of the score is at most 2^-21 + 2^-25 |rest| mean(b) / (deviation
/// of a * deviation of b), below 5e-6 for deviations of at least one grey level.
template <Criterion criterion>
struct Reference8 {
  int minus_mean = 0;
  Word squares;
  float weight;  ///< weight of a defined shift: the rest, or 1; no_score without contrast
  float scale;   ///< score() times this is the score; rounding may take it above 1

  __device__ Reference8(int n, const ReferenceSums& sums) : squares(sums.squares), weight(1), scale(1) {
    if constexpr (criterion == Criterion::ssd) return;
    auto variation = static_cast<std::int64_t>(squares);
    if constexpr (criterion == Criterion::zncc) {
      const auto sum = static_cast<int>(sums.sum);
      const float inverse_n = inverse(static_cast<float>(n));
      minus_mean = -__float2int_rn(static_cast<float>(sum) * inverse_n);
      const auto rest = static_cast<float>(sum + n * minus_mean);
      weight = rest * inverse_n;
      weight = fmaf(fmaf(-static_cast<float>(n), weight, rest), inverse_n, weight);
      variation = n * variation - std::int64_t{sum} * sum;
      scale = static_cast<float>(n);
    }
    scale *= inverse_root(static_cast<float>(variation));
    if (variation == 0) weight = no_score;
  }
  /// Score of a shift, not yet scaled. `weight`: weight of the reference, or no_score.
  __device__ float score(Word product, const WindowStatistics& window, float weight) const {
    if constexpr (criterion == Criterion::ssd)
      return -weight * static_cast<float>(squares + static_cast<Word>(window.squares()) - 2 * product);
    if constexpr (criterion == Criterion::ncc)
      return static_cast<float>(product) * (weight * window.inverse_root());
    const int sum = static_cast<int>(window.sum());
    const auto less_mean = static_cast<float>(static_cast<int>(product) + minus_mean * sum);
    return (less_mean - weight * static_cast<float>(sum)) * window.inverse_root();
  }
};

}  // namespace dic::kernels
