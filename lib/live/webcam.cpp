#include "live/webcam.hpp"

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <utility>

#include "image/codecs.hpp"
#include "image/opencv_codecs.hpp"
#include "image/webcam.hpp"

namespace dic::live {
namespace {

using image::Webcam;

/// Silence after which a webcam has vanished: OpenCV itself waits 10 s.
constexpr std::chrono::seconds kSilence{5};

std::unique_ptr<Webcam> opened(const std::string& name) {
  try {
    if (auto camera = image::opencv_codecs().open_webcam(name)) return camera;
  } catch (const image::Refusal& refusal) {
    throw DeviceError("A webcam " + std::string(refusal.what()));
  }
  throw DeviceError("There is no webcam " + name +
                    ", or another program uses it: the list of cameras shows what is connected.");
}

/// Frames of a webcam, numbered as this computer receives them: what the driver loses is not known.
class OpenCvCamera final : public LiveCamera {
 public:
  OpenCvCamera(const std::string& name, const CameraSettings& settings)
      : name_("webcam:" + name), camera_(opened(name)) {
    set_up(settings);
  }
  ~OpenCvCamera() override { stop(); }
  OpenCvCamera(const OpenCvCamera&) = delete;
  OpenCvCamera& operator=(const OpenCvCamera&) = delete;

  std::string name() const override { return name_; }
  std::vector<CameraSetting> settings() const override { return settings_; }

  void start() override {
    reader_ = std::jthread([this](const std::stop_token& ending) { read(ending); });
  }

  std::optional<CameraFrame> next(std::chrono::milliseconds longest) override {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [&] { return frame_ || has_ended_; });
    if (frame_) {
      last_sign_ = std::chrono::steady_clock::now();
      produced_ = frame_->id;
      losses_.no_buffer = replaced_;
      return std::exchange(frame_, {});
    }
    if (has_ended_ || std::chrono::steady_clock::now() - last_sign_ > kSilence)
      throw CameraLost("The camera " + name_ + " has vanished.");
    return {};
  }

  std::int64_t produced() const override { return produced_; }
  LiveDrops losses() const override { return losses_; }

  void stop() override {
    if (reader_.joinable()) {
      reader_.request_stop();
      reader_.join();
    }
  }

 private:
  void set_up(const CameraSettings& settings) {
    if (!settings.features.empty())
      throw UsageError("A webcam has no features of GenICam: give size, frame rate, exposure and gain.");
    if (!settings.format.empty())
      throw UsageError("The pixel format of a webcam cannot be chosen: its frames become 8-bit grey.");
    if (settings.trigger != "free") throw UsageError("A webcam has no trigger: it runs freely.");
    if (const auto& region = settings.region) {
      if (region->x != 0 || region->y != 0)
        throw UsageError("The region of a webcam begins at 0,0: give 0,0,width,height.");
      camera_->set(Webcam::Property::width, region->width);
      camera_->set(Webcam::Property::height, region->height);
    }
    add_size(settings);
    add("frame rate", Webcam::Property::frame_rate, settings.frame_rate);
    add("exposure", Webcam::Property::exposure, settings.exposure);
    add("gain", Webcam::Property::gain, settings.gain);
  }

  static std::string text_of(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
  }

  void add_size(const CameraSettings& settings) {
    const auto text = [](double width, double height) {
      return "0,0," + text_of(width) + "," + text_of(height);
    };
    const std::string actual =
        text(camera_->get(Webcam::Property::width), camera_->get(Webcam::Property::height));
    const std::string asked = settings.region ? text(settings.region->width, settings.region->height) : "";
    settings_.push_back({"region", asked, actual, asked.empty() || asked == actual});
  }

  void add(const char* name, Webcam::Property property, const std::optional<double>& value) {
    if (value) camera_->set(property, *value);
    const double actual = camera_->get(property);
    settings_.push_back(
        {name, value ? text_of(*value) : "", text_of(actual), !value || text_of(*value) == text_of(actual)});
  }

  /// Reads on a thread of its own, since OpenCV waits long for a webcam that has vanished.
  void read(const std::stop_token& ending) {
    while (!ending.stop_requested()) {
      std::optional<Image> image = camera_->next();
      const std::lock_guard lock(mutex_);
      has_ended_ = !image;
      if (image) {
        if (frame_) ++replaced_;
        CameraFrame frame;
        frame.image = std::make_shared<const Image>(std::move(*image));
        frame.id = ++read_;
        frame.received = std::chrono::system_clock::now();
        frame.camera_time = (std::chrono::steady_clock::now() - begin_) / std::chrono::nanoseconds(1);
        frame_ = std::move(frame);
      }
      changed_.notify_all();
      if (has_ended_) return;
    }
  }

  std::string name_;
  std::unique_ptr<Webcam> camera_;
  std::vector<CameraSetting> settings_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now(), last_sign_ = begin_;
  std::int64_t produced_ = 0;
  LiveDrops losses_;
  std::mutex mutex_;  ///< guards all members below
  std::condition_variable changed_;
  std::optional<CameraFrame> frame_;
  std::int64_t read_ = 0, replaced_ = 0;
  bool has_ended_ = false;
  std::jthread reader_;  ///< declared last, so that it ends before the members it uses are destroyed
};

}  // namespace

std::unique_ptr<LiveCamera> open_webcam(const std::string& name, const CameraSettings& settings) {
  return std::make_unique<OpenCvCamera>(name, settings);
}

void list_webcams(CameraList& list) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/video4linux", none)) {
    const std::string device = entry.path().filename().string();  // "video0"
    CameraInfo info;
    info.id = "webcam:" + device.substr(device.find_first_of("0123456789"));
    info.address = "/dev/" + device;
    info.protocol = "webcam";
    std::ifstream name(entry.path() / "name");
    std::getline(name, info.model);
    list.cameras.push_back(std::move(info));
  }
}

}  // namespace dic::live
