#pragma once

#include <dic/shared/host_device.hpp>

namespace dic {

/// Element k of a line of n elements, continued beyond its ends by reflection in the end points: slopes go
/// on, where a mirror would bend them. at(i): element i, 0 <= i < n.
template <typename At>
DIC_HOST_DEVICE float point_reflected(const At& at, int n, int k) {
  if (n == 1) return at(0);
  float ends = 0, sign = 1;
  while (k < 0 || k >= n) {
    const int end = k < 0 ? 0 : n - 1;
    ends += sign * 2 * at(end);
    sign = -sign;
    k = 2 * end - k;
  }
  return ends + sign * at(k);
}

}  // namespace dic
