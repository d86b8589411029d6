#pragma once

#include "analysis/power_spectrum.hpp"

namespace dic::analysis {

/// Noise of a camera that is not the same at all frequencies, as the power spectrum of an image shows it.
struct SensorNoise {
  double row_jitter = 0;      ///< standard deviation by which each row is displaced along itself, px
  double column_jitter = 0;   ///< standard deviation by which each column is displaced along itself, px
  double column_pattern = 0;  ///< standard deviation of a grey value that each column adds
  double row_pattern = 0;     ///< standard deviation of a grey value that each row adds
  /// Ratio of the noise's standard deviation to that at the highest frequencies: below 1 where a colour
  /// camera's mosaic of pixels shows there.
  double below_mosaic = 1;
};

/// Looks for such noise. Textures of any shape show none: jitter is white across the lines and goes with the
/// slopes along them, and a pattern is constant along whole lines.
SensorNoise sensor_noise(const PowerSpectrum& spectrum);

}  // namespace dic::analysis
