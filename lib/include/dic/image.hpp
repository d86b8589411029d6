#pragma once

#include <cstddef>
#include <dic/shared/image_view.hpp>  // ScalarType, Size, ImageView
#include <vector>

namespace dic {

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

}  // namespace dic
