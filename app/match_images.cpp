#include "match_images.hpp"

#include <cstddef>
#include <dic/error.hpp>
#include <stdexcept>

namespace dic::app {

Image part_of(ImageView image, const std::array<int, 4>& part, const std::string& what) {
  const auto [x, y, width, height] = part;
  if (x < 0 || y < 0 || width < 1 || height < 1 || width > image.width || height > image.height ||
      x > image.width - width || y > image.height - height)
    throw UsageError(what + " does not lie inside the image (" + std::to_string(image.width) + "x" +
                     std::to_string(image.height) + " px).");
  image.data = static_cast<const std::byte*>(image.data) + y * image.row_bytes +
               static_cast<std::ptrdiff_t>(x * size_of(image.type));
  image.width = width, image.height = height;
  return copy_of(image);
}

MatchImages::MatchImages(const std::vector<std::string>& arguments)
    : files_(expand_frames(arguments)), source_(open_frames(arguments)) {}

std::string MatchImages::name(std::int64_t i) const {
  const bool is_whole_file = source_->reads_in_parallel() && source_->file(i).filename() == source_->name(i);
  return is_whole_file ? source_->file(i).string() : source_->name(i);
}

std::optional<Image> MatchImages::read(std::int64_t i) {
  try {
    return source_->read(i);
  } catch (const std::out_of_range&) {
    return std::nullopt;
  }
}

}  // namespace dic::app
