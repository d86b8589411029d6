#pragma once

#include <cstdint>
#include <deque>
#include <dic/live.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "view/json.hpp"
#include "view/measurement.hpp"
#include "view/track_settings.hpp"

namespace dic::app {

/// A camera as the page asks for it.
struct CameraRequest {
  LiveOptions options;
  TrackJob job;  ///< `output` is empty if no result is to be written
};

enum class CameraUse : std::uint8_t { look, measure };

/// asked: {camera: {name: value or list of values}, toml: settings of the measurement, keep: whether the
/// result is written}. Names and values are those of set_live_option(), except the ones that open ports.
/// Throws UsageError, FileError.
CameraRequest camera_request(const Json& asked, const AllowedFolders& folders, CameraUse use);

/// {cameras: [{id, address, protocol, vendor, model, serial}], problems: [sentence]}. Takes about a second.
Json camera_list();

/// A camera beside the server, or two, one test at a time: looked at, or measured. Calls may overlap.
class CameraRun {
 public:
  CameraRun() = default;
  /// Stops and waits.
  ~CameraRun() = default;

  /// Shows the camera without measuring. Ends what was under way.
  void look(LiveOptions options);
  /// Takes the first frame as the reference, and measures those after it. Ends what was under way.
  void measure(CameraRequest request);
  /// Returns at once.
  void stop();
  bool measuring() const;

  /// has_right (there is an image of the right camera), state ("idle", "looking", "measuring", "ended",
  /// "failed"), error, notes, settings, image (number of the
  /// newest image), field (number of the newest result), line (what `dic live` says of it), results, drops,
  /// output, and from result `from` on: history [[number, time, strain of each extensometer]].
  Json progress(std::int64_t from) const;
  /// The newest image of the camera, the left one of two; null before the first one.
  std::shared_ptr<const Image> image() const;
  /// The picture of the right camera; null with one camera.
  std::shared_ptr<const Image> right_image() const;
  /// Throws UsageError before the first one.
  LiveField field() const;

 private:
  void start(const std::string& state, std::function<void(const std::stop_token&)> run);
  void show(const LiveOptions& options, const std::stop_token& stop);
  void follow(const CameraRequest& request, const std::stop_token& stop);
  void take(LiveFrame frame);
  void tell_settings(std::vector<CameraSetting> settings);

  std::mutex starting_;       ///< held while a thread replaces another
  mutable std::mutex mutex_;  ///< guards all members below except the thread
  std::string state_ = "idle", error_, output_;
  std::vector<std::string> notes_;
  std::vector<CameraSetting> settings_;
  std::shared_ptr<const Image> image_, right_;
  std::int64_t images_ = 0;  ///< number of images since it was opened
  std::shared_ptr<const Field> field_;
  std::string field_name_;
  int results_ = 0, field_number_ = 0;
  double scale_ = 0;
  Json line_;
  LiveDrops drops_;
  std::deque<Json> history_;  ///< the last ones
  std::jthread thread_;       ///< declared last: ends first
};

}  // namespace dic::app
