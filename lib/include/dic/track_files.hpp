#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <dic/draw.hpp>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
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

/// A run from files to files.
namespace dic {

/// Of which frames pictures of the fields are drawn. some: every fifth, at most ten, and the last.
enum class Pictures : std::uint8_t { some, all, none };
template <>
struct EnumNames<Pictures> {
  static constexpr EnumName<Pictures> table[] = {
      {Pictures::some, "some"}, {Pictures::all, "all"}, {Pictures::none, "none"}};
};

/// A whole run from files to files: what `dic track` does.
struct TrackJob {
  std::vector<std::string> frames;  ///< files, globs, directories or one video
  std::string reference;            ///< empty = the first frame
  std::filesystem::path output = "dic_out";
  bool force = false;   ///< replace an earlier result of dic
  bool resume = false;  ///< go on with the result of a run that was ended; without one, begin
  Roi roi;
  TrackOptions options;
  std::string roi_file, camera_file;  ///< where roi.mask and options.camera were read; empty = nowhere
  double scale_mm_per_px = 0;         ///< 0 = px, or mm where a camera knows the scale
  bool csv = false;
  CsvStyle csv_style = CsvStyle::native;
  Pictures pictures = Pictures::some;
  CanvasFactory canvases = {};  ///< for the pictures; empty = png_canvases()
  /// Bytes of this computer's memory that the run may take (MemoryLimit, in the folder of the result); 0 =
  /// all.
  std::int64_t max_memory = 0;
  /// Frames per second, > 0: the first of `frames` is at 0 s. 0 = as a video says, else there are no seconds.
  double fps = 0;
  /// Seconds, one for each of `frames`, not decreasing; empty = none.
  std::vector<double> times;
  std::string times_file;  ///< where they were read; empty = nowhere
  /// The frames show a specimen at rest: also measures the noise of its images over grey.
  bool noise_floor = false;
  std::string command;  ///< as typed, for run.json
  /// That of the results: as given, or of the camera; 0 = px.
  double scale() const;
  std::vector<std::string> validate() const;
};

/// One current frame of a run. Lengths in px, in mm with a scale. Means and standard deviations are over the
/// points with values, NaN where there are none.
struct FrameSummary {
  std::string file;
  std::optional<double> time;  ///< s
  std::array<std::int64_t, kStatusCount> counts{};
  double mean_u = 0, mean_v = 0, mean_zncc = 0, sd_u = 0, sd_v = 0, sd_zncc = 0;
  double sigma_u = 0, sigma_v = 0;  ///< means of the predicted standard deviations
  /// A component of the strain, over the points that have it.
  struct Strain {
    double mean = 0, sd = 0, sigma = 0;  ///< sigma: mean of the predicted standard deviations
    /// The smallest and the largest value, and where in the reference image, in the length unit. NaN where
    /// there is none.
    struct Extreme {
      double value = NAN, x = NAN, y = NAN;
    };
    Extreme min = {}, max = {};
  };
  std::array<Strain, kStrainComponents.size()> strain{};  ///< one for each of kStrainComponents
  /// With TrackJob::noise_floor, for each of kScatteredArrays: root mean square of what a point differs from
  /// the mean of all, in its own predicted standard deviations. 1 where the prediction is right.
  std::array<double, kScatteredArrays.size()> scatter{};
  double noise = 0;  ///< grey levels
  double seconds = 0;
  std::vector<StageSpan> spans;
  std::string error;  ///< why the frame could not be processed; empty = it was
};

/// Noise of pixels of about the same grey, from differences of frames at rest.
struct NoiseAtGrey {
  double grey = 0;   ///< mean of the pixels, grey levels
  double noise = 0;  ///< standard deviation of one image, grey levels
  std::int64_t pixels = 0;
};

struct TrackSummary {
  std::string reference;
  Size image;              ///< px
  std::string host, date;  ///< name of the machine; local time of the start, ISO 8601
  int gauge = 0;           ///< length of the virtual strain gauge, px
  std::int64_t points = 0;
  std::vector<FrameSummary> frames;
  std::optional<std::int64_t> frames_given;  ///< current frames of the job; none where nobody knows
  std::int64_t frames_resumed = 0;           ///< of `frames`: measured by an earlier run (TrackJob::resume)
  bool was_complete = false;      ///< TrackJob::resume found nothing left to do: only `frames` is filled in
  std::int64_t frames_drawn = 0;  ///< of which there are pictures
  StageSeconds seconds;
  std::string device, device_reason;  ///< see Tracker
  TrackOptions options;               ///< with what was chosen from the reference: see Tracker::options
  std::vector<std::string> kernels;
  std::vector<NoiseAtGrey> noise_curve;  ///< by grey; with TrackJob::noise_floor, where frames stood still
  bool interrupted = false;              ///< ended by the stop token; what was finished is saved
  std::filesystem::path output;
};

/// Gets every frame that was measured, before it is written: its field, its number on the time axis, its
/// name.
using FieldCallback = std::function<void(const Field&, int number, const std::string& name)>;

/// Why not one point could be measured in the first frame of a finished run where that happened, and what to
/// do: one sentence, with the name of that frame and the number of such frames. The images are read again.
/// Empty where every frame has points.
std::string unmatched_warning(const TrackJob& job, const TrackSummary& summary);

/// Loads, tracks, writes. Frames that cannot be read or have another size or depth are recorded and skipped.
/// Nothing is written before the first frame was measured, so that what fails earlier leaves an earlier
/// result as it was. Throws UsageError, FileError, DeviceError. When `stop` is set, finishes the files and
/// returns; where no frame has been measured yet, throws Cancelled. The callbacks are called by the calling
/// thread.
TrackSummary track_files(const TrackJob& job, const ProgressCallback& progress = {},
                         std::stop_token stop = {}, const FieldCallback& on_field = {});

}  // namespace dic
