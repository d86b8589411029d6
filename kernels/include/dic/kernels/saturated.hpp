#pragma once

#include <cstdint>
#include <dic/kernels/refine.hpp>
#include <dic/shared/image_view.hpp>

/// Pixels that have the largest value of their type: what they show is not known. Subsets with such pixels
/// are measured again without them (<dic/shared/saturation.hpp>). All pointers are device memory, unless
/// something else is said.
namespace dic::kernels {

/// The pixels of squares of 3x3 px that have the largest value, a bit each.
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

/// Queues finding them. words, scratch: SaturatedPixels::size() words. any: in pinned memory, 0 before;
/// becomes 1 where there are some. Images of signed and floating types have none.
void launch_find_saturated(const ImageView& image, std::uint32_t* words, std::uint32_t* scratch,
                           std::int32_t* any, StreamHandle stream);

/// Some finished refinements, and the images that they compared.
struct SaturatedFrame {
  SaturatedPixels reference, current;
  ImageView roi;     ///< u8, inside where not zero; empty = everywhere
  PixelMasks masks;  ///< of the subsets; the size of a subset is always given
  const PreparedSubset* subsets = nullptr;
  const RefineTask* tasks = nullptr;  ///< [count]
  RefineResult* results = nullptr;    ///< [count]
  std::int64_t count = 0;
};

/// A task that is repeated.
struct RepeatedTask {
  std::int32_t number = 0;
  std::int32_t beside_glare = 0;  ///< not 0: its sigma counts as icgn::kBesideGlare says
};

/// What is measured again: a subset, a task and a mask each, as launch_prepare_parts and launch_refine take
/// them. Memory for all tasks of a SaturatedFrame.
struct SaturatedList {
  PreparedSubset* subsets = nullptr;
  RefineTask* tasks = nullptr;
  RepeatedTask* of_task = nullptr;
  std::uint32_t* masks = nullptr;  ///< PixelMasks::words_of() each
  std::int32_t* count = nullptr;
};

/// Queues judging the successful refinements with saturated pixels in their subset or around it, and listing
/// what is measured again (<dic/shared/saturation.hpp>). Those that show too little become low_correlation.
void launch_list_saturated(const SaturatedFrame& frame, const SaturatedList& list, StreamHandle stream);
/// Queues taking the results of `n` repeated refinements; low_correlation where the subset has nothing to
/// measure left.
void launch_take_unsaturated(const SaturatedFrame& frame, const SaturatedList& list, std::int64_t n,
                             const RefineResult* results, StreamHandle stream);

}  // namespace dic::kernels
