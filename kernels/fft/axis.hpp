#pragma once

#include <algorithm>
#include <cstdint>
#include <dic/kernels/ncc.hpp>

#include "common/host_device.hpp"

/// Correlation by circular transforms, one axis at a time: which elements of the window enter, how long a
/// transform must be, and where the sums of a shift come out.
namespace dic::kernels {

/// Element `first + i` of the window enters a transform as element i, i < used, so that place s of the
/// circular correlation holds the sums of shift first + s, and place s + length those of a negative s.
struct FftAxis {
  int first = 0;
  int used = 0;
  /// The shifts, less `first`, that were asked for and have an overlap; none where low > high. low <= 0.
  int low = 0, high = -1;
  int shifts_before = 0;  ///< shifts that were asked for, below `low`

  /// Least length at which no other shift falls on a place from low to high.
  int least_length(int reference) const { return std::max({reference, used, high + reference, used - low}); }
  std::int64_t shifts() const { return std::max(0, high - low + 1); }
  DIC_HOST_DEVICE int shift_at(int place, int length) const { return place <= high ? place : place - length; }
  DIC_HOST_DEVICE bool holds(int shift) const { return low <= shift && shift <= high; }
};

/// One axis of a job: sizes of reference and window, and the inclusive range of its shifts.
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
