#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <dic/shared/correlation.hpp>  // Shifts, Pairing, PatchPosition, Criterion, Peak
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// Cross-correlation of reference patches with their search windows: the interface behind `dic track`,
/// `dic match` and the benchmarks.
///
///     c[dy, dx] = sum_ij reference[i, j] * window[i + dy, j + dx]      (zero outside the window)
///
/// for every shift (dx, dy) of a rectangle. Shifts::full takes all shifts with an overlap, Shifts::valid only
/// those with the reference wholly inside the window. Any other rectangle of shifts is allowed.
namespace dic {

/// A batch of equally sized patches of images, read in place without a copy. n packed matrices are given as
/// one image of n * height rows, with patches at y = 0, height, 2 * height, ...
struct Patches {
  std::span<const ImageView> images;         ///< images, all of one ScalarType; owned by the caller
  std::span<const PatchPosition> positions;  ///< one position for each patch
  Size size;                                 ///< size of every patch, px
};

/// One correlation job. All pairs share sizes and shifts.
///
/// Shift (0, 0) lays the reference's top-left element on the window's. A window may reach outside its image:
/// elements there count as outside the window. A reference must lie inside its image and has at most 32,768
/// rows and columns.
struct CorrelateRequest {
  Pairing pairing = Pairing::one_to_one;
  Patches reference;
  Patches search;
  Shifts shifts;
  Criterion criterion = Criterion::zncc;
  /// The elements of the references that count (0 = ignored): one u8 image for each reference image, of the
  /// same size, with the same `reference.positions`. Empty = every element counts. Masked scores take means
  /// and variances over the counting elements, in reference and window.
  std::span<const ImageView> reference_mask;
  /// Name of a registered variant; empty = the planner chooses. A variant that cannot do the job throws
  /// UsageError and is never replaced silently.
  std::string variant;
  /// For surfaces of zncc and ncc (CPU). Scores below this one need not be exact: they may be too high by
  /// more than rounding, but stay below it. Neighbours of a score that reaches it, and the highest score of a
  /// surface, are exact. This saves most of the time where parts of a window are nearly flat. None: all are
  /// exact.
  std::optional<float> least_score{};
  /// A call throws Cancelled soon after this is requested (CPU; GPUs finish their call).
  std::stop_token stop{};
};

/// Correlation surfaces: pairs x ny x nx values, packed, row-major in (pair, dy, dx).
///
/// Criterion::cross_correlation: u8 -> u32 (sums modulo 2^32, exact up to 257x257 elements), u16 -> u64,
/// i32 -> i64 (exact while |c| < 2^63), f32 -> f32, f64 -> f64. Other criteria: f32 for every input.
///
/// zncc, ncc and ssd are defined where the reference lies wholly inside window and image. Elsewhere, and
/// where reference or window has no contrast (zncc) or no energy (ncc), zncc and ncc are 0 and ssd is the
/// largest float. Values are never NaN for finite images.
///
/// Every variant is exact to float32 rounding, with three exceptions: scores of cpu-fft away from a pair's
/// best shift are within 2e-6 (ssd: relative); zncc of cuda-f16-tensor, which is for images of up to 12 bit,
/// is within some 1e-6 at 21x21 elements and 2e-5 at 64x64; zncc of cuda-u8-tensor is within 5e-6 where
/// reference and window both have a standard deviation of a grey level or more.
struct Surfaces {
  using Type = SurfaceType;
  Type type = Type::f32;
  std::int64_t pairs = 0;
  int ny = 0;  ///< shifts in y
  int nx = 0;  ///< shifts in x
  std::vector<std::byte> bytes;

  /// The ny x nx values of a pair. T: std::uint32_t, std::uint64_t, std::int64_t, float or double. Throws
  /// UsageError if T is not the element type or the pair does not exist.
  template <typename T>
  const T* surface(std::int64_t pair) const {
    return reinterpret_cast<const T*>(bytes.data()) + checked_offset(type_of(T{}), pair);
  }
  template <typename T>
  T* surface(std::int64_t pair) {
    return reinterpret_cast<T*>(bytes.data()) + checked_offset(type_of(T{}), pair);
  }

 private:
  static constexpr Type type_of(std::uint32_t) { return Type::u32; }
  static constexpr Type type_of(std::uint64_t) { return Type::u64; }
  static constexpr Type type_of(std::int64_t) { return Type::i64; }
  static constexpr Type type_of(float) { return Type::f32; }
  static constexpr Type type_of(double) { return Type::f64; }
  DIC_API std::int64_t checked_offset(Type requested, std::int64_t pair) const;
};

/// A registered implementation of the correlation, for listings and checks. All variants compute the same
/// results; they differ in speed and in the jobs that they support.
struct CorrelateVariant {
  std::string name;                 ///< "cpu-naive", "cpu-direct", "cpu-fft", "cuda-basic", ...
  std::string backend;              ///< "cpu", "cuda" or "opencl"
  std::vector<Pairing> pairings;    ///< supported pairings
  std::vector<ScalarType> types;    ///< supported types of image elements
  std::vector<Criterion> criteria;  ///< supported criteria
  bool masks = false;               ///< supports CorrelateRequest::reference_mask
  std::string idea;                 ///< how it works, one line
};
/// All variants of this build, those of the CPU first.
DIC_API std::vector<CorrelateVariant> correlate_variants();

/// The shape of a job: everything that the planner considers. Image contents do not matter.
struct CorrelateShape {
  Pairing pairing = Pairing::one_to_one;
  ScalarType type = ScalarType::u8;
  Criterion criterion = Criterion::zncc;
  int bit_depth = 0;  ///< for u16: the largest ImageView::bit_depth of all images; 0 = any value
  Size reference;     ///< size of a reference, px
  Size search;        ///< size of a search window, px
  Shifts shifts;
  std::int64_t references = 0;  ///< number of references
  std::int64_t pairs = 0;       ///< number of pairs
  bool masked = false;          ///< the job has a reference_mask
};
/// The properties of a device that the planner uses.
struct DeviceProperties {
  std::string backend = "cpu";  ///< "cpu", "cuda" or "opencl"
  int threads = 1;              ///< CPU threads; with OpenCL, the threads that compute scores
  int compute_capability = 0;   ///< of a GPU: 90 for 9.0; 0 for the CPU
  bool cufft = false;           ///< NVIDIA's FFT library (libcufft) can be loaded
};
/// The planner's choice.
struct CorrelatePlan {
  std::string variant;
  std::string reason;  ///< one sentence, for --verbose and run.json
};
/// Chooses a variant: a pure function of shape and device that touches no hardware. Throws UsageError if the
/// device's backend is unknown or none of its variants supports the shape.
DIC_API CorrelatePlan plan_correlation(const CorrelateShape& shape, const DeviceProperties& device);

/// Seconds that the steps of a call took, by the device's clock; those of the slowest GPU if several share
/// the work. 0 if not measured (CPU, nothing to do). With OpenCL, the host computes the scores, which these
/// times exclude.
struct DeviceSeconds {
  double upload = 0;
  double kernels = 0;  ///< seconds of one run: the mean if a call runs the kernels several times
  double download = 0;
};

/// @cond
class Correlator;
namespace core {
class ThreadPool;
}
namespace correlate {
/// For the library itself: a correlator that uses the threads of its owner instead of some of its own.
Correlator open_correlator(const std::string& device, core::ThreadPool& pool);
}  // namespace correlate
/// @endcond

/// Runs correlations on one device, or on several GPUs. Keeps threads, FFT plans and buffers between calls.
/// One call at a time per object; objects are independent of each other.
///
///     dic::Correlator correlator("cuda");
///     std::vector<dic::Peak> peaks;
///     correlator.peaks(request, peaks);
class Correlator {
 public:
  /// device: "cpu", "cuda" (the first GPU), "cuda:N", "cuda:N,M" or "cuda:all" (several GPUs share the pairs
  /// of a job, with the same result as one GPU), "opencl" (its first device) or "opencl:N". threads: CPU
  /// threads, 0 = one per core. Throws UsageError for an unknown name and DeviceError if the device does not
  /// exist.
  DIC_API explicit Correlator(const std::string& device = "cpu", int threads = 0);
  DIC_API ~Correlator();
  DIC_API Correlator(Correlator&&) noexcept;
  DIC_API Correlator& operator=(Correlator&&) noexcept;

  /// Computes the surfaces of all pairs. Throws UsageError for requests that contradict themselves (sizes,
  /// types, positions outside) and DeviceError if the device fails. `out` is resized; its memory is reused
  /// from call to call.
  DIC_API void surfaces(const CorrelateRequest& request, Surfaces& out);
  /// Computes one peak for each pair; surfaces are not stored. The criterion must not be cross_correlation.
  /// Throws as `surfaces` does.
  DIC_API void peaks(const CorrelateRequest& request, std::vector<Peak>& out);

  /// The device; if several GPUs share the work, the one of lowest compute capability.
  DIC_API const DeviceProperties& device() const;
  /// The plan of the last call.
  DIC_API const CorrelatePlan& last_plan() const;
  /// Times of the last call.
  DIC_API DeviceSeconds device_seconds() const;
  /// For benchmarks: every following call runs its kernels `times` times in a row, on inputs that stay on the
  /// device, and returns the results of the last run. No effect on the CPU, whose steps are not timed. Throws
  /// UsageError if `times` is less than 1.
  DIC_API void repeat_kernels(std::int64_t times);

 private:
  struct Impl;
  friend Correlator correlate::open_correlator(const std::string& device, core::ThreadPool& pool);
  explicit Correlator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
