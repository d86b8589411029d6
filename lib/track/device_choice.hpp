#pragma once

#include <cstdint>
#include <dic/track.hpp>
#include <future>
#include <string>

namespace dic::track {

/// Where a sequence is measured, and why there.
struct DeviceChoice {
  std::string device;  ///< "cpu", "cuda:0", ...
  std::string reason;  ///< one sentence
};

/// For `points` points in every frame. TrackOptions::device "auto" takes the first GPU where there is one and
/// the CPU, with its threads, needs longer for the expected frames than a GPU for its start.
DeviceChoice choose_device(const TrackOptions& options, std::int64_t points);

/// Starts the GPU that will be chosen, in the background; does nothing where the choice is not sure yet.
/// image_bytes: of an image's file; 0 = unknown. Failures are reported when the GPU is used.
std::future<void> start_device(const TrackOptions& options, std::uintmax_t image_bytes);

}  // namespace dic::track
