#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/shared/pose.hpp>
#include <vector>

/// The inner loops of the pose search, compiled for every SIMD target.
namespace dic::match {

/// Pixels of a template at one level of its pyramid. Arrays are padded with zeros to whole blocks.
struct PixelList {
  static constexpr int kBlock = 256;  ///< pixels that the kernels take at a time
  int count = 0;
  std::vector<float> xi, eta, t, tx, ty;  ///< position, grey value minus the mean, gradient

  std::size_t padded() const { return xi.size(); }
};

/// How grey values between pixels are computed.
enum class Sampling {
  bilinear,
  lagrange,  ///< polynomials of degree 5 through 6 x 6 pixels: as fast as a spline, without its filter
  quintic    ///< B-spline of degree 5; `SampleImage::values` are coefficients with a margin
};

/// Where grey values come from.
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

/// Sums from which a correlation follows.
struct ScoreSums {
  double n = 0, t = 0, tt = 0, v = 0, vv = 0, tv = 0;
};
void add_scores(const float* t, const float* values, const float* weights, ScoreSums& sums);

/// The image of the coarsest level with a margin in which nothing counts.
struct CoarseImage {
  int width = 0, height = 0, margin = 0;
  std::ptrdiff_t stride = 0;
  std::vector<float> values, squares, counts;  ///< grey value minus the mean, its square, 1 = counts
  std::vector<float> sum, sum_squares;         ///< of the pixels to the left, by row
  bool has_mask = false;                       ///< some pixels inside do not count

  std::ptrdiff_t place(int x, int y) const { return (y + margin) * stride + x + margin; }
};

/// The template at one pose of the coarsest level: pixels relative to its centre.
struct CoarsePattern {
  struct Element {
    std::ptrdiff_t offset;
    float t;  ///< grey value minus the mean of the pattern
  };
  struct Run {
    std::ptrdiff_t first, end;  ///< offsets in the same row
  };
  std::vector<Element> elements;
  std::vector<Run> runs;
  int left = 0, right = 0, top = 0, bottom = 0;  ///< extent
  double energy = 0;                             ///< sum of the squares of t
};

/// Correlations with the pattern's centre at (x + i, y), i < n; the image must have n + 64 columns of margin.
/// 0 where too little of the pattern is visible or the image has no contrast.
void correlate_row(const CoarseImage& image, const CoarsePattern& pattern, int x, int y, int n,
                   float least_variance, float* scores);

}  // namespace dic::match
