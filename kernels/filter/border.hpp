#pragma once

#include <dic/kernels/filter.hpp>

#include "common/host_device.hpp"

namespace dic::kernels {

/// Element k of a line of n >= 1 elements, inside or beyond its ends. at(i): element i, 0 <= i < n.
template <typename At>
DIC_HOST_DEVICE float continued(const At& at, int n, int k, Border border) {
  if (k >= 0 && k < n) return at(k);
  if (n == 1) return at(0);
  if (border == Border::replicate) return at(k < 0 ? 0 : n - 1);
  float ends = 0, sign = 1;
  while (k < 0 || k >= n) {
    const int end = k < 0 ? 0 : n - 1;
    k = 2 * end - k;
    if (border == Border::mirror) continue;
    ends += sign * 2 * at(end);
    sign = -sign;
  }
  return ends + sign * at(k);
}

}  // namespace dic::kernels
