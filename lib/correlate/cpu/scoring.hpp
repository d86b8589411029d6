#pragma once

#include <dic/correlate.hpp>
#include <limits>
#include <vector>

#include "correlate/cpu/kernel.hpp"

/// From sums of products to scores: reference sums, sums over windows, normalization, peaks.
/// Scores are larger-is-better (ssd: negated).
namespace dic::correlate {

constexpr float kUndefined = -std::numeric_limits<float>::infinity();
/// Scores from inexact sums that may be off by more than this are left for exact recomputation, as NaN, where
/// they are not to be upper bounds. For ssd the tolerance is relative.
constexpr double kScoreTolerance = 2e-6;

/// Rows begin .. end - 1 of a mask's column, all of which count.
struct MaskRun {
  int column = 0, begin = 0, end = 0;
};

/// Memory that scoring reuses from tile to tile.
struct ScoringScratch {
  std::vector<double> memory, rows;
  std::vector<MaskRun> runs;
};

/// One tile of shifts whose sums of products are known.
template <typename T>
struct ScoreTile {
  Criterion criterion = Criterion::zncc;
  Block<T> window;           ///< size.height + ny - 1 rows, size.width + nx - 1 columns
  Block<std::uint8_t> mask;  ///< of the reference; data may be null
  Size size;                 ///< of the reference
  int ny = 0, nx = 0;
  ReferenceSums<T> reference;
  Sum<T> offset = 0;                 ///< that was subtracted from the reference in `products`
  const Sum<T>* products = nullptr;  ///< ny x nx
  double error = 0;                  ///< bound of the error of a product sum
  bool upper_bounds = false;         ///< scores as high as the error allows
  float* scores = nullptr;
  std::ptrdiff_t score_stride = 0;  ///< elements
};

/// The functions of this machine's best SIMD target for elements of type T.
template <typename T>
struct Scoring {
  ReferenceSums<T> (*reference_sums)(const Block<T>& reference, const Block<std::uint8_t>& mask);
  void (*score)(const ScoreTile<T>& tile, ScoringScratch& scratch);
  /// products += offset * (sum of the window over the elements that count): sums of the reference as it is.
  void (*add_offset)(const ScoreTile<T>& tile, ScoringScratch& scratch, Sum<T>* products);
};
template <typename T>
const Scoring<T>& scoring();

}  // namespace dic::correlate
