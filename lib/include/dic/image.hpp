#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace dic {

/// Type of one element of an image or matrix.
enum class ScalarType : std::uint8_t { u8, u16, i32, f32, f64 };

/// Size of one element in bytes.
std::size_t size_of(ScalarType type);
/// "u8", "u16", "i32", "f32", "f64".
std::string_view to_string(ScalarType type);

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
  bool empty() const { return width <= 0 || height <= 0; }
};

/// A grey image that owns its elements. Rows are contiguous.
class Image {
 public:
  Image() = default;
  /// Zero-filled image of `width` x `height` px. Throws UsageError for negative sizes.
  Image(int width, int height, ScalarType type, int bit_depth = 0);

  int width() const { return width_; }
  int height() const { return height_; }
  ScalarType type() const { return type_; }
  int bit_depth() const { return bit_depth_; }
  void set_bit_depth(int bits) { bit_depth_ = bits; }
  bool empty() const { return width_ <= 0 || height_ <= 0; }

  template <typename T>
  T* row(int y) {
    return reinterpret_cast<T*>(bytes_.data()) + static_cast<std::ptrdiff_t>(y) * width_;
  }
  template <typename T>
  const T* row(int y) const {
    return reinterpret_cast<const T*>(bytes_.data()) + static_cast<std::ptrdiff_t>(y) * width_;
  }
  ImageView view() const;
  operator ImageView() const { return view(); }  // NOLINT: a view of itself is what every call wants

 private:
  int width_ = 0;
  int height_ = 0;
  ScalarType type_ = ScalarType::u8;
  int bit_depth_ = 0;
  std::vector<std::byte> bytes_;
};

/// A copy of its own, rows contiguous.
Image copy_of(ImageView image);

/// Calls `visitor(T{})` with the C++ type of `type`: the one place where types become templates.
template <typename Visitor>
decltype(auto) visit_scalar(ScalarType type, Visitor&& visitor) {
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

}  // namespace dic
