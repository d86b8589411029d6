#pragma once

#include <algorithm>

#include "fft/axis.hpp"
#include "fft/transform_output.hpp"
#include "ncc/job_view.cuh"

namespace dic::kernels {

inline int least_length(const NccJob& job) {
  return std::max(fft_axis_y(job).least_length(job.reference.height),
                  fft_axis_x(job).least_length(job.reference.width));
}

template <int B>
TransformShape make_shape(const NccJob& job) {
  using Transform = PackedTransform<B>;
  const FftAxis y = fft_axis_y(job);
  return {.y = y,
          .x = fft_axis_x(job),
          .reference_y = {.used = job.reference.height},
          .reference_x = {.used = job.reference.width},
          .reference_rows = Transform::packed_rows(job.reference.height - 1, Transform::n).low,
          .window_rows = Transform::packed_rows(y.used - 1, Transform::n).low,
          .output_rows = Transform::packed_rows(y.high, Transform::n + std::min(y.low, 0))};
}

/// Zeroes the output if some shifts have no overlap. Returns false if no shift has one.
inline bool clear_empty_shifts(const NccJob& job, float* out, StreamHandle stream) {
  const std::int64_t shifts = fft_axis_y(job).shifts() * fft_axis_x(job).shifts();
  if (shifts < job.shifts.count()) fill(out, 0, job.outputs() * sizeof(float), stream);
  return shifts > 0;
}

/// A row of a matrix in the coordinates of the transforms: zero outside x0 <= x < x0 + width.
struct PaddedRow {
  const float* first;
  int x0;
  unsigned width;

  __device__ float operator[](int x) const {
    return static_cast<unsigned>(x - x0) < width ? __ldg(first + x) : 0.0f;
  }
};

struct PaddedMatrix {
  const char* first;
  std::ptrdiff_t row_bytes;
  int x0, x1, y0, y1;

  __device__ PaddedRow operator()(int y) const {
    const bool exists = y >= y0 && y < y1 && x0 < x1;
    return {reinterpret_cast<const float*>(first + y * row_bytes), x0, exists ? x1 - x0 : 0u};
  }
};
__device__ inline PaddedMatrix padded(const PatchView<float>& matrix, const FftAxis& y, const FftAxis& x) {
  return {reinterpret_cast<const char*>(matrix.row(y.first) + x.first),
          matrix.row_bytes,
          max(matrix.x0 - x.first, 0),
          min(matrix.x1 - x.first, x.used),
          max(matrix.y0 - y.first, 0),
          min(matrix.y1 - y.first, y.used)};
}

/// Index in the output of the pair's sum at shift (0, 0), less `first` of the axes.
__device__ inline std::int64_t surface_origin(const JobView& view, const TransformShape& shape,
                                              std::int64_t pair) {
  const int row = shape.y.shifts_before - shape.y.low, column = shape.x.shifts_before - shape.x.low;
  return (pair * view.ny + row) * view.nx + column;
}

}  // namespace dic::kernels
