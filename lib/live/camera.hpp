#pragma once

#include <chrono>
#include <cstdint>
#include <dic/error.hpp>
#include <dic/image.hpp>
#include <dic/live.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dic::live {

/// A camera that was there has vanished, or another program has taken it.
class CameraLost : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// A whole frame.
struct CameraFrame {
  std::shared_ptr<const Image> image;
  std::shared_ptr<const Image> right;  ///< image of the right camera; null with one camera
  std::int64_t id = 0;                 ///< unwrapped, from any number on
  std::int64_t camera_time = 0;        ///< ns, by the clock of the camera
  std::chrono::system_clock::time_point received;
};

/// A source of frames. Calls must not overlap.
class LiveCamera {
 public:
  virtual ~LiveCamera() = default;
  virtual std::string name() const = 0;
  /// Settings as read back.
  virtual std::vector<CameraSetting> settings() const = 0;
  virtual void start() = 0;
  /// Waits for the next whole frame, at most for the given time. Throws CameraLost and DeviceError.
  virtual std::optional<CameraFrame> next(std::chrono::milliseconds longest) = 0;
  /// Asks for a frame, with the trigger `software`.
  virtual void trigger() {}
  /// Number of frames that the camera made, by its own numbers, up to the last one that has arrived.
  virtual std::int64_t produced() const = 0;
  /// Those of them that next() has not returned.
  virtual LiveDrops losses() const = 0;
  virtual void stop() = 0;
};

/// Opens a camera and sets it up. Throws UsageError for settings, DeviceError.
std::unique_ptr<LiveCamera> open_camera(const std::string& name, const CameraSettings& settings);

}  // namespace dic::live
