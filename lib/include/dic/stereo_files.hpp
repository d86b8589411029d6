#pragma once

#include <array>
#include <cstdint>
#include <dic/camera_rig.hpp>
#include <dic/export.hpp>
#include <dic/field_schema.hpp>
#include <dic/progress.hpp>
#include <dic/stereo.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

/// A run that reads pairs of images from files and writes shape, displacement and strain to files.
namespace dic {

/// Inputs and settings of a run with two cameras, which `dic stereo` performs.
struct StereoJob {
  /// Settings; `frames` are those of the left camera. Those of one_camera_options() have their defaults.
  TrackJob track;
  std::vector<std::string> right;     ///< files, globs, directories or one video of the right camera
  CameraRig rig;                      ///< calibration; without cameras it is read from the file `calibration`
  std::filesystem::path calibration;  ///< file of `rig`, of dic or of another program
  StereoOptions options;              ///< options of stereo; the member `track` is replaced by track.options
  /// One sentence per problem; empty if the job is valid.
  DIC_API std::vector<std::string> validate() const;
};

/// An option of runs with one camera (dic/track_options.hpp) that runs with two do not have.
struct OneCameraOption {
  std::string name;
  std::string why;  ///< the reason, a sentence without full stop that follows the name
};
DIC_API const std::vector<OneCameraOption>& one_camera_options();
/// A sentence for each of these options that does not have its default.
DIC_API std::vector<std::string> one_camera_problems(const TrackJob& job);

/// Mean and standard deviation over the points with values, and the mean of the predicted standard
/// deviations; NaN if there are none.
struct StereoStatistics {
  double mean = std::numeric_limits<double>::quiet_NaN();
  double sd = std::numeric_limits<double>::quiet_NaN();
  double sigma = std::numeric_limits<double>::quiet_NaN();
};

/// The quantities that a run summarizes: position, displacement, strain.
inline constexpr auto kStereoSummary =
    std::to_array<std::string_view>({"X", "Y", "Z", "U", "V", "W", "exx", "eyy", "exy"});

/// One pair of a run; the first one is that of the references.
struct StereoFrameSummary {
  std::string left, right;     ///< files; empty for an image that is missing
  std::optional<double> time;  ///< s
  std::array<std::int64_t, kStatusCount> counts{};
  std::array<StereoStatistics, kStereoSummary.size()> statistics{};   ///< one for each of kStereoSummary
  double epipolar_median = std::numeric_limits<double>::quiet_NaN();  ///< px; see StereoFrame
  double epipolar_sd = std::numeric_limits<double>::quiet_NaN();      ///< px
  RigidMotion motion;
  double noise_left = 0, noise_right = 0;  ///< grey levels
  double seconds = 0;
  std::string error;  ///< why the pair could not be processed; empty if it was
};

struct StereoSummary {
  Size image;  ///< of the left camera, px
  std::string host, date;
  int gauge = 0;        ///< length of the virtual strain gauge, px of the left image
  double gauge_mm = 0;  ///< the same on the surface of the reference, mm (median)
  std::int64_t points = 0;
  std::vector<StereoFrameSummary> frames;
  std::optional<std::int64_t> frames_given;  ///< number of pairs of the job; none if it is unknown
  std::int64_t frames_resumed = 0;  ///< number of `frames` that an earlier run measured (TrackJob::resume)
  /// TrackJob::resume found nothing left to measure; only `frames` and `frames_drawn` are set.
  bool was_complete = false;
  CameraRig rig;  ///< calibration of the cameras, corrected if that was asked for
  /// See StereoTracker::rig_correction; its rig was used if options.correct_rig is set.
  std::optional<RigCorrection> rig_correction;
  std::string pairing;  ///< a sentence if names of left and right images do not fit; else empty
  std::int64_t frames_drawn = 0;
  StageSeconds seconds;
  double geometry_seconds = 0;  ///< sum of StereoFrame::geometry_seconds
  std::string device, device_reason;
  TrackOptions options;           ///< including values chosen from the reference
  int order_between_cameras = 1;  ///< see StereoTracker
  std::vector<std::string> kernels;
  bool interrupted = false;
  std::filesystem::path output;
};

/// Receives every measured pair before it is written: the measurement and its number, 0 for the references.
using StereoCallback = std::function<void(const StereoFrame&, int number)>;

/// Reads the images, measures them and writes the results. Pairs that cannot be read or have another size are
/// recorded and skipped. Nothing is written before the references were measured. Throws UsageError,
/// FileError, DeviceError. When a stop is requested, finishes the files and returns; throws Cancelled if
/// nothing was measured until then. The callbacks are called by the calling thread.
DIC_API StereoSummary stereo_files(const StereoJob& job, const ProgressCallback& progress = {},
                                   std::stop_token stop = {}, const StereoCallback& on_frame = {});

}  // namespace dic
