#pragma once

#include <array>
#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/image.hpp>
#include <dic/kernels/device.hpp>
#include <dic/kernels/follow_peaks.hpp>
#include <string>

#include "correlate/cuda/job_runner.hpp"

namespace dic::track::cuda {

/// The images of a search, in device memory. Rows are multiples of 4 bytes, because kernels read whole words.
struct SearchImages {
  ImageView reference, current;
  ImageView roi;  ///< u8, inside where not zero; empty = everywhere
  /// True if subsets are clipped by the border or the ROI, so that only pixels inside count.
  bool clipped = false;
};

/// ZNCC search of subsets on the device. Nothing waits for the device, unless memory grows.
class SubsetSearch {
 public:
  explicit SubsetSearch(const kernels::Device& device);

  /// Queues the best shift of every subset in its window; shift (0, 0) is the window's corner. Returns the
  /// variant that runs. All calls are on one stream.
  std::string peaks(const SearchImages& images, const kernels::SearchWindows& windows, Peak* out,
                    const kernels::Stream& stream);
  /// True if peaks of whole subsets can be followed in one launch.
  bool follows(const ImageView& image, int size, int range) const;
  /// Queues following the peaks. size: of the largest subset, px.
  void follow(const SearchImages& images, const kernels::GridPoints& points, std::int64_t count, int size,
              const kernels::FollowedSearch& search, const kernels::Stream& stream);
  /// Queues a search with a job of any shape, in which type and images are filled in.
  std::string peaks(const SearchImages& images, CorrelateShape shape, const PatchPosition* references,
                    const PatchPosition* windows, Peak* out, const kernels::Stream& stream);

 private:
  kernels::NccJob job_of(const SearchImages& images, const CorrelateShape& shape,
                         const kernels::Stream& stream);
  const kernels::DeviceImage* describe(const SearchImages& images, const kernels::Stream& stream);

  DeviceProperties device_;
  correlate::cuda::JobRunner runner_;
  /// Reference, current image and ROI of the last calls: a few are enough, because memory of frames is
  /// reused.
  std::array<std::array<ImageView, 3>, 8> described_;
  std::size_t next_description_ = 0;
  kernels::DeviceBuffer descriptions_;
};

}  // namespace dic::track::cuda
