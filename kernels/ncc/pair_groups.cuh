#pragma once

#include "common/host_device.hpp"
#include "ncc/frame.cuh"

namespace dic::kernels {

/// Pairs that are computed together: some references with some windows each. With several references the form
/// is n_to_m, in which they share their windows.
struct PairGroup {
  std::int64_t reference;  ///< the first
  std::int64_t window;     ///< the first, counted among its reference's
};

/// Pairs begin .. end - 1, counted from frame.first_pair; none where end <= begin.
struct PairRange {
  std::int64_t begin, end;
};

/// The groups of up to references_per_group x windows_per_group in a part of a batch. They may stick out of
/// it.
struct PairGroups {
  std::int64_t first_reference, end_reference, windows;  ///< windows of a reference
  std::int64_t across, down;                             ///< groups along windows and references
  int references_per_group, windows_per_group;

  PairGroups(const Frame& frame, int of_references, int of_windows)
      : first_reference(frame.first_pair / frame.windows_per_reference),
        end_reference((frame.first_pair + frame.pairs - 1) / frame.windows_per_reference + 1),
        windows(frame.windows_per_reference),
        across((windows + of_windows - 1) / of_windows),
        down((end_reference - first_reference + of_references - 1) / of_references),
        references_per_group(of_references),
        windows_per_group(of_windows) {}
  DIC_HOST_DEVICE std::int64_t count() const { return across * down; }
  __device__ PairGroup group(std::int64_t index) const {
    return {first_reference + index / across * references_per_group, index % across * windows_per_group};
  }
  /// Reference p of a group, or an empty matrix.
  template <typename T>
  __device__ Matrix<T> reference(const Frame& frame, const PairGroup& group, int p) const {
    return group.reference + p < end_reference ? load_matrix<T>(frame.reference, group.reference + p)
                                               : Matrix<T>{};
  }
  /// Window k of a group, or an empty matrix.
  template <typename T>
  __device__ Matrix<T> window(const Frame& frame, const PairGroup& group, int k) const {
    return group.window + k < windows
               ? load_matrix<T>(frame.search, frame.window_of(pair(frame, group, 0, k)))
               : Matrix<T>{};
  }
  /// Number of the pair of reference p and window k, counted from frame.first_pair.
  __device__ std::int64_t pair(const Frame& frame, const PairGroup& group, int p, int k) const {
    return (group.reference + p) * windows + group.window + k - frame.first_pair;
  }
  /// The pairs of the first reference of a group that the part holds.
  __device__ PairRange pairs(const Frame& frame, const PairGroup& group) const {
    const std::int64_t first = pair(frame, group, 0, 0);
    const std::int64_t end = first + min(std::int64_t{windows_per_group}, windows - group.window);
    return {max(first, std::int64_t{0}), min(end, frame.pairs)};
  }
  __device__ bool holds(const Frame& frame, const PairGroup& group, int p, int k) const {
    const std::int64_t index = pair(frame, group, p, k);
    return group.window + k < windows && index >= 0 && index < frame.pairs;
  }
};

}  // namespace dic::kernels
