#pragma once

#include <array>
#include <dic/field_schema.hpp>
#include <dic/image.hpp>
#include <dic/progress.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

/// Strain resolution against spatial resolution over subsets and strain windows (virtual strain gauges), as
/// the Good Practices Guide of the iDICs asks for.
namespace dic {

struct VsgOptions {
  TrackOptions track;                               ///< its subset and strain window are those of the sweep
  std::vector<int> subsets = {15, 21, 27, 33, 41};  ///< px, odd
  std::vector<int> windows = {3, 5, 7, 9, 11, 15, 21};  ///< points, odd
  /// One sentence per problem; empty when all is well.
  std::vector<std::string> validate() const;
};

/// One virtual strain gauge.
struct VsgResult {
  /// A component of the strain.
  struct Component {
    double sigma = 0;  ///< strain resolution: root mean square of the predicted standard deviations
    std::optional<double> at_rest;  ///< the same, measured: standard deviation over a frame at rest
    double peak = 0;                ///< signal: 99.9th percentile of the absolute value in the loaded frame
  };
  int subset = 0, window = 0;
  double gauge = 0;  ///< (window - 1) * step + subset, px
  /// Spatial resolution: period of a normal strain along its own axis that keeps nine tenths of its
  /// amplitude, px.
  double resolution = 0;
  std::array<Component, kStrainComponents.size()> strain{};  ///< one for each of kStrainComponents
  std::int64_t points = 0;                                   ///< with strain in the loaded frame
};

/// Measures the loaded frame, and the one at rest if there is one (not empty), with each subset, and computes
/// the strain with each window. In the order of subsets and windows. Throws UsageError, DeviceError,
/// Cancelled.
std::vector<VsgResult> sweep_vsg(const VsgOptions& options, ImageView reference, ImageView loaded,
                                 ImageView at_rest = {}, const Roi& roi = {},
                                 const ProgressCallback& progress = {}, std::stop_token stop = {});

/// Period, px, of a normal strain that varies along its own axis and of which subset and window keep nine
/// tenths.
double vsg_resolution(const MeasuredSubsets& subsets, int window, int step);

/// Writes vsg.csv and vsg.json, and two pictures: vsg_resolution.png (strain resolution over spatial
/// resolution) and vsg_peak.png (largest strain over the gauge length). Throws FileError.
void write_vsg(const std::filesystem::path& folder, const std::vector<VsgResult>& results);

}  // namespace dic
