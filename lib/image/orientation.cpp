#include "image/orientation.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace dic::image {
namespace {

/// The place at which the pixel (0, 0) of the displayed image is stored, and the distances of its neighbours,
/// in elements.
struct Walk {
  std::ptrdiff_t first = 0, right = 1, down = 0;
};

Walk walk_of(Size stored, Orientation orientation) {
  const std::ptrdiff_t w = stored.width, last = static_cast<std::ptrdiff_t>(stored.height - 1) * w;
  switch (orientation) {
    case 2:
      return {w - 1, -1, w};
    case 3:
      return {last + w - 1, -1, -w};
    case 4:
      return {last, 1, -w};
    case 5:
      return {0, w, 1};
    case 6:
      return {last, -w, 1};
    case 7:
      return {last + w - 1, -w, -1};
    default:
      return {w - 1, w, -1};
  }
}

/// Copies in squares, because a column of a large image lies in as many pages of memory as it has pixels.
template <typename T>
void copy_turned(const Image& stored, const Walk& walk, Image& shown) {
  constexpr int kSquare = 64;
  const T* first = stored.row<T>(0) + walk.first;
  for (int top = 0; top < shown.height(); top += kSquare)
    for (int left = 0; left < shown.width(); left += kSquare)
      for (int y = top; y < std::min(top + kSquare, shown.height()); ++y) {
        const T* from = first + y * walk.down + left * walk.right;
        T* to = shown.row<T>(y) + left;
        for (int x = left; x < std::min(left + kSquare, shown.width()); ++x, from += walk.right)
          *to++ = *from;
      }
}

/// Numbers in a block of EXIF data; 0 beyond its end.
class ExifBlock {
 public:
  explicit ExifBlock(std::span<const std::uint8_t> bytes) : bytes_(bytes) {
    const std::string_view order(reinterpret_cast<const char*>(bytes.data()),
                                 std::min<std::size_t>(2, bytes.size()));
    is_little_ = order == "II";
    is_block_ = is_little_ || order == "MM";
  }
  bool is_block() const { return is_block_; }
  std::uint32_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i)
      value = value << 8 | bytes_[is_little_ ? at + size - 1 - i : at + i];
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  bool is_little_ = false, is_block_ = false;
};

}  // namespace

Image oriented(Image image, Orientation orientation) {
  if (orientation < 2 || orientation > 8 || image.empty()) return image;
  const Size stored = image.size();
  const Size size = orientation > 4 ? Size{stored.height, stored.width} : stored;
  Image shown = Image::uninitialized(size, image.type(), image.bit_depth());
  const Walk walk = walk_of(stored, orientation);
  visit_scalar(image.type(), [&](auto element) { copy_turned<decltype(element)>(image, walk, shown); });
  return shown;
}

Orientation exif_orientation(std::span<const std::uint8_t> exif) {
  constexpr std::size_t kEntry = 12, kOffsetAt = 4;
  constexpr std::uint32_t kOrientation = 0x112, kShort = 3;
  const ExifBlock block(exif);
  if (!block.is_block() || block.number(2, 2) != 42) return kAsStored;
  const std::size_t directory = block.number(kOffsetAt, 4), entries = block.number(directory, 2);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntry;
    if (block.number(entry, 2) != kOrientation || block.number(entry + 2, 2) != kShort) continue;
    const auto found = static_cast<Orientation>(block.number(entry + 8, 2));
    return found >= 1 && found <= 8 ? found : kAsStored;
  }
  return kAsStored;
}

}  // namespace dic::image
