#include "run/orientation_warning.hpp"

#include <filesystem>

#include "image/orientation.hpp"

namespace dic::run {

std::string orientation_warning(const FrameSource& source, const std::string& reference) {
  if (!source.reads_in_parallel()) return {};  // a video has one for all frames
  std::filesystem::path first = reference, last, other;
  image::Orientation expected = reference.empty() ? 0 : image::stored_orientation(reference), found = 0;
  std::int64_t count = 0;
  for (std::int64_t k = 0; k < source.count().value_or(0); ++k) {
    const std::filesystem::path file = source.file(k);
    if (file == last) continue;  // another page
    last = file;
    const image::Orientation orientation = image::stored_orientation(file);
    if (expected == 0) {
      expected = orientation;
      first = file;
    } else if (orientation != expected && count++ == 0) {
      found = orientation;
      other = file;
    }
  }
  if (count == 0) return {};
  return other.filename().string() + " notes the orientation " + std::to_string(found) + ", " +
         first.filename().string() + " the orientation " + std::to_string(expected) +
         (count > 1 ? " (" + std::to_string(count) + " images differ)" : std::string()) +
         "; each image was turned as its file says: if the camera did not turn, remove the orientation from "
         "the files.";
}

}  // namespace dic::run
