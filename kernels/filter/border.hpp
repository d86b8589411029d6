#pragma once

#include <dic/kernels/filter.hpp>
#include <dic/shared/reflect.hpp>

namespace dic::kernels {

/// Element k of a line of n >= 1 elements, inside or beyond its ends. at(i): element i, 0 <= i < n.
template <typename At>
DIC_HOST_DEVICE float bordered_element(const At& at, int n, int k, Border border) {
  if (border == Border::point_reflection) return point_reflected(at, n, k);
  if (border == Border::replicate || n == 1) return at(k < 0 ? 0 : (k < n ? k : n - 1));
  while (k < 0 || k >= n) k = k < 0 ? -k : 2 * (n - 1) - k;
  return at(k);
}

}  // namespace dic::kernels
