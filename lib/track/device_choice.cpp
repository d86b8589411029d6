#include "track/device_choice.hpp"

#include "core/cuda_devices.hpp"
#include "core/device_name.hpp"

namespace dic::track {
namespace {

/// Starting a GPU takes as long as a few cores need for so many points in a few frames.
constexpr std::int64_t kPointsForGpu = 5000;

}  // namespace

DeviceChoice choose_device(const std::string& wanted, std::int64_t points) {
  if (wanted != "auto") return {wanted, "It was asked for."};
  if (points < kPointsForGpu)
    return {"cpu", "Automatic: " + std::to_string(points) + " points are measured before a GPU is ready."};
  std::string none;
  const auto devices = cuda_devices(none);
  if (devices.empty()) return {"cpu", "Automatic: " + none};
  return {devices.front().name, "Automatic: " + std::to_string(points) + " points are worth a GPU."};
}

std::future<void> start_device(const std::string& wanted, std::uintmax_t image_bytes, int step) {
  constexpr std::uintmax_t channels = 3;  // colour that is not compressed; else the pixels are more
  const std::uintmax_t points = image_bytes / channels / step / step;
  const bool automatic = wanted == "auto";
  if (wanted == "cpu" || (automatic && points < kPointsForGpu)) return {};
  return std::async(std::launch::async, [device = automatic ? "cuda" : wanted] {
    start_cuda(parse_tracking_device(device).ordinals);
  });
}

}  // namespace dic::track
