#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/kernels/workspace.hpp>
#include <dic/shared/correlation.hpp>
#include <span>
#include <string>
#include <string_view>

/// The correlation family on the GPU: the job, the registry of variants, and the kernels that compute scores
/// and peaks from sums. Definition, forms, measures and types are those of <dic/correlate.hpp>.
namespace dic::kernels {

/// Number of images and size of the largest; all zero if unknown.
struct ImageExtent {
  int count = 0;
  int height = 0;
  int width = 0;
};

/// `count` matrices of one size (at least 1x1), read in place from images. Both pointers are device memory.
/// References lie inside their images; elements of a window outside its image count as zero.
struct DevicePatches {
  const DeviceImage* images = nullptr;
  const PatchPosition* positions = nullptr;
  std::int64_t count = 0;
  int height = 0;
  int width = 0;
  ImageExtent extent = {};        ///< if known, sums over windows can be computed once per image
  DeviceImage single_image = {};  ///< host copy of the description of the only image; without data if there
                                  ///< are several
};

/// One correlation job, or its part with pairs first_pair .. first_pair + pairs - 1.
struct NccJob {
  Pairing pairing = Pairing::one_to_one;
  ScalarType type = ScalarType::u8;
  int bit_depth = 0;  ///< for u16: all elements are below 2^bit_depth; 0 = any u16
  /// Type of the sums: the one that Surfaces gives for `type`, or the wider u64 for u8 and f64 for f32.
  SurfaceType sums = SurfaceType::u32;
  DevicePatches reference;
  DevicePatches search;
  /// Images of u8 in device memory, one for each of the references' images and of its size: non-zero where an
  /// element counts. Null: all count.
  const DeviceImage* masks = nullptr;
  Shifts shifts;
  std::int64_t first_pair = 0;
  std::int64_t pairs = 0;

  /// Number of elements of the output: pairs x ny x nx.
  std::int64_t outputs() const { return pairs * shifts.count(); }
};

/// "cuda-basic: 100 pairs, u8, reference 32x32, window 64x64, 33x33 shifts" for messages.
std::string describe(std::string_view kernel, const NccJob& job);

/// Type of sums that makes scores exact enough: integers that do not wrap, or f64.
SurfaceType sums_for_scores(ScalarType type, int reference_height, int reference_width);

/// Bytes of the moments of a matrix: sum, sum of squares and variation, 64-bit integers for integer types,
/// otherwise f64.
constexpr std::size_t moments_bytes = 24;
/// Queues the moments of all job.reference.count references into `moments` (moments_bytes each).
void launch_reference_moments(const NccJob& job, void* moments, StreamHandle stream);

/// Kinds of values that launch_scores writes.
enum class ScoreKind : std::uint8_t {
  value,  ///< values of Surfaces: ssd is >= 0, undefined shifts are 0 (ssd: the largest float)
  score   ///< larger is better: ssd is negated, undefined shifts and those without contrast are -infinity
};
/// Outputs that a launch computes straight from the images.
enum class FusedOutput : std::uint8_t { scores, peaks };

/// Scores and peaks straight from the images, without sums in memory. Only some variants provide it.
class ScoreFusion {
 public:
  /// True if a job that the variant supports can be done this way. Always true for scores of a variant that
  /// does not compute sums.
  virtual bool fits(const NccJob& job, FusedOutput output) const = 0;
  /// Queues the same results as the functions launch_scores and launch_peaks below. The job must fit.
  virtual void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                             Workspace& workspace, StreamHandle stream) const = 0;
  virtual void launch_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                            StreamHandle stream) const = 0;

 protected:
  ~ScoreFusion() = default;
};

/// The launches and limits of a variant. The registry makes them from the concepts in
/// kernels/ncc/variants.hpp.
class VariantOperations {
 public:
  /// Reason from limits beyond types and pairing, which NccVariant checks first.
  virtual std::string unsupported_reason(const NccJob& job) const = 0;
  virtual int shared_bytes(const NccJob& job) const = 0;
  virtual bool computes_sums() const = 0;
  virtual void launch_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) const = 0;
  virtual const ScoreFusion* score_fusion() const = 0;

 protected:
  ~VariantOperations() = default;
};

/// Bound of the rounding errors of a variant's float sums; integer sums have none.
enum class SumError : std::uint8_t {
  products,  ///< elements * epsilon * (sum of |reference * window| at that shift)
  norms      ///< 8 * epsilon * norm(reference) * norm(window): transforms spread errors over all shifts
};

/// Capabilities that a variant declares.
struct VariantTraits {
  std::string_view name;  ///< "cuda-basic"
  std::string_view idea;  ///< description in one line
  std::span<const Pairing> pairings;
  std::span<const ScalarType> types;
  std::span<const Criterion> criteria;  ///< includes cross_correlation if the variant computes sums
  bool repeatable = true;               ///< false: float sums depend on the order of atomic additions
  SumError sum_error = SumError::products;
  bool supports_masks = false;  ///< takes jobs with NccJob::masks
  bool needs_cufft = false;     ///< needs NVIDIA's FFT library, which is loaded at run time
};

/// A registered variant. All variants compute the same results; they differ in how the work is divided.
class NccVariant : public VariantTraits {
 public:
  constexpr NccVariant(const VariantTraits& traits, const VariantOperations& operations)
      : VariantTraits(traits), operations_(&operations) {}

  /// Why the variant does not support `job`: one sentence, empty if it does. A pure function of the job.
  std::string unsupported_reason(const NccJob& job) const;
  /// Why the variant cannot run on this machine: one sentence, empty if it can.
  std::string unavailable_reason() const;
  /// Shared memory that a block needs for a supported job, in bytes; 0: no more than every device has.
  int shared_bytes(const NccJob& job) const { return operations_->shared_bytes(job); }
  bool computes_sums() const { return operations_->computes_sums(); }
  /// Null if scores and peaks come from sums in memory.
  const ScoreFusion* score_fusion() const { return operations_->score_fusion(); }
  bool can_fuse(const NccJob& job, FusedOutput output) const {
    return score_fusion() && score_fusion()->fits(job, output);
  }

 private:
  friend void launch_ncc(const NccVariant&, const NccJob&, void*, Workspace&, StreamHandle);
  const VariantOperations* operations_;
};
std::span<const NccVariant> ncc_variants();
/// The variant of this name, which must be registered.
const NccVariant& ncc_variant(std::string_view name);
/// Queues out[pair, dy, dx], sums of products in device memory: job.outputs() elements of type job.sums.
/// Throws UsageError if the variant does not support the job. An empty job queues no work.
void launch_ncc(const NccVariant& variant, const NccJob& job, void* out, Workspace& workspace,
                StreamHandle stream);

/// Properties of a device that the choice of a variant depends on.
struct NccDevice {
  int shared_bytes = 0;  ///< bytes that a block can have
  bool cufft = false;    ///< NVIDIA's FFT library can be loaded
};
/// A choice of the planner.
struct NccPlan {
  const NccVariant* variant = nullptr;
  const char* reason = "";
};
/// The fastest variant for a job without masks: a pure function that touches no device.
NccPlan plan_ncc(const NccJob& job, Criterion criterion, const NccDevice& device);
/// The fastest variant for the sums of references that cuda-masked has packed.
const NccVariant& plan_packed_sums(const NccJob& job, const NccDevice& device);

/// Queues scores[pair, dy, dx] from the job's sums and all references' moments. criterion is not
/// cross_correlation; job.sums is sums_for_scores(). Sums over the windows are running sums over the image,
/// exact for u8 and u16.
void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, const void* sums,
                   const void* moments, float* scores, StreamHandle stream);
/// Bytes of device scratch memory that launch_peaks needs.
std::size_t peaks_workspace_bytes(const NccJob& job);
/// Queues the best shift of every pair from its ScoreKind::score surface. `peaks` is device memory.
void launch_peaks(const NccJob& job, Criterion criterion, const float* scores, Peak* peaks, void* workspace,
                  StreamHandle stream);

/// Correlation of references of which only some elements count (NccJob::masks): scores are those of these
/// elements alone, with their means and variances on both sides. Only here may references lie partly or
/// wholly outside their images: elements there do not count, and need no counterpart in the window.
///
/// All functions expect a job that cuda-masked supports, and use masked_workspace_bytes of the workspace,
/// mostly for the packed references and the sums of products.
std::size_t masked_workspace_bytes(const NccJob& job);
/// Queues out[pair, dy, dx], sums of products.
void launch_masked_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
/// Queue the same results as launch_scores and launch_peaks, straight from the images. job.sums is
/// sums_for_scores().
void launch_masked_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                          Workspace& workspace, StreamHandle stream);
void launch_masked_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                         StreamHandle stream);

}  // namespace dic::kernels
