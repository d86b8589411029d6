#pragma once

#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <dic/export.hpp>
#include <dic/probe.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/stereo.hpp>
#include <dic/track_files.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

/// Cameras, and measuring their frames while they arrive.
namespace dic {

/// A camera that can be opened.
struct CameraInfo {
  std::string id;        ///< name under which LiveOptions::camera opens it
  std::string address;   ///< address in the network, or on the USB; may be empty
  std::string protocol;  ///< "GigEVision", "USB3Vision", "Fake", "webcam"
  std::string vendor, model, serial;
};
struct CameraList {
  std::vector<CameraInfo> cameras;
  std::vector<std::string> problems;  ///< kinds of cameras that could not be looked for, a sentence each
};
/// Looks for cameras for about a second: GenICam cameras in the network and on the USB, and webcams. The
/// camera `fake`, moving speckle without hardware, is among them.
DIC_API CameraList list_cameras();

/// Settings that a camera gets before it starts. Settings without a value are left as the camera has them.
struct CameraSettings {
  std::vector<std::pair<std::string, std::string>> features;  ///< GenICam names and values, set first
  std::optional<Roi::Rect> region;                            ///< part of the sensor, px
  std::string format;                                         ///< pixel format: "Mono8", "Mono16"
  std::optional<double> frame_rate;                           ///< frames per second
  std::optional<double> exposure;                             ///< us
  std::optional<double> gain;                                 ///< in the unit of the camera, mostly dB
  /// "free": the camera runs by itself. "software": a frame is taken when the last one was measured, at most
  /// `frame_rate` per second. Other names are those of the camera's inputs: "Line0".
  std::string trigger = "free";
  int buffers = 16;  ///< frames that may wait in the driver of the camera, at least 2
};

/// A setting as the camera confirms it: it may clamp a value without an error.
struct CameraSetting {
  std::string name;
  std::string asked;    ///< empty if nothing was asked for
  std::string actual;   ///< as read back
  bool is_kept = true;  ///< false if another value than the one asked for was read back
};

/// Treatment of frames that arrive faster than they are measured.
enum class DropPolicy : std::uint8_t {
  newest,  ///< the newest frame is measured next; those before it are dropped and counted
  never,   ///< frames wait in memory; when half of the free memory is taken, the measurement ends whole
  stop     ///< the first frame that is lost ends the measurement, whole
};
template <>
struct EnumNames<DropPolicy> {
  static constexpr EnumName<DropPolicy> table[] = {
      {DropPolicy::newest, "newest"}, {DropPolicy::never, "never"}, {DropPolicy::stop, "stop"}};
};

struct LiveOptions {
  /// Name, address or serial number of a GenICam camera; "fake"; or "webcam:0", the number of a webcam.
  std::string camera;
  /// The right camera of a pair that shares a trigger, named as `camera`, which is then the left one; empty =
  /// one camera.
  std::string right_camera;
  std::filesystem::path calibration;  ///< calibration of both cameras: a file of dic or of another program
  StereoOptions stereo;               ///< options of two cameras; the member `track` is replaced by the job's
  CameraSettings settings;            ///< of both cameras, if there are two
  DropPolicy drop = DropPolicy::newest;
  std::filesystem::path record;   ///< folder for all frames that arrive; empty = none
  std::string udp;                ///< "HOST:PORT" that gets every line; empty = none
  std::optional<int> tcp;         ///< port on which programs get every line; 0 = any free port
  double wait_for_camera = 0;     ///< seconds to wait for a camera that has vanished; 0 = end
  std::int64_t until_frames = 0;  ///< number of results after which the measurement ends; 0 = never
  double until_seconds = 0;       ///< time after which the measurement ends; 0 = never
  std::vector<std::array<Position, 2>> extensometers;
  /// Measures the ends of the extensometers, and job.roi.points, alone. Where roi.points are given, this is
  /// always so.
  bool only_extensometers = false;
  /// One sentence per problem; empty if the options are valid.
  DIC_API std::vector<std::string> validate() const;
};

/// Sets an option by its name in `dic live` and as text: "region", "0,0,512,512". `set` and `extensometer`
/// add to those that are there. Throws UsageError, whose message is a sentence without full stop that begins
/// with the name.
DIC_API void set_live_option(LiveOptions& options, const std::string& name, const std::string& value);
/// Names of these options.
DIC_API std::vector<std::string> live_option_names();

/// Numbers of lost frames by cause.
struct LiveDrops {
  std::int64_t camera = 0;     ///< never sent
  std::int64_t network = 0;    ///< incomplete, or lost on the way
  std::int64_t no_buffer = 0;  ///< the driver had no free buffer
  std::int64_t measuring = 0;  ///< replaced by newer frames
  std::int64_t recorder = 0;   ///< not recorded; they may have been measured
  /// Number of frames without a result.
  std::int64_t without_result() const { return camera + network + no_buffer + measuring; }
  DIC_API LiveDrops operator-(const LiveDrops& other) const;
};

/// A result, or something else that happened.
struct LiveFrame {
  std::string event;     ///< "start", "note", "lost", "back"; empty for a frame
  std::string text;      ///< one sentence about the event
  std::string line;      ///< all of it as one line of JSON, see docs/live.md
  int number = 0;        ///< number of the result, from 1
  std::int64_t id = 0;   ///< number that the camera gave the frame, counted on where it wraps
  double time = 0;       ///< by the clock of the camera, s after the reference
  double host_time = 0;  ///< when this computer received the frame, s since 1970
  double latency = 0;    ///< from there to the result, s
  std::string name;      ///< name of the frame in the results, and of its file in the recording
  std::string error;     ///< why the frame could not be measured, one sentence; empty = measured
  std::shared_ptr<const Field> field;  ///< null for events and after an error
  LiveDrops drops;                     ///< since the last frame
  std::shared_ptr<const Image> image;  ///< the measured frame; null for events
  std::shared_ptr<const Image> right;  ///< the frame of the right camera; null with one camera
  /// Median distance of the points in the right image from their epipolar lines, px; NaN with one camera.
  double epipolar_median = NAN;
};

struct LiveSummary {
  std::string camera;
  std::vector<CameraSetting> settings;
  /// Frames that the camera made after the reference. produced = results + drops.without_result().
  std::int64_t produced = 0;
  std::int64_t results = 0;
  LiveDrops drops;
  std::int64_t recorded = 0;  ///< number of files of the recording, with the reference
  std::string problem;        ///< why the measurement ended early, one sentence; empty if it did not
  std::string line;           ///< counts and problem as one line of JSON, the last one of a measurement
  TrackSummary track;         ///< the run, as dic track describes it
};

namespace live {
class LiveCamera;
/// Opens a camera, or opens it again after it has vanished. Throws UsageError for settings, DeviceError.
using OpenCamera = std::function<std::unique_ptr<LiveCamera>(const std::string&, const CameraSettings&)>;
}  // namespace live

/// Shows a camera while it is set up; nothing is measured or counted. Calls must not overlap.
class CameraView {
 public:
  /// Opens the camera and starts it. Throws UsageError for settings, DeviceError.
  DIC_API CameraView(const std::string& camera, const CameraSettings& settings);
  DIC_API ~CameraView();
  CameraView(const CameraView&) = delete;
  CameraView& operator=(const CameraView&) = delete;

  /// Waits for the next whole frame, at most for the given time; null where none came. With the trigger
  /// `software`, asks for it first. Throws DeviceError for a camera that has vanished.
  DIC_API std::shared_ptr<const Image> next(std::chrono::milliseconds longest);
  /// Settings as the camera confirms them.
  DIC_API std::vector<CameraSetting> settings() const;

 private:
  std::unique_ptr<live::LiveCamera> camera_;
  bool asks_for_frames_ = false;
};

/// Measures the frames of a camera while they arrive. All calls may come from any thread.
class LiveStream {
 public:
  /// Opens the camera, takes the reference (job.reference, or its first frame) and begins to measure. job:
  /// frames, fps, times and resume are not used; output: folder of the results, empty = none. Throws
  /// UsageError, FileError, and DeviceError for cameras.
  DIC_API LiveStream(const TrackJob& job, const LiveOptions& options);
  /// Does the same with frames of another source.
  DIC_API LiveStream(const TrackJob& job, const LiveOptions& options, const live::OpenCamera& open);
  /// Stops, and completes the results.
  DIC_API ~LiveStream();
  LiveStream(const LiveStream&) = delete;
  LiveStream& operator=(const LiveStream&) = delete;

  /// Waits for the next result or event; no value after the end. Results wait for this call: where it comes
  /// late, frames are dropped as DropPolicy says.
  DIC_API std::optional<LiveFrame> next();
  /// Ends the measurement: what has arrived is measured, as DropPolicy says. Returns at once.
  DIC_API void stop();
  /// Stops, completes the results and returns the summary; results that were not taken are lost to the caller
  /// alone. Throws FileError if the results could not be written, and DeviceError if the device failed.
  DIC_API LiveSummary finish();
  /// Port on which programs get every line; 0 = none.
  DIC_API int tcp_port() const;
  DIC_API std::vector<CameraSetting> settings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
