#pragma once

#include <dic/export.hpp>
#include <dic/track.hpp>
#include <string>

namespace dic {

/// What the reference alone says about a measurement before it is made.
struct Preview {
  /// Width of the autocorrelation of the pattern at half of its height, mean of x and y, px: about the
  /// diameter of a blurred speckle, 0.8 diameters of sharp discs. At most 32; NaN where there is no pattern.
  double speckle_size = 0;
  double mean = 0;               ///< of the grey levels in the region
  double contrast = 0;           ///< their standard deviation, grey levels
  double relative_contrast = 0;  ///< contrast / mean
  double saturated = 0;          ///< share of the pixels with the largest value of the type; 0 for float
  double noise = 0;              ///< of the image, grey levels: as given in the options, else estimated
  double prefilter = 0;          ///< px: what `--prefilter auto` would choose, or as given
  std::int64_t points = 0;       ///< that a measurement with these options would have

  /// The larger of the predicted sigma_u and sigma_v of options.refine.subset on a coarse grid over the
  /// region, px; infinite where a subset has no texture, NaN outside.
  Grid grid;
  NodeValues<float> sigma;
  double median_sigma = 0, ninety_percent_sigma = 0;  ///< over its points

  int subset = 0;      ///< recommended, px
  int step = 0;        ///< recommended, px
  std::string reason;  ///< of both, a few sentences
};

/// Without measuring anything; takes part of a second. The recommended subset is the smallest one with three
/// speckles across and a predicted sigma below options.sigma_target (no value: 0.01 px) at nine of ten
/// points. Throws UsageError as Tracker does, and for an image that is smaller than 64 px along an axis.
DIC_API Preview preview(const TrackOptions& options, ImageView reference, const Roi& roi = {});

}  // namespace dic
