#pragma once

#include <dic/image.hpp>
#include <dic/image_io.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace dic::app {

/// An image as the page draws it: u8, u16 or f32 values, row by row, reduced by means of `reduced` x
/// `reduced` px where it is larger than a browser's canvas likes.
struct PageImage {
  int width = 0, height = 0, reduced = 1;
  ScalarType type = ScalarType::u8;
  std::string bytes;
};

/// longest: side of the image that is returned, px at most.
PageImage page_image(ImageView image, int longest = 4096);
/// The same in 8 bits, stretched between 0.5 and 99.5 % of the values of other types.
PageImage page_image_8bit(ImageView image, int longest);

/// The images that a user named: they are read by number, never by a name that a page sends. Calls may
/// overlap.
class NamedImages {
 public:
  NamedImages() = default;
  /// Throws FileError by the rules of `open_frames`.
  explicit NamedImages(const std::vector<std::string>& arguments);

  bool empty() const { return !source_; }
  /// Number of frames. Of a video that does not store it, the first call decodes all frames.
  int count() const;
  std::string name(int index) const { return source_->name(index); }
  /// The image of this file name.
  std::optional<int> find(const std::string& name) const;
  /// Throws FileError.
  Image read(int index) const;

 private:
  struct Video;

  std::unique_ptr<FrameSource> source_;
  std::shared_ptr<Video> video_;  ///< null for image files
};

}  // namespace dic::app
