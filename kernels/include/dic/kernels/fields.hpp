#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/shared/field_options.hpp>
#include <dic/shared/status.hpp>

/// Outlier test and strain of fields in device memory. Definitions, rules and statuses are those of
/// <dic/fields.hpp>; results differ from the CPU's by rounding and are repeatable.
namespace dic::kernels {

/// The nodes of a Grid; `inside` is device memory, [ny x nx].
struct DeviceGrid {
  int nx = 0, ny = 0;
  int step = 1;
  const std::uint8_t* inside = nullptr;

  std::int64_t nodes() const { return static_cast<std::int64_t>(nx) * ny; }
};

/// The arrays of a Field in device memory, [ny x nx] each. Grids have fewer than 2^31 nodes.
struct FieldArrays {
  double *u = nullptr, *v = nullptr;
  float *zncc = nullptr, *sigma_u = nullptr, *sigma_v = nullptr;
  Status* status = nullptr;
  std::int16_t* iterations = nullptr;
  float *exx = nullptr, *eyy = nullptr, *exy = nullptr, *e1 = nullptr, *e2 = nullptr, *von_mises = nullptr;
  float *sigma_exx = nullptr, *sigma_eyy = nullptr, *sigma_exy = nullptr;
};

/// Bytes of device scratch memory that the functions below need.
std::size_t fields_workspace_bytes(const DeviceGrid& grid);
/// Queues the outlier test: reads u, v and status, changes status. Does nothing if the test is not enabled.
void launch_mark_outliers(const DeviceGrid& grid, const FieldArrays& field, const OutlierOptions& options,
                          void* workspace, StreamHandle stream);
/// Queues the strain of every node: reads u, v, sigma_u, sigma_v and status, writes exx .. sigma_exy.
/// Requires valid options.
void launch_strain(const DeviceGrid& grid, const FieldArrays& field, const StrainOptions& options,
                   const MeasuredSubsets& subsets, void* workspace, StreamHandle stream);

}  // namespace dic::kernels
