#include <cstring>
#include <dic/error.hpp>
#include <dic/image.hpp>

namespace dic {

Image::Image(int width, int height, ScalarType type, int bit_depth)
    : width_(width), height_(height), type_(type), bit_depth_(bit_depth) {
  if (width < 0 || height < 0) throw UsageError("An image cannot have a negative size.");
  bytes_.resize(static_cast<std::size_t>(width) * height * size_of(type));
}

ImageView Image::view() const {
  return {bytes_.data(), type_, width_, height_, static_cast<std::ptrdiff_t>(width_ * size_of(type_)),
          bit_depth_};
}

Image copy_of(ImageView image) {
  Image out(image.width, image.height, image.type, image.bit_depth);
  const std::size_t bytes = image.width * size_of(image.type);
  for (int y = 0; y < image.height; ++y)
    if (bytes > 0) std::memcpy(out.row<std::byte>(0) + y * bytes, image.row<std::byte>(y), bytes);
  return out;
}

}  // namespace dic
