#pragma once

#include <dic/shared/host_device.hpp>

namespace dic {

/// Element k of a line of n elements that is continued beyond its ends by point reflection, which continues
/// slopes (a mirror would reverse them). The element is a weighted sum of three elements of the line.
struct PointReflection {
  int at;             ///< index of the reflected element
  float sign;         ///< factor of the reflected element
  float first, last;  ///< factors of the line's ends, mostly 0

  DIC_HOST_DEVICE PointReflection(int n, int k) {
    const int end = n - 1, period = n > 1 ? 2 * end : 1;
    const int place = n > 1 ? k : 0;
    const int periods = place / period - (place % period < 0);  // rounded down
    const int rest = place - periods * period;
    const bool mirrored = rest > end;
    at = mirrored ? period - rest : rest;
    sign = mirrored ? -1.0f : 1.0f;
    first = static_cast<float>(-2 * periods);
    last = static_cast<float>(2 * (periods + mirrored));
  }

  DIC_HOST_DEVICE float value(float at_it, float at_first, float at_last) const {
    const float ends = (first != 0 ? first * at_first : 0) + (last != 0 ? last * at_last : 0);
    return ends + sign * at_it;
  }
};

/// Value of element k of the reflected line. at(i): element i of the line, 0 <= i < n.
template <typename At>
DIC_HOST_DEVICE float point_reflected(const At& at, int n, int k) {
  const PointReflection r(n, k);
  return r.value(at(r.at), r.first != 0 ? at(0) : 0, r.last != 0 ? at(n - 1) : 0);
}

}  // namespace dic
