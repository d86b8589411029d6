#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <dic/shared/pose_fit.hpp>
#include <vector>

/// The inner loops of the pose search, compiled for every SIMD target.
namespace dic::match {

/// Pixels of a template at one level of its pyramid. Arrays are padded with zeros to whole blocks.
struct PixelList {
  static constexpr int kBlock = 256;  ///< pixels that the kernels take at a time
  int count = 0;
  double mean = 0;                        ///< grey value
  double squares = 0;                     ///< see pose::residual_limit()
  std::vector<float> xi, eta, t, tx, ty;  ///< position, grey value minus the mean, gradient

  std::size_t padded() const { return xi.size(); }
};

/// How grey values between pixels are computed.
enum class Sampling {
  bilinear,
  lagrange,  ///< polynomials of degree 5 through 6 x 6 pixels: as fast as a spline, without its filter
  quintic    ///< B-spline of degree 5; `SampleImage::values` are coefficients with a margin
};

/// The source of grey values.
struct SampleImage {
  const float* values = nullptr;  ///< pixel (0, 0), or its spline coefficient
  std::ptrdiff_t stride = 0;
  int width = 0, height = 0;
  Sampling sampling = Sampling::bilinear;
  float offset = 0;             ///< is added to every value
  const float* mask = nullptr;  ///< 1 = counts, packed, same size; none: every pixel counts
};

/// Grey values at the warped pixels `begin` .. begin + kBlock - 1, and 1 or 0: inside the image or not.
void sample(const SampleImage& image, const pose::Warp& warp, const PixelList& pixels, std::size_t begin,
            float* values, float* inside);

/// Adds products of the terms of one block, see pose::kProducts.
void add_products(const PixelList& pixels, std::size_t begin, const float* values, const float* weights,
                  double* products);

using ScoreSums = pose::ScoreSums;
/// Adds the sums of one block.
void add_scores(const float* t, const float* values, const float* weights, ScoreSums& sums);

/// The line image = gain * template + offset, and the residual from which pixels do not count.
struct WeightRule {
  float gain, offset, limit;
};
/// Weights of one block, see `sample`, by Tukey's biweight.
void weight(const PixelList& pixels, std::size_t begin, const WeightRule& rule, const float* values,
            const float* inside, float* weights);

/// Rows of values of the same pixels, and the pixels' weights.
struct WeightedRows {
  const float* first = nullptr;
  std::ptrdiff_t stride = 0;  ///< elements from row to row
  const float* weights = nullptr;
  int count = 0;  ///< of the pixels, a multiple of 64
};
/// Weighted sums of products over the pixels: of the first `rows` rows by the first `columns` rows,
/// row-major.
void weighted_products(const WeightedRows& of, int rows, int columns, double* products);
/// Adds sums over the pixels of (w a b)^2 and (w (a^2 - b^2) / 2)^2 for `pairs` pairs of combinations of the
/// rows. coefficients: `rows` of each a, then of each b.
void add_squared_products(const WeightedRows& of, int rows, const float* coefficients, int pairs,
                          double* products, double* differences);

/// One row of a reduced image from four rows of the image, low-passed by (1, 3, 3, 1) / 8 along both axes.
/// columns: width + 2 elements for scratch; out: width / 2 elements.
void halve_rows(const std::array<const std::uint8_t*, 4>& rows, int width, std::uint16_t* columns,
                float* out);
void halve_rows(const std::array<const float*, 4>& rows, int width, float* columns, float* out);

/// The image of the coarsest level with a margin in which nothing counts.
struct CoarseImage {
  int width = 0, height = 0, margin = 0;
  std::ptrdiff_t stride = 0;
  std::vector<float> values, squares, counts;   ///< grey value minus the mean, its square, 1 = counts
  std::vector<float> sum, sum_squares, number;  ///< of the pixels to the left that count, by row
  double mean = 0;                              ///< grey value
  double variance = 0;                          ///< mean square of `values`
  bool has_mask = false;                        ///< some pixels inside do not count

  std::ptrdiff_t place(int x, int y) const { return (y + margin) * stride + x + margin; }
};

/// The template at one pose of the coarsest level: pixels relative to its centre.
///
/// It consists of 3 x 3 blocks, so that what fits is found although something hides a side of the part: parts
/// of the pattern are all blocks, and all but those at the left, right, upper or lower side.
struct CoarsePattern {
  static constexpr int kBlocks = 9, kSides = 4;
  /// True if the block, counted by rows, lies at the side.
  static constexpr bool is_at(int block, int side) {
    return (side < 2 ? block % 3 : block / 3) == 2 * (side % 2);
  }
  /// True if a part has the block. Part 0 has all, part 1 + side those that do not lie at the side.
  static constexpr bool has(int part, int block) { return part == 0 || !is_at(block, part - 1); }
  struct Element {
    std::ptrdiff_t offset;
    float t;  ///< grey value minus the mean of the pattern
  };
  struct Run {
    std::ptrdiff_t first, end;  ///< offsets in the same row
  };
  /// Least mean square of the visible part, as a share of that of the pattern.
  static constexpr float kLeastContrast = 0.15F;
  struct Part {
    float n = 0, t = 0, tt = 0;  ///< number of pixels, sum of t, sum of squares of its deviations
    float weight = 0;            ///< factor of the score; 0: the part has too little contrast
  };
  std::vector<Element> elements;  ///< by block
  std::vector<Run> runs;          ///< by block
  std::array<std::size_t, kBlocks + 1> element_begin{}, run_begin{};
  std::array<Part, 1 + kSides> parts;            ///< all blocks, and without those at each side
  int left = 0, right = 0, top = 0, bottom = 0;  ///< extent
  double mean = 0;                               ///< grey value
  double energy = 0;                             ///< sum of the squares of t
};

/// Demands of a coarse score.
struct CoarseRules {
  /// Share of a pattern that must be visible.
  static constexpr float kLeastVisible = 0.45F;

  float least_variance = 0;   ///< of the image; with less contrast the score is low
  bool any_polarity = false;  ///< negative correlations count as positive ones
};

/// The best correlation of a part with the pattern's centre at (x + i, y), i < n; the image must have n + 64
/// columns of margin. 0 where too little of the pattern is visible.
void correlate_row(const CoarseImage& image, const CoarsePattern& pattern, int x, int y, int n,
                   const CoarseRules& rules, float* scores);

/// The line image = gain * template + offset of the part that correlates best; gain 0 if all blocks correlate
/// nearly as well.
struct CoarseLine {
  double gain = 0, offset = 0;
};
CoarseLine line_at(const CoarseImage& image, const CoarsePattern& pattern, int x, int y,
                   const CoarseRules& rules);

}  // namespace dic::match
