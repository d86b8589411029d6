#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Cross-correlation of n reference matrices with their search windows: the one interface behind `dic track`,
/// `dic match` and the kernels.
///
///     c[dy, dx] = sum_ij ref[i, j] * search[i + dy, j + dx]      (zero outside the search window)
///
/// for every shift (dx, dy) of a rectangle. "full" takes all overlaps, "valid" only the shifts where ref lies
/// wholly inside the window; any rectangle in between or beyond is legal.
namespace dic {

/// Inclusive rectangle of integer shifts, px.
struct Shifts {
  int dx_min = 0, dx_max = 0, dy_min = 0, dy_max = 0;

  int nx() const { return dx_max - dx_min + 1; }
  int ny() const { return dy_max - dy_min + 1; }
  std::int64_t count() const { return nx() > 0 && ny() > 0 ? static_cast<std::int64_t>(nx()) * ny() : 0; }
  bool operator==(const Shifts&) const = default;

  /// All shifts with at least one overlapping element.
  static Shifts full(int ref_h, int ref_w, int search_h, int search_w) {
    return {-(ref_w - 1), search_w - 1, -(ref_h - 1), search_h - 1};
  }
  /// Shifts where the reference lies wholly inside the window (empty where it is larger).
  static Shifts valid(int ref_h, int ref_w, int search_h, int search_w) {
    return {0, search_w - ref_w, 0, search_h - ref_h};
  }
};

/// Which reference meets which window.
enum class Pairing : std::uint8_t {
  one_to_one,   ///< n references, n windows: pair k = (k, k)
  one_to_many,  ///< 1 reference, m windows: pair k = (0, k)
  n_to_mn,      ///< n references, n*m windows: reference i meets windows i*m .. i*m+m-1; pair k = (k / m, k)
  n_to_m        ///< n references, m windows: all n*m pairs; pair k = (k / m, k % m)
};
std::string_view to_string(Pairing pairing);

/// Where a matrix lies: top-left element (x, y) in image number `image`.
struct PatchPosition {
  int image = 0;
  int x = 0;
  int y = 0;
};

/// A batch of matrices of one size that lie in images and are read in place, never copied out.
/// Packed matrices are the special case of one image of (count*h) rows x w (see `packed`).
struct Patches {
  std::span<const ImageView> images;  ///< all of one ScalarType
  std::span<const PatchPosition> positions;
  int height = 0;
  int width = 0;
};

/// What is computed for every shift.
enum class Criterion : std::uint8_t {
  cross_correlation,  ///< c itself
  zncc,               ///< zero-normalized cross-correlation, [-1, 1]
  ncc,                ///< c / sqrt(sum ref^2 * sum search^2): [-1, 1] ([0, 1] for unsigned types)
  ssd                 ///< sum (ref - search)^2 >= 0; peaks are minima
};
std::string_view to_string(Criterion criterion);

/// One correlation job. All pairs share sizes and shifts.
///
/// Shift (0, 0) lays the reference's top-left element on the window's. A window may reach outside its
/// image: elements there count as outside the window. A reference must lie inside its image and
/// has at most 32,768 rows and columns.
struct CorrelateRequest {
  Pairing pairing = Pairing::one_to_one;
  Patches reference;
  Patches search;
  Shifts shifts;
  Criterion criterion = Criterion::zncc;
  /// Optional weights of the reference matrices, 0 = ignore the element (same positions as reference; u8, one
  /// image per reference image). Empty = every element counts. Masked ZNCC takes means and variances over
  /// the elements that count, on both sides.
  std::span<const ImageView> reference_mask;
  /// Name of a registered variant, or empty: the planner chooses. A variant that cannot do the job is refused
  /// with UsageError, never replaced.
  std::string variant;
};

/// Correlation surfaces: pairs x ny x nx, packed, row-major in (pair, dy, dx).
///
/// Criterion::cross_correlation: u8 -> u32 (sums modulo 2^32, exact to 257x257 elements), u16 -> u64, i32 ->
/// i64 (exact while |c| < 2^63), f32 -> f32, f64 -> f64. Other measures: f32 for every input. zncc, ncc and
/// ssd are defined where the reference lies wholly inside window and image; elsewhere, and where a side has
/// no contrast (zncc) or no energy (ncc), zncc and ncc are 0 and ssd is the largest float. Never NaN for
/// finite images. Every variant is exact to float32 rounding, except scores of cpu-fft away from a pair's
/// best shift: within 2e-6 (ssd: relative), and zncc of cuda-f16-tensor, which is for images of up to 12 bit:
/// some 1e-6 at 21x21 elements, 2e-5 at 64x64. Zncc of cuda-u8-tensor is within 5e-6 where both sides deviate
/// by a grey level or more.
struct Surfaces {
  enum class Type : std::uint8_t { u32, u64, i64, f32, f64 };
  Type type = Type::f32;
  std::int64_t pairs = 0;
  int ny = 0;
  int nx = 0;
  std::vector<std::byte> bytes;

  template <typename T>
  const T* surface(std::int64_t pair) const {
    return reinterpret_cast<const T*>(bytes.data()) + pair * ny * nx;
  }
  template <typename T>
  T* surface(std::int64_t pair) {
    return reinterpret_cast<T*>(bytes.data()) + pair * ny * nx;
  }
};

/// The best shift of one pair. Ties go to the lowest (dy, dx) in row-major order.
struct Peak {
  int dx = 0;
  int dy = 0;
  float score = 0;         ///< value at the peak; 0 where no shift is defined
  bool found = false;      ///< false: no shift of the rectangle is defined, or no contrast anywhere
  bool at_border = false;  ///< on the rectangle's edge: the true peak may lie beyond
  float second = 0;        ///< best value more than 2 px (in x or y) away from the peak; 0 if none
  /// Values at dy-1..dy+1, dx-1..dx+1 around the peak, row-major; the peak's own value where not defined.
  float neighbourhood[9] = {};
};

/// A registered variant, for listings and checks.
struct VariantInfo {
  std::string name;     ///< "cpu-naive", "cpu-direct", "cpu-fft", "cuda-basic", ...
  std::string backend;  ///< "cpu" or "cuda"
  std::vector<Pairing> pairings;
  std::vector<ScalarType> types;
  std::vector<Criterion> criteria;
  bool masks = false;  ///< takes reference_mask
  std::string idea;    ///< one line
};
/// Every variant that this build holds.
std::vector<VariantInfo> correlate_variants();

/// Facts the planner sees: the job's shape, nothing of its data.
struct CorrelateShape {
  Pairing pairing = Pairing::one_to_one;
  ScalarType type = ScalarType::u8;
  Criterion criterion = Criterion::zncc;
  int bit_depth = 0;  ///< of u16: the largest of all images (ImageView::bit_depth); 0 = all of the type
  int ref_h = 0, ref_w = 0, search_h = 0, search_w = 0;
  Shifts shifts;
  std::int64_t references = 0, pairs = 0;
  bool masked = false;
};
/// Facts of a device that the planner sees.
struct DeviceFacts {
  std::string backend = "cpu";
  int threads = 1;
  int compute_capability = 0;  ///< 90 for 9.0; 0 for the CPU
  bool cufft = false;          ///< NVIDIA's library of transforms can be loaded
};
struct CorrelatePlan {
  std::string variant;
  std::string reason;  ///< one sentence, for --verbose and run.json
};
/// Chooses a variant: a pure function of shape and device, no hardware is touched.
CorrelatePlan plan_correlation(const CorrelateShape& shape, const DeviceFacts& device);

/// Seconds that the steps of a call took, by the device's clock; those of the slowest where several share the
/// work. 0 where they are not measured (CPU, nothing to do).
struct DeviceSeconds {
  double upload = 0;
  double kernels = 0;  ///< of one run: the mean where a call runs them several times
  double download = 0;
};

/// Runs correlations on one device; keeps threads, FFT plans and buffers between calls.
/// One call at a time per object; objects are independent of each other.
class Correlator {
 public:
  /// device: "cpu", "cuda" (the first GPU), "cuda:N", "cuda:N,M" or "cuda:all": several GPUs share the pairs
  /// of a job, and the result is that of one. threads: 0 = one per core. Throws DeviceError where there is
  /// none.
  explicit Correlator(const std::string& device = "cpu", int threads = 0);
  ~Correlator();
  Correlator(Correlator&&) noexcept;
  Correlator& operator=(Correlator&&) noexcept;

  /// Throws UsageError for requests that contradict themselves (sizes, types, positions outside).
  /// `out` is resized; its memory is reused from call to call.
  void surfaces(const CorrelateRequest& request, Surfaces& out);
  /// Peaks only; surfaces are not stored. measure must not be `sums`. One peak per pair.
  void peaks(const CorrelateRequest& request, std::vector<Peak>& out);

  const DeviceFacts& device() const;
  /// What the last call ran.
  const CorrelatePlan& last_plan() const;
  /// Of the last call.
  DeviceSeconds device_seconds() const;
  /// For measurements: from now on a call runs its kernels so many times, launch after launch on inputs that
  /// stay on the device. The results are those of the last run. Changes nothing on the CPU, whose steps are
  /// not timed. Throws UsageError where `times` is less than 1.
  void repeat_kernels(std::int64_t times);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
