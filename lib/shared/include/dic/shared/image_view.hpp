#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/shared/enum_names.hpp>
#include <dic/shared/export.hpp>
#include <string_view>
#include <type_traits>

namespace dic {

/// Type of one element of an image or matrix.
enum class ScalarType : std::uint8_t { u8, u16, i32, f32, f64 };
template <>
struct EnumNames<ScalarType> {
  static constexpr EnumName<ScalarType> table[] = {{ScalarType::u8, "u8"},
                                                   {ScalarType::u16, "u16"},
                                                   {ScalarType::i32, "i32"},
                                                   {ScalarType::f32, "f32"},
                                                   {ScalarType::f64, "f64"}};
};

/// Calls `visitor(T{})` with the C++ type of `type`; the only place that maps run-time types to templates.
template <typename Visitor>
constexpr decltype(auto) visit_scalar(ScalarType type, Visitor&& visitor) {
  switch (type) {
    case ScalarType::u8:
      return visitor(std::uint8_t{});
    case ScalarType::u16:
      return visitor(std::uint16_t{});
    case ScalarType::i32:
      return visitor(std::int32_t{});
    case ScalarType::f32:
      return visitor(float{});
    case ScalarType::f64:
      break;
  }
  return visitor(double{});
}

/// Size of one element in bytes.
constexpr std::size_t size_of(ScalarType type) {
  return visit_scalar(type, [](auto element) { return sizeof(element); });
}

/// The ScalarType of a C++ type.
template <typename T>
constexpr ScalarType scalar_type_of() = delete;
template <>
constexpr ScalarType scalar_type_of<std::uint8_t>() {
  return ScalarType::u8;
}
template <>
constexpr ScalarType scalar_type_of<std::uint16_t>() {
  return ScalarType::u16;
}
template <>
constexpr ScalarType scalar_type_of<std::int32_t>() {
  return ScalarType::i32;
}
template <>
constexpr ScalarType scalar_type_of<float>() {
  return ScalarType::f32;
}
template <>
constexpr ScalarType scalar_type_of<double>() {
  return ScalarType::f64;
}

/// Width and height, in px or elements: always in this order.
struct Size {
  int width = 0;
  int height = 0;

  bool operator==(const Size&) const = default;
};

/// One grey image (or matrix) that somebody else owns: `height` rows of `width` elements, x right, y down.
/// Rows may be padded, may run upwards in memory (`row_bytes` < 0) and need no alignment. The functions `of`
/// check a view; setting the members directly does not.
struct ImageView {
  const void* data = nullptr;
  ScalarType type = ScalarType::u8;
  int width = 0;                 ///< px
  int height = 0;                ///< px
  std::ptrdiff_t row_bytes = 0;  ///< distance between the starts of two rows, in bytes
  int bit_depth = 0;             ///< integer types: elements are below 2^bit_depth (10, 12); 0 = any value

  /// A view of pixels whose first row begins at `first`. Throws UsageError: a null pointer, a negative size,
  /// rows that overlap (|row_bytes| < width * element size), a bit depth that the type does not have.
  template <typename T>
  static ImageView of(const T* first, Size size, std::ptrdiff_t row_bytes, int bit_depth = 0) {
    return of(first, scalar_type_of<T>(), size, row_bytes, bit_depth);
  }
  /// A view of pixels whose type is known at run time. Throws as above.
  DIC_API static ImageView of(const void* first, ScalarType type, Size size, std::ptrdiff_t row_bytes,
                              int bit_depth = 0);
  /// A view of rows without padding in a container (std::vector, std::array, std::span). Throws UsageError as
  /// above, and if the container has fewer than width * height elements.
  template <typename Pixels>
  requires requires(const Pixels& pixels) { *pixels.data(), pixels.size(); }
  static ImageView of(const Pixels& pixels, Size size, int bit_depth = 0) {
    using T = std::remove_cvref_t<decltype(*pixels.data())>;
    return packed_view(pixels.data(), pixels.size(), scalar_type_of<T>(), size, bit_depth);
  }

  /// The first element of row y. T must be the type of the elements.
  template <typename T>
  const T* row(int y) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(data) + y * row_bytes);
  }
  Size size() const { return {width, height}; }
  bool empty() const { return width <= 0 || height <= 0; }

 private:
  DIC_API static ImageView packed_view(const void* first, std::size_t count, ScalarType type, Size size,
                                       int bit_depth);
};

}  // namespace dic
