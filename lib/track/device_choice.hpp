#pragma once

#include <cstdint>
#include <string>

namespace dic::track {

/// Where a sequence is measured, and why there.
struct DeviceChoice {
  std::string device;  ///< "cpu", "cuda:0", ...
  std::string reason;  ///< one sentence
};

/// For `points` points. wanted: TrackOptions::device; "auto" takes the first GPU where there is one and the
/// points are worth its start.
DeviceChoice choose_device(const std::string& wanted, std::int64_t points);

}  // namespace dic::track
