#include "view/camera_run.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <optional>
#include <string_view>
#include <utility>

namespace dic::app {
namespace {

/// Settings of a camera that a page may change. Ports are opened on the command line alone.
constexpr std::string_view kAllowed[] = {"camera",       "set",
                                         "region",       "format",
                                         "fps",          "exposure",
                                         "gain",         "trigger",
                                         "buffers",      "drop",
                                         "record",       "lost",
                                         "extensometer", "only-extensometers",
                                         "right-camera", "calibration",
                                         "axes",         "axes-points",
                                         "correct-rig",  "remove-rigid-motion"};
constexpr std::size_t kMostValues = 200, kLongestValue = 500;
constexpr std::size_t kMostHistory = 100'000;  ///< results
constexpr std::size_t kMostInAnswer = 5000;    ///< results
constexpr std::size_t kMostNotes = 20;
constexpr std::chrono::milliseconds kTick{100};

void set(LiveOptions& options, const std::string& name, const Json& value) {
  if (!value.is_string()) throw UsageError("The setting " + name + " of a camera has to be text.");
  const std::string text = value.get<std::string>();
  if (text.size() > kLongestValue || text.find('\0') != std::string::npos)
    throw UsageError("The setting " + name + " of a camera is too long, or has a null character.");
  if (text.empty()) return;
  try {
    set_live_option(options, name, text);
  } catch (const UsageError& e) {  // the library's sentence goes on on a command line
    throw UsageError("The setting " + std::string(e.what()) + ".");
  }
}

LiveOptions live_options(const Json& asked) {
  if (!asked.is_object()) throw UsageError("The page asked without a camera.");
  LiveOptions options;
  for (const auto& [name, value] : asked.items()) {
    if (std::ranges::find(kAllowed, name) == std::end(kAllowed))
      throw UsageError("A camera has no setting \"" + name + "\" that the page may change.");
    if (!value.is_array()) {
      set(options, name, value);
      continue;
    }
    if (value.size() > kMostValues) throw UsageError("The setting " + name + " has more than 200 values.");
    for (const Json& one : value) set(options, name, one);
  }
  return options;
}

/// The options for looking at cameras, which needs no calibration yet; the others are checked as they are.
LiveOptions without_calibration(LiveOptions options) {
  options.stereo = {};
  options.calibration = options.right_camera.empty() ? "" : "given later";
  return options;
}

Json drops_json(const LiveDrops& drops) {
  return {{"camera", drops.camera},
          {"network", drops.network},
          {"no_buffer", drops.no_buffer},
          {"measuring", drops.measuring},
          {"recorder", drops.recorder}};
}

/// As a measurement with two cameras names them.
std::vector<CameraSetting> settings_of_both(std::vector<CameraSetting> left,
                                            const std::vector<CameraSetting>& right) {
  for (CameraSetting setting : right) {
    setting.name = "right " + setting.name;
    left.push_back(std::move(setting));
  }
  return left;
}

Json history_entry(const LiveFrame& frame, const Json& line) {
  Json entry = {frame.number, frame.time};
  for (const Json& gauge : line.value("extensometers", Json::array()))
    entry.push_back(gauge.value("strain", Json()));
  return entry;
}

}  // namespace

CameraRequest camera_request(const Json& asked, const AllowedFolders& folders, CameraUse use) {
  CameraRequest request;
  request.options = live_options(asked.value("camera", Json()));
  request.job = job_from(asked.value("toml", std::string()), folders);
  request.job.pictures = Pictures::none;  // drawing takes the time that frames need
  if (!asked.value("keep", false)) request.job.output.clear();
  if (!request.options.record.empty()) folders.check(request.options.record, "The folder of the recording");
  if (!request.options.calibration.empty()) folders.check(request.options.calibration, "The calibration");
  TrackJob checked = request.job;
  checked.frames = {request.options.camera};
  const LiveOptions needed = use == CameraUse::look ? without_calibration(request.options) : request.options;
  for (const auto& problems : {needed.validate(), checked.validate()})
    for (const std::string& problem : problems) throw UsageError(problem);
  return request;
}

Json camera_list() {
  static std::mutex one_at_a_time;
  const std::lock_guard alone(one_at_a_time);
  const CameraList found = list_cameras();
  Json cameras = Json::array();
  for (const CameraInfo& camera : found.cameras)
    cameras.push_back({{"id", camera.id},
                       {"address", camera.address},
                       {"protocol", camera.protocol},
                       {"vendor", camera.vendor},
                       {"model", camera.model},
                       {"serial", camera.serial}});
  return {{"cameras", cameras}, {"problems", found.problems}};
}

void CameraRun::start(const std::string& state, std::function<void(const std::stop_token&)> run) {
  const std::lock_guard alone(starting_);
  thread_ = {};  // two programs, or threads, cannot control one camera
  const std::lock_guard lock(mutex_);
  state_ = state;
  error_.clear();
  output_.clear();
  notes_.clear();
  settings_.clear();
  image_ = right_ = nullptr;
  images_ = 0;
  field_ = nullptr;
  results_ = field_number_ = 0;
  line_ = {};
  drops_ = {};
  history_.clear();
  thread_ = std::jthread([this, run = std::move(run)](const std::stop_token& stop) {
    std::string error;
    try {
      run(stop);
    } catch (const std::exception& e) {
      error = e.what();
    }
    const std::lock_guard ended(mutex_);
    state_ = error.empty() ? "ended" : "failed";
    error_ = error;
  });
}

void CameraRun::look(LiveOptions options) {
  start("looking",
        [this, options = std::move(options)](const std::stop_token& stop) { show(options, stop); });
}

void CameraRun::measure(CameraRequest request) {
  start("measuring",
        [this, request = std::move(request)](const std::stop_token& stop) { follow(request, stop); });
}

void CameraRun::stop() {
  const std::lock_guard alone(starting_);
  thread_.request_stop();
}

bool CameraRun::measuring() const {
  const std::lock_guard lock(mutex_);
  return state_ == "measuring";
}

void CameraRun::show(const LiveOptions& options, const std::stop_token& stop) {
  CameraView camera(options.camera, options.settings);
  std::optional<CameraView> right;
  if (!options.right_camera.empty()) right.emplace(options.right_camera, options.settings);
  tell_settings(right ? settings_of_both(camera.settings(), right->settings()) : camera.settings());
  while (!stop.stop_requested()) {
    auto image = camera.next(kTick), right_image = right ? right->next(kTick) : nullptr;
    if (!image && !right_image) continue;
    const std::lock_guard lock(mutex_);
    if (image) image_ = std::move(image);
    if (right_image) right_ = std::move(right_image);
    ++images_;
  }
}

void CameraRun::follow(const CameraRequest& request, const std::stop_token& stop) {
  LiveStream stream(request.job, request.options);
  tell_settings(stream.settings());
  {
    const std::lock_guard lock(mutex_);
    scale_ = request.job.scale();
  }
  const std::stop_callback on_stop(stop, [&] { stream.stop(); });
  while (std::optional<LiveFrame> frame = stream.next()) take(std::move(*frame));
  const LiveSummary summary = stream.finish();
  const std::lock_guard lock(mutex_);
  drops_ = summary.drops;
  output_ = request.job.output.string();
  if (!summary.problem.empty()) notes_.push_back(summary.problem);
}

void CameraRun::tell_settings(std::vector<CameraSetting> settings) {
  const std::lock_guard lock(mutex_);
  settings_ = std::move(settings);
}

void CameraRun::take(LiveFrame frame) {
  if (!frame.event.empty()) {
    const std::lock_guard lock(mutex_);
    if (!frame.text.empty() && notes_.size() < kMostNotes) notes_.push_back(std::move(frame.text));
    return;
  }
  Json line = Json::parse(frame.line, nullptr, false);
  Json entry = history_entry(frame, line);
  const std::lock_guard lock(mutex_);
  image_ = std::move(frame.image);
  right_ = std::move(frame.right);
  ++images_;
  results_ = frame.number;
  if (frame.field) {
    field_ = std::move(frame.field);
    field_number_ = frame.number;
    field_name_ = std::move(frame.name);
  }
  line_ = std::move(line);
  drops_.camera += frame.drops.camera;
  drops_.network += frame.drops.network;
  drops_.no_buffer += frame.drops.no_buffer;
  drops_.measuring += frame.drops.measuring;
  drops_.recorder += frame.drops.recorder;
  history_.push_back(std::move(entry));
  if (history_.size() > kMostHistory) history_.pop_front();
}

Json CameraRun::progress(std::int64_t from) const {
  const std::lock_guard lock(mutex_);
  Json settings = Json::array(), history = Json::array();
  for (const CameraSetting& setting : settings_)
    settings.push_back({{"name", setting.name},
                        {"asked", setting.asked},
                        {"actual", setting.actual},
                        {"is_kept", setting.is_kept}});
  const auto first = std::ranges::lower_bound(history_, from, {},
                                              [](const Json& entry) { return entry[0].get<std::int64_t>(); });
  for (auto at = first; at != history_.end() && history.size() < kMostInAnswer; ++at) history.push_back(*at);
  return {{"has_right", right_ != nullptr},
          {"state", state_},
          {"error", error_},
          {"notes", notes_},
          {"settings", settings},
          {"image", images_},
          {"field", field_number_},
          {"line", line_},
          {"results", results_},
          {"drops", drops_json(drops_)},
          {"output", output_},
          {"history", history}};
}

std::shared_ptr<const Image> CameraRun::image() const {
  const std::lock_guard lock(mutex_);
  return image_;
}

std::shared_ptr<const Image> CameraRun::right_image() const {
  const std::lock_guard lock(mutex_);
  return right_;
}

LiveField CameraRun::field() const {
  const std::lock_guard lock(mutex_);
  if (!field_) throw UsageError("There is no field of the camera yet.");
  return {*field_, field_number_, field_name_, scale_};
}

}  // namespace dic::app
