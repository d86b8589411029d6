#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/kernels/ncc.hpp>

#include "common/host_device.hpp"

/// Correlation by circular transforms, one axis at a time: the elements of the window that are transformed,
/// the length of the transform, and the place of each shift in its result.
namespace dic::kernels {

/// Element `first + i` of the window is element i of the transform, i < used. Place s of the circular
/// correlation then has the sums of shift first + s; for negative s, this is place s + length.
struct FftAxis {
  int first = 0;
  int used = 0;
  /// Range of the requested shifts with an overlap, less `first`; empty if low > high. low <= 0.
  int low = 0, high = -1;
  int shifts_before = 0;  ///< number of requested shifts below `low`

  /// Smallest length at which every shift from low to high has a place of its own.
  int least_length(int reference) const { return std::max({reference, used, high + reference, used - low}); }
  std::int64_t shifts() const { return std::max(0, high - low + 1); }
  DIC_HOST_DEVICE int shift_at(int place, int length) const { return place <= high ? place : place - length; }
  DIC_HOST_DEVICE bool holds(int shift) const { return low <= shift && shift <= high; }
};

/// Axis of a job, from the sizes of reference and window and the inclusive range of shifts.
inline FftAxis make_fft_axis(int reference, int window, int shift_min, int shift_max) {
  FftAxis axis;
  axis.first = std::clamp(shift_min, 0, window);
  axis.used = std::clamp(shift_max + reference, axis.first, window) - axis.first;
  axis.low = std::max(shift_min, 1 - reference) - axis.first;
  axis.high = std::min(shift_max, window - 1) - axis.first;
  axis.shifts_before = axis.low + axis.first - shift_min;
  return axis;
}
inline FftAxis fft_axis_y(const NccJob& job) {
  return make_fft_axis(job.reference.height, job.search.height, job.shifts.dy_min, job.shifts.dy_max);
}
inline FftAxis fft_axis_x(const NccJob& job) {
  return make_fft_axis(job.reference.width, job.search.width, job.shifts.dx_min, job.shifts.dx_max);
}

}  // namespace dic::kernels
