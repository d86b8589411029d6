#pragma once

#include <cmath>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/kernels/spline.hpp>
#include <dic/shared/image_view.hpp>
#include <dic/shared/pose_fit.hpp>
#include <span>
#include <vector>

/// The search of templates at any pose: image pyramid, correlation of many patterns at the coarsest level,
/// fits.
namespace dic::kernels {

/// Queues halving an image: pixel i covers pixels 2i and 2i + 1, low-passed by (1, 3, 3, 1) / 8. An odd last
/// row or column is left out. out: packed rows.
void launch_pose_reduced(const DeviceImage& in, ScalarType type, float* out, StreamHandle stream);
/// Queues halving a packed mask: a pixel is 1 where the four that it covers are, and 0 elsewhere.
void launch_pose_reduced_mask(const DeviceImage& in, float* out, StreamHandle stream);

/// An image in device memory with a margin in which nothing counts. Pointers point to the pixel (0, 0).
struct CoarsePlane {
  const float* values = nullptr;  ///< grey value minus the mean; 0 where the pixel does not count
  const float* counts = nullptr;  ///< 1 = counts
  int stride = 0;                 ///< elements from row to row
  int margin = 0;                 ///< px on each side, at least `CoarsePatterns::reach` + 1
  int width = 0, height = 0;
  bool has_mask = false;  ///< some pixels inside do not count
};

/// Parts of a pattern, see match/pose_kernels.hpp: all of its 3 x 3 blocks, and all but those at one side.
constexpr int kPatternBlocks = 9, kPatternParts = 5;

/// Templates whose patterns cover the same pixels at each pose. All pointers are to device memory.
struct CoarsePatterns {
  static constexpr int kLanes = 16;  ///< templates that one warp correlates at a time

  struct Offset {
    std::int16_t x, y;  ///< from the template's centre, px
  };
  struct Extent {
    std::int16_t left, right, top, bottom;
  };
  /// A part of one template at one pose. One that does not count is all zeros.
  struct alignas(16) Part {
    float factor = 0;   ///< weight / sqrt(sum of squared deviations)
    float of_mean = 0;  ///< factor times the sum of its grey values
    float weight = 0;   ///< 0: the part does not count

    /// sum, squares: of its grey values, and of their deviations.
    static Part of(double weight, double sum, double squares) {
      if (!(weight > 0)) return {};
      const double factor = weight / std::sqrt(squares);
      return {static_cast<float>(factor), static_cast<float>(factor * sum), static_cast<float>(weight)};
    }
  };
  /// Factor of the score of a part that one side of the image cuts: weight / sqrt(sum of squared deviations)
  /// of its visible pixels, and that times their sum. Zeros if the part does not count.
  struct Factor {
    float factor, of_mean;
  };
  int poses = 0, templates = 0;
  int lanes = 0;                        ///< 1, or the templates rounded up to whole kLanes
  int reach = 0;                        ///< largest distance of a pixel from the centre along an axis, px
  const Offset* offsets = nullptr;      ///< of all poses, by pose and block
  const std::int32_t* begin = nullptr;  ///< kPatternBlocks + 1 per pose: indices into `offsets`
  const Extent* extents = nullptr;      ///< per pose
  const float* t = nullptr;             ///< grey values of one template minus their mean, per element
  const Part* parts = nullptr;          ///< [pose][part][lanes]
  const float* contrast = nullptr;      ///< [pose][lanes]: least sum of squared deviations per visible pixel
  /// Distances to a side that matter: -1 .. reach px, the last one for whole patterns.
  DIC_HOST_DEVICE int depths() const { return reach + 2; }
  /// [pose][left, right, top, bottom][1 + distance][part][lanes], of several templates.
  const Factor* factors = nullptr;
  // Only of several templates, see PatternPairs:
  const std::int32_t* shifts = nullptr;  ///< `PatternPairs::pixels`
  const std::int32_t* pairs = nullptr;   ///< `PatternPairs::shifts`
  const std::int32_t* steps = nullptr;   ///< `PatternPairs::begin`
  const std::uint32_t* halves = nullptr;
};

/// The pixels of patterns as tensor cores take them: pairs of neighbours in a row, in steps of pairs of one
/// block.
struct PatternPairs {
  static constexpr int kStep = 8;
  /// The order of the blocks: around the middle one, which is the last.
  static constexpr int kRing[kPatternBlocks] = {0, 1, 2, 5, 8, 7, 6, 3, 4};
  std::vector<std::int32_t>
      pixels;  ///< all pixels in the order of the offsets: elements of a tile from the centre
  std::vector<std::int32_t> shifts;    ///< left pixel of each pair: elements of a tile from the centre
  std::vector<std::int32_t> elements;  ///< both pixels of each pair, -1: none
  std::vector<std::int32_t> begin;     ///< kPatternBlocks + 1 per pose, in that order: indices of steps
};
/// offsets, begin, reach: see CoarsePatterns.
PatternPairs pattern_pairs(std::span<const CoarsePatterns::Offset> offsets,
                           std::span<const std::int32_t> begin, int reach);
/// Number of words of `CoarsePatterns::halves`, and of those before the words of a template, whose index is a
/// multiple of kLanes, in each step.
std::int64_t pattern_words(const PatternPairs& pairs, int lanes);
std::int64_t pattern_words_before(int template_index);
/// Queues making `CoarsePatterns::halves` from grey values, `lanes` per element: numbers of the size of 1, of
/// which half floats keep the digits. elements: `PatternPairs::elements` in device memory.
void launch_pattern_halves(const float* t, int lanes, const std::int32_t* elements, std::int64_t words,
                           std::uint32_t* halves, StreamHandle stream);

/// Number of elements of `CoarsePatterns::factors`, and queues making them. least_visible: see CoarseDemands.
std::int64_t pattern_factors(const CoarsePatterns& patterns);
void launch_pattern_factors(const CoarsePatterns& patterns, float least_visible,
                            CoarsePatterns::Factor* factors, StreamHandle stream);

/// Demands of coarse scores.
struct CoarseDemands {
  float least_variance = 0;   ///< of the image; with less contrast the score is low
  float least_visible = 0;    ///< share of a pattern that must be inside the image
  bool any_polarity = false;  ///< negative correlations count as positive ones
};

/// Places of the score planes: (-1, -1) .. (width, height), by rows; the border decides about local maxima.
/// At most 2^30.
inline std::int64_t coarse_places(int width, int height) {
  return static_cast<std::int64_t>(width + 2) * (height + 2);
}

/// Largest `CoarsePatterns::reach` whose tiles fit into the current device's shared memory.
int most_coarse_reach();
/// Queues the correlation of all templates at all poses and places: the best one of a part. Scores below 0
/// may be 0 where a part does not count. scores: [template][pose][place].
void launch_coarse_scores(const CoarsePlane& image, const CoarsePatterns& patterns,
                          const CoarseDemands& demands, float* scores, StreamHandle stream);

/// A local maximum over places and neighbouring poses.
struct CoarsePeak {
  std::int32_t template_index, pose, x, y;
  float score;
};
/// Which poses are neighbours: by scale, then angle.
struct CoarseNeighbours {
  int turns = 1, sizes = 1;
  bool by_turn = false, by_size = false;
  bool full_circle = false;  ///< the last angle is beside the first one
};
/// Planes of scores of some templates, and which of their local maxima are wanted.
struct CoarsePlanes {
  const float* scores = nullptr;  ///< [template][pose][place]
  int width = 0, height = 0;      ///< of the image
  int templates = 0;
  CoarseNeighbours neighbours;
  float threshold = 0;
};
/// A list of peaks in device memory, in any order. count: also of those beyond `capacity`, which are left
/// out.
struct PeakList {
  CoarsePeak* peaks = nullptr;
  int capacity = 0;
  std::int32_t* count = nullptr;
};
constexpr int kScoreBins = 4096;
/// Queues appending all local maxima of at least the threshold. first_template: is added to their index;
/// bins: kScoreBins per template, counted by that index, which are increased by the numbers of scores.
void launch_coarse_maxima(const CoarsePlanes& planes, int first_template, const PeakList& all,
                          std::int32_t* bins, StreamHandle stream);
/// Queues appending the highest maxima of each template to `highest`, about `most`. bins: of `all`; cuts: one
/// per template, for scratch.
void launch_highest_maxima(const PeakList& all, const std::int32_t* bins, int templates, int most,
                           float threshold, float* cuts, const PeakList& highest, StreamHandle stream);

/// Pixels of a template at one level, in device memory. Arrays are padded with zeros to whole kPadding.
struct PosePixels {
  static constexpr int kPadding = 256;
  const float *xi = nullptr, *eta = nullptr, *t = nullptr, *tx = nullptr, *ty = nullptr;
  int count = 0, padded = 0;
  double mean = 0;     ///< grey value
  double squares = 0;  ///< see pose::residual_limit()
};

/// A fit of one template from one start.
struct PoseTask {
  int pixels = 0;  ///< index of the template's pixels
  pose::Warp start;
  pose::FitPlan plan;
  bool with_structure = false;  ///< computes `PoseResult::structure`
};
struct PoseResult {
  pose::Fit fit;
  double structure = 0;  ///< correlation of the gradients of template and image over pixels that fit
};

/// A level of an image, packed rows; mask: 1 = counts, packed; none: every pixel counts.
struct PoseLevel {
  const float* values = nullptr;
  const float* mask = nullptr;
  int width = 0, height = 0;
};

/// Largest number of pixels of a list.
int most_pose_pixels();

/// Fits of some templates at one level. Pointers are to device memory.
struct PoseFits {
  PoseLevel image;
  const PosePixels* pixels = nullptr;  ///< of all templates
  const PoseTask* tasks = nullptr;
  int count = 0;       ///< of the tasks
  bool shear = false;  ///< some plans are affine
  PoseResult* results = nullptr;
};
/// Queues fits, a block each. most_padded: largest `PosePixels::padded`, at most most_pose_pixels().
void launch_pose_fits(const PoseFits& fits, int most_padded, StreamHandle stream);

/// The quintic spline of an image; coefficients: see PlaneLayout, points to the pixel (0, 0); mask: see
/// PoseLevel.
struct SplineLevel {
  const CoefficientPair* coefficients = nullptr;
  int stride = 0;
  const float* mask = nullptr;
  int width = 0, height = 0;
};
/// Device memory of a fit that the whole device shares.
struct WholeMemory {
  float* values = nullptr;   ///< grey value per pixel at the last step, minus a constant; NaN outside
  float* weights = nullptr;  ///< weight per pixel at the last step
  void* scratch = nullptr;   ///< whole_fit_bytes()
};
struct WholeResult {
  pose::Fit fit;
  double gain = 1, offset = 0;  ///< of `WholeMemory::values`
  float limit = 0;              ///< residual from which pixels of the last step do not count; 0: all count
};
std::size_t whole_fit_bytes();
/// Queues a fit with a list of pixels of any length. Returns where the result will be.
const WholeResult* launch_whole_fit(const SplineLevel& image, const PosePixels& pixels,
                                    const pose::FitPlan& plan, const pose::Warp& start,
                                    const WholeMemory& memory, StreamHandle stream);

/// A pixel of a template after a fit; image gradient and residual in units of the template's grey values.
struct FittedPixel {
  static constexpr int kGroup = 64;  ///< pixels of a group of neighbours
  float xi, eta, t, tx, ty, ix, iy, residual, weight;
};
/// Queues getting `count` pixels of the groups 0, `stride`, 2 `stride`, ... of a fit with its pose, and the
/// sums of the weights and of pose::biweight_slope() over all pixels into `slopes`.
void launch_fitted_pixels(const SplineLevel& image, const PosePixels& pixels, const WholeMemory& memory,
                          const WholeResult& fit, int stride, int count, FittedPixel* fitted, double* slopes,
                          StreamHandle stream);

}  // namespace dic::kernels
