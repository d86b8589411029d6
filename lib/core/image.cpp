#include <cstring>
#include <dic/error.hpp>
#include <dic/image.hpp>
#include <string>

namespace dic {
namespace {

std::string describe(Size size, ScalarType type) {
  return std::to_string(size.width) + "x" + std::to_string(size.height) + " elements of type " +
         std::string(to_string(type));
}

std::size_t bytes_of(Size size, ScalarType type) {
  if (size.width < 0 || size.height < 0) throw UsageError("An image cannot have a negative size.");
  return static_cast<std::size_t>(size.width) * size.height * size_of(type);
}

void check(const void* first, ScalarType type, Size size, std::ptrdiff_t row_bytes, int bit_depth) {
  if (size.width < 0 || size.height < 0) throw UsageError("An image cannot have a negative size.");
  const bool is_empty = size.width == 0 || size.height == 0;
  if (!first && !is_empty) throw UsageError("The pixels of an image are a null pointer.");
  const auto least = static_cast<std::ptrdiff_t>(size.width * size_of(type));
  if (size.height > 1 && row_bytes < least && -row_bytes < least)
    throw UsageError("The rows of an image overlap: " + describe(size, type) + " need " +
                     std::to_string(least) + " bytes from row to row, not " + std::to_string(row_bytes) +
                     ".");
  const bool has_depth = type == ScalarType::u8 || type == ScalarType::u16;
  if (bit_depth < 0 || bit_depth > (has_depth ? static_cast<int>(8 * size_of(type)) : 0))
    throw UsageError("Elements of type " + std::string(to_string(type)) + " cannot have a bit depth of " +
                     std::to_string(bit_depth) + ": give 0 for any value.");
}

}  // namespace

ImageView ImageView::of(const void* first, ScalarType type, Size size, std::ptrdiff_t row_bytes,
                        int bit_depth) {
  check(first, type, size, row_bytes, bit_depth);
  return {first, type, size.width, size.height, row_bytes, bit_depth};
}

ImageView ImageView::packed_view(const void* first, std::size_t count, ScalarType type, Size size,
                                 int bit_depth) {
  const auto row_bytes = static_cast<std::ptrdiff_t>(size.width * size_of(type));
  const ImageView view = of(first, type, size, row_bytes, bit_depth);
  if (count < static_cast<std::size_t>(size.width) * size.height)
    throw UsageError("An image of " + describe(size, type) + " does not fit into " + std::to_string(count) +
                     ".");
  return view;
}

Image::Image(Size size, ScalarType type, int bit_depth) : size_(size), type_(type), bit_depth_(bit_depth) {
  bytes_ = PixelMemory(bytes_of(size, type));
}

Image Image::uninitialized(Size size, ScalarType type, int bit_depth) {
  Image image;
  image.size_ = size;
  image.type_ = type;
  image.bit_depth_ = bit_depth;
  image.bytes_ = PixelMemory::uninitialized(bytes_of(size, type));
  return image;
}

ImageView Image::view() const {
  const auto row_bytes = static_cast<std::ptrdiff_t>(size_.width * size_of(type_));
  return {bytes_.data(), type_, size_.width, size_.height, row_bytes, bit_depth_};
}

Image copy_of(ImageView image) {
  Image out = Image::uninitialized(image.size(), image.type, image.bit_depth);
  const std::size_t bytes = image.width * size_of(image.type);
  for (int y = 0; y < image.height; ++y)
    if (bytes > 0) std::memcpy(out.row<std::byte>(0) + y * bytes, image.row<std::byte>(y), bytes);
  return out;
}

}  // namespace dic
