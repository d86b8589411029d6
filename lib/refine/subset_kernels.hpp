#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/refine.hpp>
#include <string_view>

/// The two inner loops of the refinement, vectorized over subset columns with run-time dispatch.
namespace dic {

/// Pixels of a subset relative to its centre, inclusive: all of -radius..radius unless the border cuts it.
struct SubsetRect {
  int left = 0, right = 0, top = 0, bottom = 0;
};

/// A weight per pixel; none: all 1. The pointer is at the subset's centre, the stride in floats. Rows may be
/// read PaddedImage::kTail beyond the subset.
struct PixelWeights {
  const float* centre = nullptr;
  std::ptrdiff_t stride = 0;

  bool none() const { return centre == nullptr; }
  /// Those from column i of row j on.
  const float* at(int i, int j) const { return centre + j * stride + i; }
};

/// Rows of padded images; the pointers are at the subset's centre, strides in floats.
struct ReferencePatch {
  const float* grey = nullptr;
  const float* dx = nullptr;  ///< gradient, grey levels per px
  const float* dy = nullptr;
  std::ptrdiff_t stride = 0;
  PixelWeights mask, window;  ///< a pixel has the product of both; the mask is 0 or 1
  /// Columns that lie in the current image, by row, at the subset's centre; null: all of the rectangle do.
  /// The mask is 0 elsewhere.
  const PartRow* rows = nullptr;

  bool has_weights() const { return !mask.none() || !window.none(); }
  SubsetRect rect;
};

/// Sums over a reference subset; i, j are px from its centre, grey values relative to the subset's mean;
/// monomials as icgn::monomial_index orders them. All sums are weighted.
struct ReferenceSubsetSums {
  double count = 0, mean = 0;     ///< sum of the weights; mean grey value
  double grey_grey = 0;           ///< sum f^2
  double dx[6] = {}, dy[6] = {};  ///< sum dx i^a j^b, a + b <= order
  double grey_dx[6] = {}, grey_dy[6] = {};
  double dx_dx[15] = {}, dx_dy[15] = {}, dy_dy[15] = {};  ///< a + b <= 2 order
};
void reference_sums(const ReferencePatch& patch, int order, ReferenceSubsetSums& out);
/// The same relative to a given grey value, and sum f in `grey`.
void reference_sums_about(double mean, const ReferencePatch& patch, int order, ReferenceSubsetSums& out,
                          double& grey);

/// Fit of the current subset by mean and contrast: level + contrast (f - mean).
struct GreyFit {
  double mean = 0;  ///< of the reference subset
  double level = 0, contrast = 1;
};

/// Position of a subset in the current image: integer centre plus small shape parameters.
struct CurrentPatch {
  const float* coefficients = nullptr;  ///< at the integer centre: reference centre + rounded displacement
  std::ptrdiff_t stride = 0;
  ShapeParameters shape;  ///< u and v relative to the integer centre, |u|, |v| <= 0.5
  GreyFit fit;            ///< the better it is, the smaller are rounding errors
};

/// Weighted sums of the residuals e of the fit at the pixels of the subset. Beside a strong edge, faint
/// texture would be lost in the rounding errors of sums of the values themselves.
struct CurrentSums {
  double rest = 0, rest_rest = 0;  ///< sum e, sum e^2
  double reference_rest = 0;       ///< sum (f - mean) e
  double dx[6] = {}, dy[6] = {};   ///< sum dx e i^a j^b, a + b <= order
};
/// Of pixels' values and sums; images are floats.
enum class Arithmetic : std::uint8_t { floats, doubles };
/// The warped subset, or its rows, must lie within half a pixel of the current image.
void current_sums(const ReferencePatch& reference, const CurrentPatch& current, int order,
                  Interpolation interpolation, Arithmetic arithmetic, CurrentSums& out);

/// Name of the SIMD target that the kernels run on here.
std::string_view simd_target_name();

}  // namespace dic
