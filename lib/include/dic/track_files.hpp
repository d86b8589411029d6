#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <dic/draw.hpp>
#include <dic/export.hpp>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
#include <dic/noise.hpp>
#include <dic/progress.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/track.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// A run that reads images from files and writes its results to files.
namespace dic {

/// Frames over which pictures of the fields are drawn. some: every fifth frame, at most ten, and the last.
enum class Pictures : std::uint8_t { some, all, none };
template <>
struct EnumNames<Pictures> {
  static constexpr EnumName<Pictures> table[] = {
      {Pictures::some, "some"}, {Pictures::all, "all"}, {Pictures::none, "none"}};
};

/// Inputs and settings of a whole run, which `dic track` performs.
struct TrackJob {
  std::vector<std::string> frames;  ///< files, globs, directories or one video
  std::string reference;            ///< empty = the first frame
  std::filesystem::path output = "dic_out";
  bool force = false;   ///< replace an earlier result of dic
  bool resume = false;  ///< continue the result of a run that was stopped; start if there is none
  Roi roi;
  TrackOptions options;
  /// Files of roi.mask, roi.points and options.camera; empty = none.
  std::string roi_file, points_file, camera_file;
  double scale_mm_per_px = 0;  ///< 0 = px, or mm where a camera knows the scale
  bool csv = false;
  CsvStyle csv_style = CsvStyle::native;
  Pictures pictures = Pictures::some;
  CanvasFactory canvases = {};  ///< makes the canvases of pictures; empty = png_canvases()
  /// Bytes of this computer's memory that the run may use; 0 = all. See MemoryLimit, whose files are in the
  /// folder of the result.
  std::int64_t max_memory = 0;
  /// Frames per second; the first of `frames` is at 0 s. 0 = frame rate of the video; images then have no
  /// time in seconds.
  double fps = 0;
  /// Times in s, one for each of `frames`, not decreasing; empty = none.
  std::vector<double> times;
  std::string times_file;  ///< file of `times`; empty = none
  /// The frames show a specimen at rest: also measures the noise of the images over grey level.
  bool noise_floor = false;
  std::string command;  ///< command line of the run, for run.json
  /// Scale of the results, mm per px: scale_mm_per_px or that of the camera; 0 = results in px.
  DIC_API double scale() const;
  /// One sentence per problem; empty if the job is valid.
  DIC_API std::vector<std::string> validate() const;
};

/// One current frame of a run. Lengths are in px, or in mm with a scale. Means and standard deviations are
/// over the points with values, and NaN if there are none.
struct FrameSummary {
  std::string file;
  std::optional<double> time;  ///< s
  std::array<std::int64_t, kStatusCount> counts{};
  double mean_u = 0, mean_v = 0, mean_zncc = 0, sd_u = 0, sd_v = 0, sd_zncc = 0;
  double sigma_u = 0, sigma_v = 0;  ///< means of the predicted standard deviations
  /// Statistics of one strain component over the points with strain.
  struct Strain {
    double mean = 0, sd = 0, sigma = 0;  ///< sigma: mean of the predicted standard deviations
    /// The smallest or the largest value and its position in the reference image, in the length unit; NaN if
    /// no point has strain.
    struct Extreme {
      double value = NAN, x = NAN, y = NAN;
    };
    Extreme min = {}, max = {};
  };
  std::array<Strain, kStrainComponents.size()> strain{};  ///< one for each of kStrainComponents
  /// Root mean square of the difference between a point and the mean of all points, in predicted standard
  /// deviations of the point, for each of kScatteredArrays; only with TrackJob::noise_floor. 1 if the
  /// prediction is right.
  std::array<double, kScatteredArrays.size()> scatter{};
  double noise = 0;  ///< standard deviation of the noise of the images, grey levels
  double seconds = 0;
  std::vector<StageSpan> spans;
  std::string error;  ///< why the frame could not be processed; empty if it was
};

struct TrackSummary {
  std::string reference;
  Size image;              ///< px
  std::string host, date;  ///< name of the machine; local time of the start, ISO 8601
  int gauge = 0;           ///< length of the virtual strain gauge, px
  std::int64_t points = 0;
  std::vector<FrameSummary> frames;
  std::int64_t frames_beyond = 0;  ///< number of frames that follow `frames` and are in the result alone
  std::optional<std::int64_t> frames_given;  ///< number of current frames of the job; none if it is unknown
  std::int64_t frames_resumed = 0;  ///< number of `frames` that an earlier run measured (TrackJob::resume)
  /// TrackJob::resume found nothing left to measure; only `frames` and `frames_drawn` are set.
  bool was_complete = false;
  std::int64_t frames_drawn = 0;  ///< number of frames drawn
  StageSeconds seconds;
  std::string device, device_reason;  ///< as Tracker states them
  TrackOptions options;               ///< including values chosen from the reference; see Tracker::options
  std::vector<std::string> kernels;
  std::vector<NoiseAtGrey> noise_curve;  ///< by grey level; with TrackJob::noise_floor, if frames are at rest
  /// Sentences about what was measured and may mislead.
  std::vector<std::string> warnings;
  bool interrupted = false;  ///< ended by the stop token; finished frames are saved
  std::filesystem::path output;
};

/// Receives every measured frame before it is written: its field, its number on the time axis, and its name.
using FieldCallback = std::function<void(const Field&, int number, const std::string& name)>;

/// Explains in one sentence why no point could be measured in a frame of a finished run, and what to do.
/// Names the first such frame and the number of such frames; reads its images again. Empty if every frame has
/// points.
DIC_API std::string unmatched_warning(const TrackJob& job, const TrackSummary& summary);

/// Reads the images, measures them and writes the results. Frames that cannot be read or have another size or
/// depth are recorded and skipped. Nothing is written before the first frame was measured, so that an earlier
/// failure leaves an earlier result unchanged. Throws UsageError, FileError, DeviceError. When a stop is
/// requested, finishes the files and returns; throws Cancelled if no frame was measured until then. The
/// callbacks are called by the calling thread.
DIC_API TrackSummary track_files(const TrackJob& job, const ProgressCallback& progress = {},
                                 std::stop_token stop = {}, const FieldCallback& on_field = {});

}  // namespace dic
