#include <cstring>
#include <dic/error.hpp>
#include <dic/image.hpp>

namespace dic {

Image::Image(Size size, ScalarType type, int bit_depth) : size_(size), type_(type), bit_depth_(bit_depth) {
  if (size.width < 0 || size.height < 0) throw UsageError("An image cannot have a negative size.");
  bytes_.resize(static_cast<std::size_t>(size.width) * size.height * size_of(type));
}

ImageView Image::view() const {
  const auto row_bytes = static_cast<std::ptrdiff_t>(size_.width * size_of(type_));
  return {bytes_.data(), type_, size_.width, size_.height, row_bytes, bit_depth_};
}

Image copy_of(ImageView image) {
  Image out(image.size(), image.type, image.bit_depth);
  const std::size_t bytes = image.width * size_of(image.type);
  for (int y = 0; y < image.height; ++y)
    if (bytes > 0) std::memcpy(out.row<std::byte>(0) + y * bytes, image.row<std::byte>(y), bytes);
  return out;
}

}  // namespace dic
