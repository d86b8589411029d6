#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/points.hpp>
#include <dic/kernels/refine.hpp>
#include <dic/track.hpp>
#include <memory>
#include <string>
#include <vector>

#include "track/cuda/device_coarse_search.hpp"
#include "track/cuda/image_access/image_memory.hpp"
#include "track/cuda/memory/device_frame.hpp"
#include "track/cuda/subset_search.hpp"

/// Access to images for the steps that read pixels. Images that fit are in the memory of the GPU as a whole;
/// larger ones are on the host, and the GPU holds bands of their rows in turn. The algorithm does not see the
/// difference.
namespace dic::track::cuda {

/// Memory of the planes of a reference.
struct PlanesMemory {
  kernels::DeviceBuffer pixels, rest, range;
};

/// An image that frames are compared with.
struct ReferenceImage {
  const DeviceFrame& frame;
  ImageView roi;                    ///< ROI in device memory; empty = everywhere
  kernels::RefineReference planes;  ///< planes of whole images; for bands only range and layout
};

/// The subsets of a reference, [count] each, device memory.
struct ReferenceSubsets {
  const int *x, *y;  ///< centres, px
  std::int64_t count;
  kernels::PreparedSubset* prepared;
  float* matrices;  ///< kernels::matrix_floats() each
};

class ImageAccess {
 public:
  virtual ~ImageAccess() = default;

  /// Queues computing planes and subsets, once for each reference.
  virtual void prepare(ReferenceImage& reference, PlanesMemory& memory, const ReferenceSubsets& subsets,
                       const kernels::Stream& stream) = 0;
  /// Queues preparing parts of subsets, one for each task: see kernels::launch_prepare_parts.
  virtual void prepare_parts(const ReferenceImage& reference, const ReferenceSubsets& parts,
                             const kernels::RefineTasks& tasks, const kernels::Stream& stream) = 0;
  /// True if peaks can be followed in one launch, see SubsetSearch::follows.
  virtual bool follows(const SubsetSearch& search, const ImageView& image, int size, int range) const = 0;
  /// True if two streams may search and refine at the same time.
  virtual bool parallel_streams() const = 0;
  /// Finds peaks as SubsetSearch::peaks does. Returns the variant that ran.
  virtual std::string find_peaks(SubsetSearch& search, const ReferenceImage& reference,
                                 const DeviceFrame& current, const kernels::SearchWindows& windows,
                                 bool clipped, Peak* peaks, const kernels::Stream& stream) = 0;
  /// Refines tasks as kernels::launch_refine does.
  virtual void refine(const ReferenceImage& reference, const DeviceFrame& current,
                      const ReferenceSubsets& subsets, const kernels::RefineTasks& tasks,
                      kernels::RefineResult* results, const kernels::Stream& stream,
                      kernels::Event* most_done) = 0;
  /// The image for a pyramid. Frame and stream must outlive the source.
  virtual PyramidSource pyramid_source(const DeviceFrame& frame, const kernels::Stream& stream) = 0;
  /// Returns the pixels in host memory: in `memory`, or those of the frame if it is on the host. Waits for
  /// the device.
  virtual ImageView on_host(const DeviceFrame& frame, std::vector<std::byte>& memory,
                            const kernels::Stream& stream) = 0;
};

/// Makes the access to whole images, or to bands if whole images are too large.
std::unique_ptr<ImageAccess> make_image_access(const RefineOptions& options, const ImageMemory& memory);

}  // namespace dic::track::cuda
