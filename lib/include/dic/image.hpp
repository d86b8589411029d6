#pragma once

#include <cstddef>
#include <dic/export.hpp>
#include <dic/memory.hpp>
#include <dic/shared/image_view.hpp>  // ScalarType, Size, ImageView

namespace dic {

/// A grey image that owns its elements. Rows are contiguous.
class Image {
 public:
  Image() = default;
  /// A black image (zeros). Throws UsageError for negative sizes.
  DIC_API Image(Size size, ScalarType type, int bit_depth = 0);
  /// An image whose pixels must be written before they are read. Throws like the constructor.
  DIC_API static Image uninitialized(Size size, ScalarType type, int bit_depth = 0);

  Size size() const { return size_; }
  int width() const { return size_.width; }
  int height() const { return size_.height; }
  ScalarType type() const { return type_; }
  int bit_depth() const { return bit_depth_; }
  void set_bit_depth(int bits) { bit_depth_ = bits; }
  bool empty() const { return size_.width <= 0 || size_.height <= 0; }

  template <typename T>
  T* row(int y) {
    return reinterpret_cast<T*>(bytes_.data()) + static_cast<std::ptrdiff_t>(y) * size_.width;
  }
  template <typename T>
  const T* row(int y) const {
    return reinterpret_cast<const T*>(bytes_.data()) + static_cast<std::ptrdiff_t>(y) * size_.width;
  }
  DIC_API ImageView view() const;
  operator ImageView() const { return view(); }  // NOLINT: every function takes a view

 private:
  Size size_;
  ScalarType type_ = ScalarType::u8;
  int bit_depth_ = 0;
  PixelMemory bytes_;
};

/// Copies a view into an image of its own, with contiguous rows.
DIC_API Image copy_of(ImageView image);

}  // namespace dic
