#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/kernels/device.hpp>
#include <dic/kernels/image.hpp>
#include <type_traits>

/// Reductions of segments, largest elements of segments, integral images. All are repeatable: floats are
/// added in an order that depends on the sizes alone, and equal values rank by their index, lowest first. T
/// is std::uint8_t, std::uint16_t, std::int32_t (except for integral images), float or double (double only
/// for sums and extrema).
namespace dic::kernels {

/// `count` segments of `length` elements, whose starts are `stride` elements apart: the rows of an image,
/// the surfaces of a batch. `data` is device memory, aligned to the element.
template <typename T>
struct Segments {
  const T* data = nullptr;
  std::int64_t count = 0;
  std::int64_t length = 0;
  std::int64_t stride = 0;
};

/// Type of sums: exact 64-bit integers for integers, f64 for floats.
template <typename T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double,
                                 std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

/// An element of a segment, never a NaN. The index is -1 if there is no such element.
template <typename T>
struct Element {
  T value;
  std::int64_t index;

  friend bool operator==(const Element&, const Element&) = default;
};

/// Bytes of device scratch memory for reductions of such segments.
template <typename T>
std::size_t reduction_workspace_bytes(const Segments<T>& in);
/// Queues one result per segment; an empty segment has the sum 0.
template <typename T>
void launch_sums(const Segments<T>& in, SumOf<T>* sums, void* workspace, StreamHandle stream);
template <typename T>
void launch_minima(const Segments<T>& in, Element<T>* minima, void* workspace, StreamHandle stream);
template <typename T>
void launch_maxima(const Segments<T>& in, Element<T>* maxima, void* workspace, StreamHandle stream);

/// Largest allowed k of launch_largest.
constexpr int most_largest = 1024;
std::size_t largest_workspace_bytes(const Segments<float>& in, int k);
/// Queues the k largest elements of every segment, largest first: out[segment, 0..k-1]. k is 1 to
/// most_largest, and segments are shorter than 2^32 - 1 (throws UsageError otherwise).
void launch_largest(const Segments<float>& in, int k, Element<float>* out, void* workspace,
                    StreamHandle stream);

/// Power of the elements that an integral image adds up.
enum class Power : std::uint8_t { one, two };
/// Element type of an integral image: exact for integers. Sums of u8 are modulo 2^32, which cancels in the
/// sum of any rectangle of up to 2^24 px.
template <typename T, Power power>
using IntegralOf = std::conditional_t<
    std::is_floating_point_v<T>, double,
    std::conditional_t<sizeof(T) == 1 && power == Power::one, std::uint32_t, std::uint64_t>>;
template <typename T, Power power>
std::size_t integral_workspace_bytes(const DeviceImage& in);
/// Queues table[y, x] = sum of in(i, j)^power over j < y, i < x: (height + 1) x (width + 1), packed. The sum
/// over a rectangle is then table[y1, x1] - table[y0, x1] - table[y1, x0] + table[y0, x0].
template <typename T, Power power>
void launch_integral(const DeviceImage& in, IntegralOf<T, power>* table, void* workspace,
                     StreamHandle stream);

}  // namespace dic::kernels
