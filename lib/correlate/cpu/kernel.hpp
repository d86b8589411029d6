#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/correlate.hpp>
#include <dic/error.hpp>
#include <memory>
#include <stop_token>
#include <type_traits>
#include <vector>

/// The inner loop, which each variant of the CPU backend supplies. Runner (runner.hpp) does everything else.
namespace dic::correlate {

/// Sums of products of T: exact integers, or float64. Unsigned sums beyond 2^63 do not occur: that would take
/// 2^31 elements of u16.
template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;

/// A rectangle of elements; it does not own them.
template <typename T>
struct Block {
  const T* data = nullptr;
  std::ptrdiff_t row_bytes = 0;
  int height = 0;
  int width = 0;

  const T* row(int y) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(data) + y * row_bytes);
  }
  Block at(int y, int x, int h, int w) const { return {row(y) + x, row_bytes, h, w}; }
};

/// The elements of a patch, or of its mask, as a view into the image.
template <typename T>
Block<T> block_of(const ImageView& image, const PatchPosition& at, const Size& size) {
  return {image.template row<T>(at.y) + at.x, image.row_bytes, size.height, size.width};
}

/// Sums over the elements of a reference that its mask includes.
template <typename T>
struct ReferenceSums {
  Sum<T> count = 0;
  Sum<T> sum = 0;
  Sum<T> squares = 0;
  /// Sum of (element - mean)^2, rounded once.
  double variation = 0;
  /// One of the elements and the sum of (element - origin), only set for floats: this sum keeps the digits of
  /// a contrast that is small compared with the mean.
  double origin = 0, sum_from_origin = 0;

  /// Sum of (element - offset). An offset near the mean is subtracted from floats without rounding.
  double sum_from(Sum<T> offset) const {
    if constexpr (std::is_floating_point_v<T>) return sum_from_origin - count * (offset - origin);
    return static_cast<double>(sum - count * offset);
  }
};

/// The offset to subtract from the elements of a reference before they are multiplied: the mean for floats
/// whose products are scored, because sums around 0 keep the digits of a small contrast; otherwise 0.
template <typename T>
Sum<T> centring_offset(const ReferenceSums<T>& sums, Criterion criterion) {
  if constexpr (std::is_floating_point_v<T>)
    if (criterion != Criterion::cross_correlation && sums.count > 0) return sums.sum / sums.count;
  return 0;
}

/// Throws Cancelled if a stop is requested.
inline void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("The correlation was cancelled.");
}

struct TileSize {
  int ny = 0;
  int nx = 0;
};

class KernelBase {
 public:
  virtual ~KernelBase() = default;
  /// Sets the token that ends `correlate` and `set_reference` early, by Cancelled; called before `begin`.
  void set_stop(const std::stop_token& stop) { stop_ = stop; }
  /// Prepares a job; called once per job, before any reference.
  virtual void begin(const CorrelateShape& shape) = 0;
  /// The number of shifts per call of `correlate` that suits the kernel best.
  virtual TileSize tile() const = 0;
  /// Elements that `correlate` may read (and ignore) to the right of each row of its window.
  virtual int read_ahead() const { return 0; }
  /// True if `correlate` may return an error above 0 in the current job.
  virtual bool inexact() const { return false; }
  /// Announces the pair and the shifts of the next `correlate`. Only kernels that hand out precomputed sums
  /// need it.
  virtual void begin_part(std::int64_t /*pair*/, const Shifts& /*part*/) {}

 protected:
  std::stop_token stop_;
};

/// The inner loop for one element type. Each thread owns one.
template <typename T>
class Kernel : public KernelBase {
 public:
  /// Sets the reference; mask.data may be null. Returns the offset a that `correlate` subtracts from every
  /// element that the mask includes.
  virtual Sum<T> set_reference(const Block<T>& reference, const Block<std::uint8_t>& mask,
                               const ReferenceSums<T>& sums) = 0;
  /// Computes out[dy * nx + dx] = sum_ij (ref[i, j] - a) * window[i + dy, j + dx] over the elements that the
  /// mask includes, for 0 <= dy < ny, 0 <= dx < nx. The window has reference.height + ny - 1 rows and
  /// reference.width + nx - 1 columns. Returns a bound of the error of every element of out, 0 if the sums
  /// are exact.
  virtual double correlate(const Block<T>& window, int ny, int nx, Sum<T>* out) = 0;
};

/// A variant of the CPU backend. `make` returns a Kernel<T> of the requested type.
struct CpuVariant {
  CorrelateVariant info;
  std::unique_ptr<KernelBase> (*make)(ScalarType type);
  std::string (*unsupported_reason)(const CorrelateShape& shape);
};

CpuVariant naive_variant();
CpuVariant direct_variant();
CpuVariant fft_variant();
const std::vector<CpuVariant>& cpu_variants();

CorrelatePlan plan_cpu(const CorrelateShape& shape, const DeviceProperties& device);

}  // namespace dic::correlate
