#pragma once

#include "common/host_device.hpp"
#include "ncc/job_view.cuh"

namespace dic::kernels {

/// Pairs that are computed together: some references with some windows each. Groups of several references
/// exist only for the pairing n_to_m, for which all references have the same windows.
struct PairGroup {
  std::int64_t reference;  ///< first reference
  std::int64_t window;     ///< first window, counted among those of the reference
};

/// Pairs begin .. end - 1, counted from view.first_pair; none if end <= begin.
struct PairRange {
  std::int64_t begin, end;
};

/// Groups of up to references_per_group x windows_per_group in a part of a batch. Groups at the edges may
/// reach beyond the part: see holds().
struct PairGroups {
  std::int64_t first_reference, end_reference, windows;  ///< windows: number per reference
  std::int64_t across, down;                             ///< groups along windows and references
  int references_per_group, windows_per_group;

  PairGroups(const JobView& view, int references_at_once, int windows_at_once)
      : first_reference(view.first_pair / view.windows_per_reference),
        end_reference((view.first_pair + view.pairs - 1) / view.windows_per_reference + 1),
        windows(view.windows_per_reference),
        across((windows + windows_at_once - 1) / windows_at_once),
        down((end_reference - first_reference + references_at_once - 1) / references_at_once),
        references_per_group(references_at_once),
        windows_per_group(windows_at_once) {}
  DIC_HOST_DEVICE std::int64_t count() const { return across * down; }
  __device__ PairGroup group(std::int64_t index) const {
    return {first_reference + index / across * references_per_group, index % across * windows_per_group};
  }
  /// Reference p of a group, or an empty matrix.
  template <typename T>
  __device__ PatchView<T> reference(const JobView& view, const PairGroup& group, int p) const {
    return group.reference + p < end_reference ? load_patch<T>(view.reference, group.reference + p)
                                               : PatchView<T>{};
  }
  /// Window k of a group, or an empty matrix.
  template <typename T>
  __device__ PatchView<T> window(const JobView& view, const PairGroup& group, int k) const {
    return group.window + k < windows ? load_patch<T>(view.search, view.window_of(pair(view, group, 0, k)))
                                      : PatchView<T>{};
  }
  /// Number of the pair of reference p and window k, counted from view.first_pair.
  __device__ std::int64_t pair(const JobView& view, const PairGroup& group, int p, int k) const {
    return (group.reference + p) * windows + group.window + k - view.first_pair;
  }
  /// Pairs of the first reference of a group that are in the part.
  __device__ PairRange pairs(const JobView& view, const PairGroup& group) const {
    const std::int64_t first = pair(view, group, 0, 0);
    const std::int64_t end = first + min(std::int64_t{windows_per_group}, windows - group.window);
    return {max(first, std::int64_t{0}), min(end, view.pairs)};
  }
  __device__ bool holds(const JobView& view, const PairGroup& group, int p, int k) const {
    const std::int64_t index = pair(view, group, p, k);
    return group.window + k < windows && index >= 0 && index < view.pairs;
  }
};

}  // namespace dic::kernels
