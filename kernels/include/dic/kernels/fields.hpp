#pragma once

#include <cstdint>
#include <dic/fields.hpp>

namespace dic::kernels {

/// The arrays of a Field, device memory, [ny x nx] each. Grids have less than 2^31 nodes.
struct FieldArrays {
  double *u = nullptr, *v = nullptr;
  float *zncc = nullptr, *sigma_u = nullptr, *sigma_v = nullptr;
  Status* status = nullptr;
  std::int16_t* iterations = nullptr;
  float *exx = nullptr, *eyy = nullptr, *exy = nullptr, *e1 = nullptr, *e2 = nullptr, *von_mises = nullptr;
};

}  // namespace dic::kernels
