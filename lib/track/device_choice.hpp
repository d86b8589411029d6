#pragma once

#include <cstdint>
#include <dic/track.hpp>
#include <future>
#include <string>

namespace dic::track {

/// The device that measures a sequence, and the reason for it.
struct DeviceChoice {
  std::string device;  ///< "cpu", "cuda:0", ...
  std::string reason;  ///< why this device, one sentence
};

/// Chooses the device for `points` points in every frame. TrackOptions::device "auto" takes the first GPU if
/// there is one, and if the CPU with its threads needs longer for the expected frames than a GPU needs to
/// start.
DeviceChoice choose_device(const TrackOptions& options, std::int64_t points);

/// Starts the GPU that will be chosen, in the background; does nothing if the choice is not certain yet.
/// image_bytes: size of an image file; 0 = unknown. Failures are reported when the GPU is used.
std::future<void> start_device(const TrackOptions& options, std::uintmax_t image_bytes);

}  // namespace dic::track
