#pragma once

#include <cstdint>
#include <dic/shared/enum_names.hpp>
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
  int order = 1;    ///< of the shape function: 0 translation, 1 affine, 2 quadratic
  Interpolation interpolation = Interpolation::cubic;
  SubsetWeights weights = SubsetWeights::uniform;  ///< of the subset's pixels
  int max_iterations = 30;
  double tolerance = 1e-4;  ///< px: stop when no pixel of the subset is likely to move further than this
  double min_zncc = 0.6;    ///< below this the point is low_correlation
  /// Standard deviation, px, of a Gaussian low-pass that both images have gone through: their noise is
  /// smooth.
  double smoothing = 0;
  /// Standard deviation of a displacement by that noise over that by white noise of the same variance.
  double smooth_noise_factor = 1;
  /// Standard deviation, px, of a Gaussian low-pass of one of both images alone, which makes it as blurred as
  /// the other; above 0: of the reference, below: of the current image.
  double matching = 0;
  /// Variance of a displacement by that image's noise over that by white noise of its variance before the
  /// low-pass.
  double matching_effect = 1;
  /// Largest bias of u and v by the interpolation, px, where it is known: it counts in sigma.
  double interpolation_bias_u = 0, interpolation_bias_v = 0;
  /// Mean squared gradient of a reference with edges that are sharper than its pixels, grey levels^2 per
  /// px^2; 0: it has none. Such edges count in sigma.
  double edge_gradient = 0;
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

}  // namespace dic
