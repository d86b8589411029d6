#pragma once

#include <dic/correlate.hpp>
#include <limits>
#include <vector>

#include "correlate/cpu/kernel.hpp"

/// Turns sums of products into scores: reference sums, sums over windows, normalization. Larger scores are
/// better (ssd: negated).
namespace dic::correlate {

constexpr float kUndefined = -std::numeric_limits<float>::infinity();
/// Largest error of a score from inexact sums; for ssd it is relative. A score that may be off by more
/// becomes NaN and is recomputed exactly, unless upper bounds are wanted.
constexpr double kScoreTolerance = 2e-6;
/// Amount that is added to an upper bound which stands for a score below CorrelateRequest::least_score, so
/// that it can be told from a score.
constexpr float kBoundMark = -4;
inline bool is_marked_bound(float score) { return score < -2 && score > kUndefined; }

/// Rows begin .. end - 1 of a mask's column, which are all inside.
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
  Block<std::uint8_t> mask;  ///< mask of the reference; data may be null
  Size size;                 ///< size of the reference
  int ny = 0, nx = 0;
  ReferenceSums<T> reference;
  Sum<T> offset = 0;                      ///< value that was subtracted from the reference in `products`
  const Sum<T>* products = nullptr;       ///< sums of products, ny x nx
  const std::stop_token* stop = nullptr;  ///< ends the scoring of a tile early, by Cancelled
  double error = 0;                       ///< error bound of a sum of products
  bool upper_bounds = false;              ///< true: scores become as high as the error allows
  float least_score = kUndefined;  ///< uncertain scores (zncc, ncc) surely below it become marked bounds
  float* scores = nullptr;
  std::ptrdiff_t score_stride = 0;  ///< elements from row to row of the scores
};

/// The functions of this machine's best SIMD target for elements of type T.
template <typename T>
struct Scoring {
  ReferenceSums<T> (*reference_sums)(const Block<T>& reference, const Block<std::uint8_t>& mask);
  void (*score)(const ScoreTile<T>& tile, ScoringScratch& scratch);
  /// Adds offset * (sum of the window over the elements that the mask includes) to `products`, which makes
  /// them sums for the reference without an offset.
  void (*add_offset)(const ScoreTile<T>& tile, ScoringScratch& scratch, Sum<T>* products);
};
template <typename T>
const Scoring<T>& scoring();

}  // namespace dic::correlate
