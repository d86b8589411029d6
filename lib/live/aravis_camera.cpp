#include "live/aravis_camera.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <span>
#include <string_view>
#include <utility>

#include "live/aravis_library.hpp"
#include "live/frame_ids.hpp"
#include "live/moving_specimen.hpp"
#include "live/pixel_format.hpp"

namespace dic::live {
namespace {

using arv::library;
using Clock = std::chrono::steady_clock;

constexpr const char* kFakeId = "Fake_1";
/// Names of cameras without hardware: one that sees a plane, and two that see a specimen in space.
constexpr std::string_view kFake = "fake", kFakeLeft = "fake-left", kFakeRight = "fake-right";
/// Side of the largest frame of a fake camera in px: larger ones take minutes to render.
constexpr int kLargestFake = 4096;
/// Silence of a camera after which it is asked whether it is still there.
constexpr std::chrono::seconds kSilence{2};

/// The error that a call of Aravis reports.
class Failure {
 public:
  Failure() = default;
  ~Failure() { library().g_clear_error(&error_); }
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  operator arv::GError**() { return &error_; }  // NOLINT: passed as the last argument of every call
  bool is_set() const { return error_ != nullptr; }
  /// True if the camera did not answer, or answers another program; false if it refused.
  bool means_lost() const {
    return error_ && error_->domain == library().arv_device_error_quark() &&
           (error_->code == arv::kNotConnected || error_->code == arv::kTimeout ||
            error_->code == arv::kNotController);
  }
  std::string text() const { return error_ ? error_->message : ""; }

 private:
  arv::GError* error_ = nullptr;
};

struct Unref {
  void operator()(void* object) const { library().g_object_unref(object); }
};
template <typename T>
using Owned = std::unique_ptr<T, Unref>;

std::string number_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

std::string text_of(const char* text) { return text ? text : ""; }

/// True if the camera confirms what it was told: cameras round numbers to their steps.
bool is_same(const std::string& asked, const std::string& actual) {
  if (asked == actual) return true;
  double a = 0, b = 0;
  const auto read = [](const std::string& text, double& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  return read(asked, a) && read(actual, b) && std::abs(a - b) <= 0.001 * std::abs(a);
}

const arv::Library& loaded_library() {
  if (!library().problem.empty()) throw DeviceError(library().problem);
  return library();
}

class AravisCamera final : public LiveCamera {
 public:
  AravisCamera(const std::string& name, const CameraSettings& settings) : wanted_(settings) {
    open(name);
    set_up();
    if (is_fake_) show_speckle();
    create_stream();
  }
  ~AravisCamera() override {
    if (is_running_) stop_acquisition();
    stream_.reset();
    if (handler_ != 0) lib_.g_signal_handler_disconnect(device(), handler_);
  }
  AravisCamera(const AravisCamera&) = delete;
  AravisCamera& operator=(const AravisCamera&) = delete;

  std::string name() const override { return name_; }
  std::vector<CameraSetting> settings() const override { return settings_; }

  void start() override {
    call("start", [&](Failure& failure) { lib_.arv_camera_start_acquisition(camera_.get(), failure); });
    is_running_ = true;
    last_sign_ = Clock::now();
  }

  std::optional<CameraFrame> next(std::chrono::milliseconds longest) override {
    const auto end = Clock::now() + longest;
    do {
      const auto left = std::chrono::duration_cast<std::chrono::microseconds>(end - Clock::now()).count();
      arv::Buffer* buffer = lib_.arv_stream_timeout_pop_buffer(
          stream_.get(), static_cast<std::uint64_t>(std::max<std::int64_t>(left, 0)));
      if (is_lost_) {
        if (buffer) lib_.g_object_unref(buffer);
        throw_lost();
      }
      if (!buffer) {
        check_presence();
        continue;
      }
      last_sign_ = Clock::now();
      std::optional<CameraFrame> frame = take(buffer);
      lib_.arv_stream_push_buffer(stream_.get(), buffer);
      if (frame) return frame;
    } while (Clock::now() < end);
    return {};
  }

  void trigger() override {
    call("trigger", [&](Failure& failure) { lib_.arv_camera_software_trigger(camera_.get(), failure); });
  }

  std::int64_t produced() const override { return produced_; }
  LiveDrops losses() const override { return losses_; }

  void stop() override {
    is_running_ = false;
    stop_acquisition();
  }

 private:
  arv::Device* device() const { return lib_.arv_camera_get_device(camera_.get()); }

  /// Does not ask a camera that has vanished: Aravis would wait seconds for an answer.
  void stop_acquisition() {
    if (is_lost_) return;
    Failure ignored;  // the camera may have vanished just now
    lib_.arv_camera_stop_acquisition(camera_.get(), ignored);
  }

  [[noreturn]] void throw_lost() {
    is_lost_ = true;
    throw CameraLost("The camera " + name_ + " has vanished.");
  }

  template <typename Call>
  void call(const std::string& what, const Call& make) {
    Failure failure;
    make(failure);
    if (!failure.is_set()) return;
    if (is_lost_ || failure.means_lost()) throw_lost();
    throw DeviceError("The camera " + name_ + " refuses (" + what + ": " + failure.text() +
                      "): check its settings and its connection.");
  }

  void open(const std::string& name) {
    is_fake_ = name == kFake || name == kFakeLeft || name == kFakeRight;
    name_ = name;
    Failure failure;
    camera_.reset(lib_.arv_camera_new(is_fake_ ? kFakeId : name.c_str(), failure));
    if (failure.is_set() || !camera_)
      throw DeviceError(
          "There is no camera " + name + (failure.is_set() ? " (" + failure.text() + ")" : "") +
          ": the list of cameras shows what is connected, and an address works beyond routers.");
    Failure ignored;
    is_gigabit_ = lib_.arv_camera_is_gv_device(camera_.get()) != 0;
    if (is_gigabit_ && lib_.arv_gv_device_is_controller(device()) == 0)
      throw DeviceError(
          "The camera " + name +
          " is controlled by another program: close that one first, one program at a time sets a "
          "camera up.");
    handler_ = lib_.g_signal_connect_data(
        device(), "control-lost",
        [](arv::Device*, void* lost) { *static_cast<std::atomic<bool>*>(lost) = true; }, &is_lost_, nullptr,
        0);
  }

  void set_up() {
    for (const auto& [feature, value] : wanted_.features) set_feature(feature, value);
    Failure ignored;
    lib_.arv_camera_set_acquisition_mode(camera_.get(), 0, ignored);  // continuous
    set_region();
    set_format();
    set_number("frame rate", wanted_.frame_rate, lib_.arv_camera_is_frame_rate_available,
               lib_.arv_camera_set_frame_rate, lib_.arv_camera_get_frame_rate);
    set_number("exposure", wanted_.exposure, lib_.arv_camera_is_exposure_time_available,
               lib_.arv_camera_set_exposure_time, lib_.arv_camera_get_exposure_time);
    set_number("gain", wanted_.gain, lib_.arv_camera_is_gain_available, lib_.arv_camera_set_gain,
               lib_.arv_camera_get_gain);
    set_trigger();
  }

  void add(const std::string& name, const std::string& asked, const std::string& actual) {
    settings_.push_back({name, asked, actual, asked.empty() || is_same(asked, actual)});
  }

  void set_feature(const std::string& feature, const std::string& value) {
    arv::Node* node = lib_.arv_device_get_feature(device(), feature.c_str());
    if (!node)
      throw UsageError("The camera " + name_ + " has no feature " + feature +
                       ": its manual lists them, with the names of GenICam.");
    Failure failure;
    lib_.arv_gc_feature_node_set_value_from_string(node, value.c_str(), failure);
    if (failure.is_set())
      throw UsageError("The camera " + name_ + " does not take " + value + " for " + feature + " (" +
                       failure.text() + ").");
    Failure unread;
    add(feature, value, text_of(lib_.arv_gc_feature_node_get_value_as_string(node, unread)));
  }

  void set_region() {
    if (const auto& region = wanted_.region) {
      Failure failure;
      lib_.arv_camera_set_region(camera_.get(), region->x, region->y, region->width, region->height, failure);
      if (failure.is_set())
        throw UsageError("The camera " + name_ + " does not take the region " + text_of_region(*region) +
                         " (" + failure.text() + "): widths and offsets often have steps of 8 or 16 px.");
    }
    Roi::Rect actual;
    call("region", [&](Failure& failure) {
      lib_.arv_camera_get_region(camera_.get(), &actual.x, &actual.y, &actual.width, &actual.height, failure);
    });
    size_ = {actual.width, actual.height};
    add("region", wanted_.region ? text_of_region(*wanted_.region) : "", text_of_region(actual));
  }

  static std::string text_of_region(const Roi::Rect& region) {
    return std::to_string(region.x) + "," + std::to_string(region.y) + "," + std::to_string(region.width) +
           "," + std::to_string(region.height);
  }

  void set_format() {
    if (!wanted_.format.empty()) {
      Failure failure;
      lib_.arv_camera_set_pixel_format_from_string(camera_.get(), wanted_.format.c_str(), failure);
      if (failure.is_set())
        throw UsageError("The camera " + name_ + " has no pixel format " + wanted_.format + " (" +
                         failure.text() + "): Mono8 is the most common one.");
    }
    Failure unread;
    add("format", wanted_.format, text_of(lib_.arv_camera_get_pixel_format_as_string(camera_.get(), unread)));
  }

  void set_number(const char* name, const std::optional<double>& value,
                  int (*is_available)(arv::Camera*, arv::GError**),
                  void (*set)(arv::Camera*, double, arv::GError**),
                  double (*get)(arv::Camera*, arv::GError**)) {
    Failure unknown;
    if (is_available(camera_.get(), unknown) == 0) {
      if (value) throw UsageError("The camera " + name_ + " has no " + name + " to set.");
      return;
    }
    if (value) {
      Failure failure;
      set(camera_.get(), *value, failure);
      if (failure.is_set())
        throw UsageError("The camera " + name_ + " does not take " + number_text(*value) + " for its " +
                         name + " (" + failure.text() + ").");
    }
    Failure unread;
    const double actual = get(camera_.get(), unread);
    if (!unread.is_set()) add(name, value ? number_text(*value) : "", number_text(actual));
  }

  void set_trigger() {
    if (wanted_.trigger == "free") {
      Failure ignored;  // cameras without triggers run freely
      lib_.arv_camera_clear_triggers(camera_.get(), ignored);
      return;
    }
    const std::string source = wanted_.trigger == "software" ? "Software" : wanted_.trigger;
    Failure failure;
    lib_.arv_camera_set_trigger(camera_.get(), source.c_str(), failure);
    if (failure.is_set())
      throw UsageError("The camera " + name_ + " has no trigger " + wanted_.trigger + " (" + failure.text() +
                       ").");
    Failure unread;
    add("trigger", source, text_of(lib_.arv_camera_get_trigger_source(camera_.get(), unread)));
  }

  void show_speckle() {
    if (size_.width > kLargestFake || size_.height > kLargestFake)
      throw UsageError("The fake camera has at most " + std::to_string(kLargestFake) + " x " +
                       std::to_string(kLargestFake) + " px: choose a smaller region.");
    speckle_ = std::make_unique<MovingSpeckle>(
        name_ == kFake ? MovingSpeckle(size_) : frames_of_specimen(size_, name_ == kFakeLeft ? 0 : 1));
    filler_.reset(lib_.arv_fake_camera_new("filler"));
    lib_.arv_fake_camera_write_register(filler_.get(), arv::kFakeWidth,
                                        static_cast<std::uint32_t>(size_.width));
    lib_.arv_fake_camera_write_register(filler_.get(), arv::kFakeHeight,
                                        static_cast<std::uint32_t>(size_.height));
    lib_.arv_fake_camera_set_fill_pattern(lib_.arv_fake_device_get_fake_camera(device()), fill, this);
  }

  /// Called by Aravis's thread of the fake camera with a buffer that has its id and times. Only Aravis itself
  /// can say in the buffer how much was received: another fake camera does it.
  static void fill(arv::Buffer* buffer, void* data, std::uint32_t, std::uint32_t, std::uint32_t format) {
    auto& self = *static_cast<AravisCamera*>(data);
    const arv::Library& lib = self.lib_;
    const std::uint64_t id = lib.arv_buffer_get_frame_id(buffer), time = lib.arv_buffer_get_timestamp(buffer),
                        system_time = lib.arv_buffer_get_system_timestamp(buffer);
    lib.arv_fake_camera_write_register(self.filler_.get(), arv::kFakePixelFormat, format);
    lib.arv_fake_camera_fill_buffer(self.filler_.get(), buffer, nullptr);
    lib.arv_buffer_set_frame_id(buffer, id);
    lib.arv_buffer_set_timestamp(buffer, time);
    lib.arv_buffer_set_system_timestamp(buffer, system_time);
    std::size_t bytes = 0;
    auto* pixels = static_cast<std::uint8_t*>(const_cast<void*>(lib.arv_buffer_get_data(buffer, &bytes)));
    const Image& image = self.speckle_->frame(self.shown_.unwrap(id));
    const auto count = static_cast<std::size_t>(image.width()) * static_cast<std::size_t>(image.height());
    const auto* grey = image.row<std::uint8_t>(0);
    if (bytes >= 2 * count) {  // Mono16
      for (std::size_t k = 0; k < count; ++k) pixels[2 * k] = pixels[2 * k + 1] = grey[k];
    } else {
      std::copy_n(grey, std::min(bytes, count), pixels);
    }
  }

  void create_stream() {
    unsigned payload = 0;
    call("payload", [&](Failure& failure) { payload = lib_.arv_camera_get_payload(camera_.get(), failure); });
    call("stream", [&](Failure& failure) {
      stream_.reset(lib_.arv_camera_create_stream(camera_.get(), nullptr, nullptr, failure));
    });
    if (!stream_) throw DeviceError("The camera " + name_ + " gives no stream of frames.");
    for (int k = 0; k < wanted_.buffers; ++k)
      lib_.arv_stream_push_buffer(stream_.get(), lib_.arv_buffer_new_allocate(payload));
  }

  /// Asks a camera that sends nothing whether it is still there: it may wait for a trigger, or expose long.
  /// Not by GigE Vision, where Aravis asks every second on a thread of its own and says within 6 s that the
  /// camera is lost: a question from here would make it wait for its turn, twice as long.
  void check_presence() {
    if (is_gigabit_ || Clock::now() - last_sign_ < kSilence) return;
    last_sign_ = Clock::now();
    Failure failure;
    int x = 0, y = 0, width = 0, height = 0;
    lib_.arv_camera_get_region(camera_.get(), &x, &y, &width, &height, failure);
    if (failure.is_set() || is_lost_) throw_lost();
  }

  /// The frame in a buffer; none if it is not whole. Its id may then be missing, so that it is counted with
  /// the next whole frame.
  std::optional<CameraFrame> take(arv::Buffer* buffer) {
    const int status = lib_.arv_buffer_get_status(buffer);
    if (status == arv::kBufferSizeMismatch)
      throw DeviceError("The camera " + name_ +
                        " sends frames of another size than it said: set its region and format anew.");
    if (status != arv::kBufferSuccess) {
      ++incomplete_;
      return {};
    }
    const std::int64_t id = ids_.unwrap(lib_.arv_buffer_get_frame_id(buffer));
    count_gap(id);
    std::size_t bytes = 0;
    const auto* data = static_cast<const std::uint8_t*>(lib_.arv_buffer_get_data(buffer, &bytes));
    CameraFrame frame;
    frame.image = std::make_shared<const Image>(image_of(
        {data, bytes}, {lib_.arv_buffer_get_image_width(buffer), lib_.arv_buffer_get_image_height(buffer)},
        lib_.arv_buffer_get_image_pixel_format(buffer)));
    frame.id = id;
    frame.camera_time = static_cast<std::int64_t>(lib_.arv_buffer_get_timestamp(buffer));
    frame.received =
        std::chrono::system_clock::time_point(std::chrono::duration_cast<std::chrono::system_clock::duration>(
            std::chrono::nanoseconds(lib_.arv_buffer_get_system_timestamp(buffer))));
    return frame;
  }

  /// Finds the causes for the frames between the last whole one and this: they were incomplete, or Aravis had
  /// no buffer, or nothing of them arrived, which it counts for GigE Vision. Its fake camera gives no id to a
  /// frame without a buffer.
  void count_gap(std::int64_t id) {
    std::int64_t gap = last_id_ ? std::max<std::int64_t>(id - *last_id_ - 1, 0) : 0;
    last_id_ = id;
    std::uint64_t completed = 0, failures = 0, underruns = 0;
    lib_.arv_stream_get_statistics(stream_.get(), &completed, &failures, &underruns);
    if (is_fake_) gap = static_cast<std::int64_t>(underruns - underruns_);
    produced_ += 1 + gap;
    // Takes those of the gap that a counter has counted since the last one.
    const auto explained = [&gap](std::uint64_t total, std::uint64_t& known) {
      const std::int64_t found = std::min(static_cast<std::int64_t>(total - known), gap);
      known = total;
      gap -= found;
      return found;
    };
    losses_.network += explained(incomplete_, known_incomplete_);
    losses_.no_buffer += explained(underruns, underruns_);
    if (is_gigabit_)
      losses_.network += explained(lib_.arv_stream_get_info_uint64_by_name(stream_.get(), "n_missing_frames"),
                                   missing_frames_);
    losses_.camera += gap;
  }

  const arv::Library& lib_ = loaded_library();
  CameraSettings wanted_;
  std::string name_;
  bool is_fake_ = false, is_gigabit_ = false, is_running_ = false;
  std::atomic<bool> is_lost_ = false;
  unsigned long handler_ = 0;
  Size size_;
  std::vector<CameraSetting> settings_;
  std::unique_ptr<MovingSpeckle> speckle_;
  Owned<arv::FakeCamera> filler_;
  Owned<arv::Camera> camera_;
  Owned<arv::Stream> stream_;  ///< ends before the camera
  FrameIds ids_;
  std::optional<std::int64_t> last_id_;
  std::uint64_t incomplete_ = 0;                                             ///< frames that were not whole
  std::uint64_t known_incomplete_ = 0, underruns_ = 0, missing_frames_ = 0;  ///< those that are explained
  std::int64_t produced_ = 0;
  LiveDrops losses_;
  FrameIds shown_;  ///< ids of the frames that the fake camera fills
  Clock::time_point last_sign_;
};

}  // namespace

std::unique_ptr<LiveCamera> open_aravis_camera(const std::string& name, const CameraSettings& settings) {
  return std::make_unique<AravisCamera>(name, settings);
}

void list_aravis_cameras(CameraList& list) {
  if (!library().problem.empty()) {
    list.problems.push_back(library().problem);
    return;
  }
  library().arv_update_device_list();
  for (unsigned k = 0; k < library().arv_get_n_devices(); ++k) {
    CameraInfo info;
    info.id = text_of(library().arv_get_device_id(k));
    if (info.id == kFakeId) info.id = kFake;
    info.address = text_of(library().arv_get_device_address(k));
    info.protocol = text_of(library().arv_get_device_protocol(k));
    info.vendor = text_of(library().arv_get_device_vendor(k));
    info.model = text_of(library().arv_get_device_model(k));
    info.serial = text_of(library().arv_get_device_serial_nbr(k));
    list.cameras.push_back(std::move(info));
  }
}

}  // namespace dic::live
