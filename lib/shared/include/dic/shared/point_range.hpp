#pragma once

#include <cstdint>
#include <dic/shared/host_device.hpp>

namespace dic::track {

/// Points first .. last - 1.
struct PointRange {
  std::int64_t first = 0, last = 0;

  DIC_HOST_DEVICE std::int64_t count() const { return last - first; }
  bool operator==(const PointRange&) const = default;
};

}  // namespace dic::track
