#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/shared/export.hpp>
#include <dic/shared/subset_weights.hpp>
#include <string>
#include <vector>

namespace dic {

enum class Interpolation : std::uint8_t { cubic, quintic };
template <>
struct EnumNames<Interpolation> {
  static constexpr EnumName<Interpolation> table[] = {{Interpolation::cubic, "cubic"},
                                                      {Interpolation::quintic, "quintic"}};
};

/// Options of the sub-pixel refinement.
struct RefineOptions {
  int subset = 33;  ///< px, odd, 7..255: larger is less noisy, smaller resolves finer fields
  int order = 1;    ///< order of the shape function: 0 translation, 1 affine, 2 quadratic
  Interpolation interpolation = Interpolation::cubic;
  SubsetWeights weights = SubsetWeights::uniform;  ///< weights of the subset's pixels
  int max_iterations = 30;
  double tolerance = 1e-4;  ///< px: iterations stop when no pixel of the subset is likely to move further
  double min_zncc = 0.6;    ///< below this the point is low_correlation
  /// Standard deviation, px, of a Gaussian low-pass that was applied to both images, so that their noise is
  /// smooth.
  double smoothing = 0;
  /// Ratio of a displacement's standard deviation by that smooth noise to that by white noise of equal
  /// variance.
  double smooth_noise_factor = 1;
  /// Standard deviation, px, of a Gaussian low-pass that makes one image as blurred as the other; > 0:
  /// applied to the reference, < 0: to the current image.
  double matching = 0;
  /// Ratio of a displacement's variance by that image's noise to that by white noise of its variance before
  /// the low-pass.
  double matching_effect = 1;
  /// Largest bias of u and v by the interpolation, px, if known; it counts in sigma.
  double interpolation_bias_u = 0, interpolation_bias_v = 0;
  /// Mean squared gradient, grey levels^2 per px^2, of a reference with edges that are sharper than its
  /// pixels; 0: no such edges. They count in sigma.
  double edge_gradient = 0;
  /// Standard deviations by which each row of the images is displaced along x and each column along y, px, as
  /// in scanned images; they count in sigma.
  double row_jitter = 0, column_jitter = 0;
  /// Standard deviations of a grey value that each column and each row of a camera adds to all images; they
  /// count in sigma.
  double column_pattern = 0, row_pattern = 0;
  /// Ratio of the noise of an image to what its fourth differences show: below 1 if a colour camera's mosaic
  /// of pixels shows in them.
  double below_mosaic = 1;
  /// One sentence per problem; empty when all is well.
  DIC_API std::vector<std::string> validate() const;
};

}  // namespace dic
