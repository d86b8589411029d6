#pragma once

#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/relative_shape.hpp>
#include <dic/kernels/spline.hpp>
#include <dic/shared/gradient_noise.hpp>
#include <dic/shared/host_device.hpp>
#include <dic/shared/refine_options.hpp>
#include <dic/shared/status.hpp>
#include <dic/shared/subset_part.hpp>
#include <limits>

/// Inverse-compositional Gauss-Newton refinement on the GPU: a warp per point. Definitions, rules and
/// statuses are those of <dic/refine.hpp>; sums are float, so that results differ from the CPU's by float
/// rounding. All pointers are device memory.
namespace dic::kernels {

/// Pixels of subsets that do not count, in addition to those outside the ROI: a bit per pixel of each
/// subset's square. Hidden pixels may lie outside the current image.
struct PixelMasks {
  const std::uint32_t* words = nullptr;  ///< words_of() words per subset; null: all pixels count
  int radius = 0, row_words = 0;

  PixelMasks() = default;
  DIC_HOST_DEVICE PixelMasks(const std::uint32_t* first, int subset)
      : words(first), radius(subset / 2), row_words((subset + 31) / 32) {}

  DIC_HOST_DEVICE int words_of() const { return (2 * radius + 1) * row_words; }
  /// Index of the mask word that holds pixel (i, j) from the centre; bit(i) is the pixel's bit in it.
  DIC_HOST_DEVICE int word(int i, int j) const { return (j + radius) * row_words + ((i + radius) >> 5); }
  DIC_HOST_DEVICE std::uint32_t bit(int i) const { return 1u << ((i + radius) & 31); }
  DIC_HOST_DEVICE bool hide(std::int64_t subset, int i, int j) const {
    return words && (words[subset * words_of() + word(i, j)] & bit(i)) != 0;
  }
  /// Writes the mask that shows only the pixels of a part.
  DIC_HOST_DEVICE void write(const SubsetPart& part, std::uint32_t* mask) const {
    for (int j = -radius; j <= radius; ++j) {
      const PartRow row = j < part.top || j > part.bottom ? PartRow{} : part.row(j);
      for (int k = 0; k < row_words; ++k, ++mask) {
        const int first = row.first + radius - 32 * k, last = row.last + radius - 32 * k;
        const bool none = row.count() == 0 || last < 0 || first > 31;
        const std::uint32_t from = ~0u << (first > 0 ? first & 31 : 0),
                            to = ~0u >> (last < 31 ? (31 - last) & 31 : 0);
        *mask = none ? ~0u : ~(from & to);
      }
    }
  }
#ifdef __CUDACC__
  /// First and last pixel of row j, within columns left .. right, that are not hidden.
  __device__ PartRow shown(std::int64_t subset, int j, int left, int right) const {
    const std::uint32_t* row = words + subset * words_of() + (j + radius) * row_words;
    left += radius, right += radius;
    int first = right + 1, last = left - 1;
    for (int k = left >> 5; k <= right >> 5; ++k) {
      std::uint32_t bits = ~row[k];
      if (k == left >> 5) bits &= ~0u << (left & 31);
      if (k == right >> 5) bits &= ~0u >> (31 - (right & 31));
      if (bits == 0) continue;
      first = min(first, 32 * k + __ffs(static_cast<int>(bits)) - 1);
      last = 32 * k + 31 - __clz(static_cast<int>(bits));
    }
    return {first - radius, last - radius};
  }
#endif
};

/// The reference of a refinement.
struct RefineReference {
  const ReferencePixel* pixels = nullptr;  ///< a plane
  const std::uint32_t* rest = nullptr;     ///< a plane: rounding errors of the gradients
  const GreyRange* range = nullptr;        ///< range of the image
  PlaneLayout layout;
  int grid_columns = 0;  ///< columns of the grid whose points are the tasks, row by row; 0: tasks of no grid
  RowRange rows{0, std::numeric_limits<int>::max()};  ///< rows that are in memory
  PixelMasks masks;                                   ///< masks of parts of subsets
};

/// One subset, prepared for the iterations; its matrix is stored separately.
struct PreparedSubset {
  int x = 0, y = 0;  ///< centre, reference pixels
  /// The rectangle around the subset's pixels in image and ROI, relative to the centre, inclusive.
  std::int16_t left = 0, right = 0, top = 0, bottom = 0;
  float count = 0, mean = 0, energy = 0;  ///< sum of the weights; sum weight (f - mean)^2
  float fitted = 0;                       ///< see icgn::residual_sd
  float noise_share = 0;                  ///< see icgn::relaxation
  float unit_sigma_u = 0, unit_sigma_v = 0, unit_covariance = 0;
  GradientNoise gradient_noise;
  Status status = Status::ok;
  bool weighted = false;     ///< some pixels of the rectangle do not count
  std::uint16_t unused = 0;  ///< padding with a value, so that copies have no uninitialized bytes
};

/// Subsets and their matrices: matrix_floats() per subset.
struct PreparedSubsets {
  PreparedSubset* subsets = nullptr;
  float* matrices = nullptr;
};

/// Centres of `count` subsets, pixels of the reference.
struct SubsetCentres {
  const int *x = nullptr, *y = nullptr;
  std::int64_t count = 0;
};

/// Number of floats per point, padded to whole float4: for each of the N parameters the sum of its
/// steepest-descent image; for each the product of that image with the reference, divided by the energy; the
/// lower triangle of the inverse Hessian, row by row.
DIC_HOST_DEVICE constexpr int matrix_floats(int order) {
  const int parameters = order == 0 ? 2 : order == 1 ? 6 : 12;
  return (2 * parameters + parameters * (parameters + 1) / 2 + 3) / 4 * 4;
}

// Statuses of work that is not finished; results do not have them.
inline constexpr Status pending{255};      ///< to be prepared or refined, by this kernel or by the next one
inline constexpr Status in_progress{254};  ///< being refined
inline constexpr Status hopeless{253};     ///< low_correlation, and no kernel needs to try again

/// Queues preparing those subsets at the centres whose rows are in memory. The others stay unchanged.
void launch_prepare_subsets(const RefineReference& reference, const RefineOptions& options,
                            const SubsetCentres& centres, const PreparedSubsets& prepared,
                            StreamHandle stream);

/// Queues preparing parts of subsets: those of the first *count subsets (device memory; at most max_count)
/// that are `pending` and whose rows are in memory. Their x, y and rectangle are given. The status becomes
/// masked if fewer pixels count (RefineReference::masks) than kLeastPart of a subset.
void launch_prepare_parts(const RefineReference& reference, const RefineOptions& options,
                          std::int64_t max_count, const std::int32_t* count, const PreparedSubsets& prepared,
                          StreamHandle stream);

inline constexpr std::int32_t no_point = -1;

/// Refinement of subset `point` from `start`. no_point: no refinement, and no result.
struct RefineTask {
  std::int32_t point = 0;
  std::int32_t u = 0, v = 0;  ///< whole-pixel displacement
  RelativeShape start;
};
/// Tasks, in device memory.
struct RefineTasks {
  const RefineTask* first = nullptr;
  std::int64_t max_count = 0;
  /// Number of tasks, in device memory, that the kernels read; null: max_count tasks.
  const std::int32_t* count_on_device = nullptr;
  /// Largest residuals that are worth refining, by subset, grey levels (see icgn::is_hopeless); null: no
  /// limit.
  const float* most_residuals = nullptr;
  /// True if the subsets are parts of others (see icgn::patience).
  bool are_parts = false;
  /// True if other work fills the device and these tasks are not urgent: they use few blocks, so that the
  /// other work gives up little of the device.
  bool in_background = false;

#ifdef __CUDACC__
  __device__ std::int64_t count() const { return count_on_device ? *count_on_device : max_count; }
#endif
};
struct RefineResult {
  RelativeShape shape;  ///< relative to the task's (u, v)
  float zncc = 0, residual_sd = 0, unit_sigma_u = 0, unit_sigma_v = 0, unit_covariance = 0;
  GradientNoise gradient_noise;
  std::int16_t iterations = 0;
  Status status = Status::masked;
  std::uint8_t unused = 0;
};

/// The images of a refinement.
struct RefineImages {
  const RefineReference& reference;
  const CoefficientPair* current = nullptr;  ///< spline coefficients: a plane of the reference's layout
};

/// Queues the refinement of tasks. results: [tasks.max_count]. most_done, if given, is recorded when the few
/// tasks that are left leave much of the device free.
void launch_refine(const RefineImages& images, const RefineOptions& options, const PreparedSubsets& prepared,
                   const RefineTasks& tasks, RefineResult* results, const Stream& stream,
                   Event* most_done = nullptr);

}  // namespace dic::kernels
