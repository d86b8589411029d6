#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace dic {

/// Type of one element of an image or matrix.
enum class ScalarType : std::uint8_t { u8, u16, i32, f32, f64 };

/// "u8", "u16", "i32", "f32", "f64".
constexpr std::string_view to_string(ScalarType type) {
  constexpr std::string_view names[] = {"u8", "u16", "i32", "f32", "f64"};
  return names[static_cast<int>(type)];
}

/// Calls `visitor(T{})` with the C++ type of `type`: the one place where types become templates.
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

/// Width and height, in px or elements: always in this order.
struct Size {
  int width = 0;
  int height = 0;

  bool operator==(const Size&) const = default;
};

/// One grey image (or matrix) that somebody else owns: h rows of w elements, row-major, x right, y down.
/// Rows may be padded (`row_bytes` >= width * element size) and need no alignment.
struct ImageView {
  const void* data = nullptr;
  ScalarType type = ScalarType::u8;
  int width = 0;                 ///< px
  int height = 0;                ///< px
  std::ptrdiff_t row_bytes = 0;  ///< distance between the starts of two rows, in bytes
  int bit_depth = 0;             ///< integer types: elements are below 2^bit_depth (10, 12); 0 = any value

  template <typename T>
  const T* row(int y) const {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(data) + y * row_bytes);
  }
  Size size() const { return {width, height}; }
  bool empty() const { return width <= 0 || height <= 0; }
};

}  // namespace dic
