#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <dic/kernels/workspace.hpp>
#include <span>
#include <string>
#include <string_view>

/// The correlation family on the GPU: the job, the registry of variants, and the kernels that turn sums into
/// scores and peaks. Definition, forms, measures and types are those of <dic/correlate.hpp>.
namespace dic::kernels {

/// How many images there are and the size of the largest; all zero where that is not known.
struct ImageExtent {
  int count = 0;
  int height = 0;
  int width = 0;
};

/// `count` matrices of one size (at least 1x1), read in place from images. Both pointers are device memory.
/// References lie inside their images; of windows, what lies outside counts as zero.
struct DeviceMatrices {
  const DeviceImage* images = nullptr;
  const PatchPosition* positions = nullptr;
  std::int64_t count = 0;
  int height = 0;
  int width = 0;
  ImageExtent extent = {};  ///< lets windows that overlap share what is computed once per image
  DeviceImage only = {};    ///< where there is just one image, the same for the host; or without data
};

/// One correlation job, or the part of it with pairs first_pair .. first_pair + pairs - 1.
struct NccJob {
  Pairing pairing = Pairing::one_to_one;
  ScalarType type = ScalarType::u8;
  int bit_depth = 0;  ///< of u16: all elements are below 2^bit_depth; 0 = all of the type
  /// Type of the sums: the one that Surfaces gives for `type`, or the wider u64 for u8 and f64 for f32.
  Surfaces::Type sums = Surfaces::Type::u32;
  DeviceMatrices reference;
  DeviceMatrices search;
  /// Images of u8, one for each of the references' images and of its size, in device memory: non-zero
  /// where an element counts. Null: all count.
  const DeviceImage* masks = nullptr;
  Shifts shifts;
  std::int64_t first_pair = 0;
  std::int64_t pairs = 0;

  /// Elements of the output: pairs x ny x nx.
  std::int64_t outputs() const { return pairs * shifts.count(); }
};

/// "cuda-basic: 100 pairs, u8, reference 32x32, window 64x64, 33x33 shifts" for messages.
std::string describe(std::string_view kernel, const NccJob& job);
std::size_t size_of(Surfaces::Type type);

/// Type of sums from which scores are exact enough: integers that do not wrap, or f64.
Surfaces::Type sums_for_scores(ScalarType type, int reference_height, int reference_width);

/// Sum, sum of squares and variation of a matrix: 64-bit integers for integer types, else f64.
constexpr std::size_t moments_bytes = 24;
/// Queues the moments of all job.reference.count references into `moments` (moments_bytes each).
void launch_reference_moments(const NccJob& job, void* moments, StreamHandle stream);

/// What launch_scores writes for a shift.
enum class ScoreKind : std::uint8_t {
  value,  ///< what Surfaces holds: ssd is >= 0, undefined shifts are 0 (ssd: the largest float)
  score   ///< larger is better: ssd is negated, undefined shifts and those without contrast are -infinity
};
/// Scores and peaks straight from the images: sums never leave the chip. Both expect a job that `fits` and
/// write what launch_scores and launch_peaks would.
struct FusedScores {
  /// peaks: the answer for launch_peaks instead of launch_scores.
  bool (*fits)(const NccJob& job, bool peaks);
  void (*launch_scores)(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                        Workspace& workspace, StreamHandle stream);
  void (*launch_peaks)(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                       StreamHandle stream);
};

/// What bounds the rounding errors of a variant's float sums; integer sums have none.
enum class SumError : std::uint8_t {
  products,  ///< elements * epsilon * (sum of |ref * search| at that shift)
  norms      ///< 8 * epsilon * norm(reference) * norm(window): transforms spread errors over all shifts
};

/// A registered variant. All variants compute the same sums; they differ in how the work is cut.
struct NccVariant {
  std::string_view name;  ///< "cuda-basic"
  std::string_view idea;  ///< one line
  std::span<const Pairing> pairings;
  std::span<const ScalarType> types;
  std::span<const Criterion> criteria;
  bool repeatable = true;  ///< false: float sums depend on the order of atomic additions
  /// Limits beyond form and type: an empty text, or one sentence that says what does not fit.
  std::string (*refuses)(const NccJob& job) = nullptr;
  /// Queues the computation of out[pair, dy, dx] (device memory, job.outputs() elements of job.sums). Null
  /// where `measures` lacks sums: such a variant's fused scores fit every job that it does not refuse. Null
  /// too where there is launch_in.
  void (*launch)(const NccJob& job, void* out, StreamHandle stream) = nullptr;
  const FusedScores* fused = nullptr;  ///< null: sums only
  /// Shared memory of a block, in bytes; null: no more than every device has.
  int (*shared_bytes)(const NccJob& job) = nullptr;
  SumError error = SumError::products;
  /// In place of `launch`, for variants that need memory or plans.
  void (*launch_in)(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream) = nullptr;
  /// What this machine lacks to run it: an empty text, or one sentence. Null: nothing.
  std::string (*lacks)() = nullptr;
  /// True where NccJob::masks count, and for what launch_masked_scores and launch_masked_peaks do.
  bool masks = false;

  bool sums() const { return launch || launch_in; }
};
std::span<const NccVariant> ncc_variants();
/// Why `variant` cannot do `job`: one sentence, empty where it can. A pure function of the job.
std::string refusal(const NccVariant& variant, const NccJob& job);
/// Why `variant` cannot run on this machine: one sentence, empty where it can.
std::string obstacle(const NccVariant& variant);
/// Launches `variant`, or throws UsageError where it cannot do the job. An empty job is done at once.
void launch_ncc(const NccVariant& variant, const NccJob& job, void* out, Workspace& workspace,
                StreamHandle stream);

/// Queues scores[pair, dy, dx] from the job's sums and all references' moments. measure is not `sums`;
/// job.sums is sums_for_scores(). The windows' own moments come from running sums over the image, exact for
/// u8 and u16.
void launch_scores(const NccJob& job, Criterion criterion, ScoreKind kind, const void* sums,
                   const void* moments, float* scores, StreamHandle stream);
/// Bytes of device memory that launch_peaks works in.
std::size_t peaks_workspace_bytes(const NccJob& job);
/// Queues the best shift of every pair from its ScoreKind::score surface. `peaks` is device memory.
void launch_peaks(const NccJob& job, Criterion criterion, const float* scores, Peak* peaks, void* workspace,
                  StreamHandle stream);

/// Correlation of references of which only some elements count (NccJob::masks): scores are those of these
/// elements alone, with their means and variances on both sides. Here, and only here, references may lie
/// partly or wholly outside of their images: elements there do not count, nor need they meet anything.
///
/// All expect a job that cuda-masked does not refuse, and work in the workspace's memory:
/// masked_workspace_bytes, of which the elements of the references and the sums of products are most.
std::size_t masked_workspace_bytes(const NccJob& job);
/// Queues out[pair, dy, dx], sums of products.
void launch_masked_sums(const NccJob& job, void* out, Workspace& workspace, StreamHandle stream);
/// Queue what launch_scores and launch_peaks write, straight from the images. job.sums is
/// sums_for_scores().
void launch_masked_scores(const NccJob& job, Criterion criterion, ScoreKind kind, float* scores,
                          Workspace& workspace, StreamHandle stream);
void launch_masked_peaks(const NccJob& job, Criterion criterion, Peak* peaks, Workspace& workspace,
                         StreamHandle stream);

}  // namespace dic::kernels
