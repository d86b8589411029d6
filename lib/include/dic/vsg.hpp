#pragma once

#include <dic/export.hpp>
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

/// Strain resolution against spatial resolution over subsets and strain windows (virtual strain gauges),
/// which the Good Practices Guide of the iDICs recommends.
namespace dic {

/// Settings of a sweep over subsets and strain windows.
struct VsgOptions {
  TrackOptions track;                                   ///< the sweep replaces subset and strain window
  std::vector<int> subsets = {15, 21, 27, 33, 41};      ///< sides of the subsets, px, odd
  std::vector<int> windows = {3, 5, 7, 9, 11, 15, 21};  ///< sides of the strain windows, points, odd
  /// One sentence per problem; empty if the options are valid.
  DIC_API std::vector<std::string> validate() const;
};

/// Results of one virtual strain gauge.
struct VsgResult {
  /// Results of one strain component.
  struct Component {
    double sigma = 0;  ///< strain resolution: root mean square of the predicted standard deviations
    std::optional<double> at_rest;  ///< measured strain resolution: standard deviation over a frame at rest
    double peak = 0;                ///< signal: 99.9th percentile of the absolute value in the loaded frame
  };
  int subset = 0, window = 0;  ///< px; points
  double gauge = 0;            ///< length of the gauge, (window - 1) * step + subset, px
  /// Spatial resolution, px: period of a normal strain along its own axis of which 90 % of the amplitude are
  /// kept.
  double resolution = 0;
  std::array<Component, kStrainComponents.size()> strain{};  ///< one for each of kStrainComponents
  std::int64_t points = 0;  ///< number of points with strain in the loaded frame
};

/// Measures the loaded frame and, if it is not empty, the frame at rest with each subset, and computes the
/// strain with each window. Results are in the order of subsets, then windows. Throws UsageError,
/// DeviceError, Cancelled.
DIC_API std::vector<VsgResult> sweep_vsg(const VsgOptions& options, ImageView reference, ImageView loaded,
                                 ImageView at_rest = {}, const Roi& roi = {},
                                 const ProgressCallback& progress = {}, std::stop_token stop = {});

/// Smallest period, px, of a normal strain along its own axis of which subset and window keep 90 % of the
/// amplitude.
DIC_API double vsg_resolution(const MeasuredSubsets& subsets, int window, int step);

/// Writes vsg.csv and vsg.json, and two pictures: vsg_resolution.png (strain resolution over spatial
/// resolution) and vsg_peak.png (largest strain over the gauge length). Throws FileError.
DIC_API void write_vsg(const std::filesystem::path& folder, const std::vector<VsgResult>& results);

}  // namespace dic
