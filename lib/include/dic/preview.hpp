#pragma once

#include <dic/export.hpp>
#include <dic/track.hpp>
#include <string>

namespace dic {

/// Properties of a measurement that are predicted from the reference alone.
struct Preview {
  /// Width of the autocorrelation of the pattern at half of its height, mean of x and y, px: about the
  /// diameter of a blurred speckle, 0.8 diameters of sharp discs. At most 32; NaN without a pattern.
  double speckle_size = 0;
  double mean = 0;               ///< mean of the grey levels in the region
  double contrast = 0;           ///< standard deviation of the grey levels
  double relative_contrast = 0;  ///< contrast / mean
  double saturated = 0;          ///< share of the pixels with the largest value of the type; 0 for float
  double noise = 0;              ///< noise of the image, grey levels: as given in the options, else estimated
  double prefilter = 0;  ///< standard deviation of the prefilter as given, or as `auto` would choose it, px
  std::int64_t points = 0;  ///< number of points of a measurement with these options

  /// The larger of the predicted sigma_u and sigma_v of options.refine.subset on a coarse grid over the
  /// region, px; infinite if a subset has no texture, NaN outside of the region.
  Grid grid;
  NodeValues<float> sigma;
  double median_sigma = 0, ninety_percent_sigma = 0;  ///< percentiles over the points of the grid, px

  int subset = 0;      ///< recommended subset, px
  int step = 0;        ///< recommended step, px
  std::string reason;  ///< reason of both recommendations, a few sentences
};

/// Predicts a measurement without measuring anything, in less than a second. The recommended subset is the
/// smallest one with three speckles across and a predicted sigma below options.sigma_target (no value: 0.01
/// px) at nine of ten points. Throws UsageError like Tracker, and for an image smaller than 64 px along an
/// axis.
DIC_API Preview preview(const TrackOptions& options, ImageView reference, const Roi& roi = {});

}  // namespace dic
