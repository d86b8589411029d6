#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/refine.hpp>
#include <string_view>

#include "refine/subset_patch.hpp"

/// The inner loop of the refinement, vectorized over subset columns with run-time dispatch.
namespace dic::refine {

/// Fit of the current subset by mean and contrast: level + contrast (f - mean).
struct GreyFit {
  double mean = 0;  ///< mean grey value of the reference subset
  double level = 0, contrast = 1;
};

/// Position of a subset in the current image: integer centre plus small shape parameters.
struct CurrentPatch {
  const float* coefficients = nullptr;  ///< points to the centre: reference centre + rounded displacement
  std::ptrdiff_t stride = 0;
  ShapeParameters shape;  ///< u and v relative to the integer centre, |u|, |v| <= 0.5
  GreyFit fit;            ///< a better fit makes rounding errors smaller
};

/// Weighted sums of the residuals e of the fit at the pixels of the subset. Sums of the grey values
/// themselves would lose faint texture beside a strong edge in rounding errors.
struct CurrentSums {
  double rest = 0, rest_rest = 0;  ///< sum e, sum e^2
  double reference_rest = 0;       ///< sum (f - mean) e
  double dx[6] = {}, dy[6] = {};   ///< sum dx e i^a j^b, a + b <= order
};
/// Type of interpolated grey values and of sums; images are always floats.
enum class Arithmetic : std::uint8_t { floats, doubles };
/// Computes the sums of a subset. The warped subset, or its `rows`, must lie within half a pixel of the
/// current image.
void current_sums(const ReferencePatch& reference, const CurrentPatch& current, int order,
                  Interpolation interpolation, Arithmetic arithmetic, CurrentSums& out);

/// Name of the SIMD target that the kernels use on this machine.
std::string_view simd_target_name();

}  // namespace dic::refine
