#pragma once

#include <dic/kernels/split.hpp>
#include <memory>

#include "track/cuda/device_reference.hpp"
#include "track/cuda/image_access/image_memory.hpp"
#include "track/cuda/saturated_subsets.hpp"

namespace dic::track::cuda {

/// Measures doubtful and lost points again with parts of their subsets (<dic/shared/split_rules.hpp>), for
/// all points of one frame, on the first GPU. The results are those of track/cpu/split_subsets.hpp.
class SplitSubsets {
 public:
  /// memory: tells how much of the images the GPU holds.
  SplitSubsets(const TrackOptions& options, const ImageMemory& memory);

  /// Largest memory for the measurements, bytes. Memory that grows with the points is small beside it.
  static std::size_t most_bytes(const RefineOptions& options);

  /// tracked: all points, on this GPU; receives the new results. Waits for the stream to read lengths of
  /// lists, only once if no point is doubtful or lost.
  void run(const DeviceReference& reference, const DeviceFrame& current, kernels::TrackedPoint* tracked,
           const kernels::Stream& stream);

 private:
  kernels::SplitFrame frame_of(const DeviceReference& reference, kernels::TrackedPoint* tracked);
  kernels::PartList parts_of(std::int64_t points);
  /// Number of rounds after the first that are measured together for `n` points.
  int rounds_at_once(std::int64_t n) const;
  void measure(const DeviceReference& reference, const DeviceFrame& current, const kernels::SplitFrame& frame,
               const std::int32_t* points, std::int64_t n, const kernels::Stream& stream);
  /// Measures the parts of some rounds for those of the points that are open. Returns false if there are
  /// none.
  bool refine(const DeviceReference& reference, const DeviceFrame& current, const kernels::SplitFrame& frame,
              const std::int32_t* open, std::int64_t open_count, const kernels::SplitRounds& rounds,
              const kernels::PartList& parts, const kernels::Stream& stream);
  std::int64_t fetched(const std::int32_t* count, const kernels::Stream& stream);

  const RefineOptions options_;
  const int step_;
  const std::int64_t
      most_points_;  ///< most points times rounds that are measured at once, to limit the memory
  const std::unique_ptr<ImageAccess> images_;  ///< separate from that of the frame under way
  SaturatedSubsets saturated_;
  kernels::DeviceBuffer levels_, states_, refuted_, open_, counts_;
  kernels::DeviceBuffer parts_, tasks_, slots_, matrices_, results_, most_residuals_,
      masks_;  ///< memory of the points that are measured
  kernels::PinnedBuffer on_host_;
  kernels::Event counted_;
};

}  // namespace dic::track::cuda
