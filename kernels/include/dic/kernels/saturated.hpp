#pragma once

#include <cstdint>
#include <dic/kernels/refine.hpp>
#include <dic/shared/image_view.hpp>

/// Pixels that have the largest value of their type: the true grey value is not known. Subsets with such
/// pixels are measured again without them (<dic/shared/saturation.hpp>). All pointers are device memory,
/// unless noted.
namespace dic::kernels {

/// Pixels in squares of 3x3 px that all have the largest value, one bit per pixel.
struct SaturatedPixels {
  const std::uint32_t* words = nullptr;  ///< [height * row_words]; null: there are none
  int width = 0, height = 0;             ///< px

  DIC_HOST_DEVICE int row_words() const { return (width + 31) / 32; }
  DIC_HOST_DEVICE std::int64_t size() const { return std::int64_t{height} * row_words(); }
#ifdef __CUDACC__
  __device__ bool holds(long x, long y) const {
    if (!words || x < 0 || y < 0 || x >= width || y >= height) return false;
    return words[y * row_words() + (x >> 5)] >> (x & 31) & 1;
  }
#endif
};

/// Queues finding the saturated pixels. words, scratch: SaturatedPixels::size() words. any: in pinned memory,
/// 0 before the call; becomes 1 if there are some. Images of signed and floating types have none.
void launch_find_saturated(const ImageView& image, std::uint32_t* words, std::uint32_t* scratch,
                           std::int32_t* any, StreamHandle stream);

/// Some finished refinements, and the images that they compared.
struct SaturatedFrame {
  SaturatedPixels reference, current;
  ImageView roi;     ///< u8, inside if not zero; empty = everywhere
  PixelMasks masks;  ///< masks of the subsets; the size of a subset is always given
  const PreparedSubset* subsets = nullptr;
  const RefineTask* tasks = nullptr;  ///< [count]
  RefineResult* results = nullptr;    ///< [count]
  std::int64_t count = 0;
};

/// A task that is repeated.
struct RepeatedTask {
  std::int32_t number = 0;
  std::int32_t beside_glare = 0;  ///< if not 0, sigma is scaled by icgn::kBesideGlare
};

/// Repeated measurements: a subset, a task and a mask for each, as launch_prepare_parts and launch_refine
/// take them. The memory holds all tasks of a SaturatedFrame.
struct SaturatedList {
  PreparedSubset* subsets = nullptr;
  RefineTask* tasks = nullptr;
  RepeatedTask* of_task = nullptr;
  std::uint32_t* masks = nullptr;  ///< PixelMasks::words_of() words each
  std::int32_t* count = nullptr;
};

/// Queues judging the successful refinements with saturated pixels in or around their subset, and listing the
/// measurements to repeat (<dic/shared/saturation.hpp>). Subsets that show too little become low_correlation.
void launch_list_saturated(const SaturatedFrame& frame, const SaturatedList& list, StreamHandle stream);
/// Queues taking the results of `n` repeated refinements. A point becomes low_correlation if its subset has
/// nothing left to measure.
void launch_take_unsaturated(const SaturatedFrame& frame, const SaturatedList& list, std::int64_t n,
                             const RefineResult* results, StreamHandle stream);

}  // namespace dic::kernels
