#pragma once

#include <array>
#include <cstdint>
#include <dic/image_io.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dic::app {

/// A copy of the part {x, y, width, height} of an image, px. Throws UsageError unless it lies inside; what:
/// "The template".
Image part_of(ImageView image, const std::array<int, 4>& part, const std::string& what);

/// The images of `dic match`, named as the user named them: files, or the frames of a video or stack.
class MatchImages {
 public:
  /// Throws FileError if a name matches nothing.
  explicit MatchImages(const std::vector<std::string>& arguments);

  /// Number of images; none for a video that does not state it.
  std::optional<std::int64_t> count() const { return source_->count(); }
  std::string name(std::int64_t i) const;
  /// Image number `i`; none past the end. Throws FileError.
  std::optional<Image> read(std::int64_t i);
  const std::vector<std::filesystem::path>& files() const { return files_; }

 private:
  std::vector<std::filesystem::path> files_;
  std::unique_ptr<FrameSource> source_;
};

}  // namespace dic::app
