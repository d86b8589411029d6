#include "track/device_choice.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/cuda_devices.hpp"
#include "core/device_name.hpp"

namespace dic::track {
namespace {

/// Time until driver, context and kernels of a GPU are ready, s: 0.25 to 0.45 on machines with an H100.
constexpr double kGpuStart = 0.3;
/// Points per second of one thread. n threads measure at least n^0.75 times as many: 703,000 with 16, 807,000
/// with 32 (Xeon, 2048x2048 px, 2026-11-27).
constexpr double kPointsPerSecond = 60e3;
constexpr double kGainOfThreads = 0.75;
constexpr std::int64_t kSomeFrames = 20;

bool is_worth_gpu(const TrackOptions& options, std::int64_t points) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const double threads = options.threads > 0 ? options.threads : cores;
  const std::int64_t frames = options.expected_frames > 0 ? options.expected_frames : kSomeFrames;
  return static_cast<double>(points * frames) >
         kGpuStart * kPointsPerSecond * std::pow(threads, kGainOfThreads);
}

}  // namespace

DeviceChoice choose_device(const TrackOptions& options, std::int64_t points) {
  if (options.device != "auto") return {options.device, "It was asked for."};
  if (!is_worth_gpu(options, points))
    return {"cpu", "Automatic: " + std::to_string(points) + " points are measured before a GPU is ready."};
  std::string none;
  const auto devices = core::cuda_devices(none);
  if (devices.empty()) return {"cpu", "Automatic: " + none};
  return {devices.front().name, "Automatic: " + std::to_string(points) + " points are worth a GPU."};
}

std::future<void> start_device(const TrackOptions& options, std::uintmax_t image_bytes) {
  constexpr std::uintmax_t channels = 3;  // uncompressed colour; other files hold more pixels
  const auto points = static_cast<std::int64_t>(image_bytes / channels / options.step / options.step);
  const bool automatic = options.device == "auto";
  if (options.device == "cpu" || (automatic && !is_worth_gpu(options, points))) return {};
  return std::async(std::launch::async, [device = automatic ? "cuda" : options.device] {
    core::start_cuda(core::parse_tracking_device(device).ordinals);
  });
}

}  // namespace dic::track
