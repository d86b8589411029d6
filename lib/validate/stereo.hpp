#pragma once

#include <array>
#include <cstdint>
#include <dic/stereo.hpp>
#include <dic/synth_stereo.hpp>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/parallel.hpp"

/// Measures rendered pairs of two cameras, and judges shape, displacement and strain.
namespace dic::validation {

/// The judged quantities: six lengths, mm, and three strains.
inline constexpr auto kStereoQuantities =
    std::to_array<std::string_view>({"X", "Y", "Z", "U", "V", "W", "exx", "eyy", "exy"});
inline constexpr std::size_t kStereoLengths = 6;

/// Bounds of a case with two cameras: lengths in um, strains in microstrain.
struct StereoBounds {
  double z_bias = 0, z_sd = 0;
  double motion_bias = 0;                ///< of each of U, V and W
  std::array<double, 3> motion_sd = {};  ///< of U, V and W
  double strain_bias = 0, strain_sd = 0;
  double lost = 0;             ///< largest share of lost points
  double least_scatter = 0.9;  ///< observed / predicted sigma, of each quantity
  double most_scatter = 1.1;
  /// The bounds as text.
  std::string text() const;
};

/// A specimen in front of two cameras; its second pair is judged.
struct StereoCase {
  StereoSynthOptions synth;
  StereoBounds bounds;
};

struct StereoMetrics {
  struct Quantity {
    double bias = 0, sd = 0;  ///< um, microstrain
    double scatter = 0;       ///< root mean square of error / predicted sigma
  };
  std::array<Quantity, kStereoQuantities.size()> quantities;
  double trace_bias = 0;  ///< mean error of exx + eyy, microstrain: principal strains sort the noise
  std::int64_t points = 0, ok = 0;
  std::int64_t expected = 0, lost = 0;  ///< points whose whole subset is seen at less than 60 degrees
  std::int64_t wrong = 0, hidden = 0;   ///< ok points that are wrong, and those among them that are hidden

  const Quantity& operator[](std::string_view name) const;
};

/// A measurement, and what measured it.
struct StereoJudgement {
  StereoMetrics metrics;
  std::string device;
  TrackOptions options;
  double seconds = 0;  ///< duration of the measurement
};

/// Renders the pairs, measures and judges them. Throws as StereoTracker does.
StereoJudgement measure_stereo(const StereoCase& one, const TrackOptions& options, core::ThreadPool& pool,
                               const std::stop_token& stop);

/// A sentence per broken bound.
std::vector<std::string> broken_bounds(const StereoBounds& bounds, const StereoMetrics& metrics);

}  // namespace dic::validation
