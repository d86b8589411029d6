#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace dic {

/// Reads one picture as grey: 8 and 16 bit stay u8 and u16, float stays f32.
///
/// PNG, TIFF, BMP, JPEG, PGM and what else OpenCV decodes. Colour (and palette) becomes grey by
/// Y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded to the picture's type; alpha is ignored; equal
/// channels keep their value exactly. Only the first page of a multi-page TIFF is read.
/// Throws FileError: missing, unreadable, not a picture, truncated (a truncated JPEG, PNG or TIFF is refused,
/// never returned half grey), not finite values in a float picture, an element type that is not supported.
Image read_image(const std::filesystem::path& path);

/// Writes u8 or u16 (PNG, TIFF, BMP, PGM by the ending) or f32 (TIFF). Writes to a temporary name beside it
/// and renames. Throws FileError.
void write_image(const std::filesystem::path& path, ImageView picture);

/// Expands files, globs ("frames/*.png", quoted), directories into a list of picture files.
///
/// Order (the contract of `dic track`): inside a directory and a quoted glob naturally sorted (frame2 before
/// frame10); a list of files that is in plain alphabetical order (what a shell's glob gives) is sorted
/// naturally too; any other list keeps its order. Files in a directory that are not pictures by their ending
/// are skipped. Throws FileError where a name matches nothing.
std::vector<std::filesystem::path> expand_frames(const std::vector<std::string>& arguments);

/// Natural order: runs of digits compare as numbers ("img_9" < "img_10").
bool natural_less(const std::string& a, const std::string& b);

/// True for endings of video files (avi, mp4, mov, mkv, ...).
bool is_video(const std::filesystem::path& path);

/// A sequence of frames, read one at a time: picture files or the frames of one video.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  /// Number of frames; -1 where a video does not say.
  virtual std::int64_t count() const = 0;
  /// Name of frame i for messages and file stems ("frame_0003.png"; "clip_000012" for video).
  virtual std::string name(std::int64_t i) const = 0;
  /// Reads frame i. Video is decoded in order: i must not decrease. Throws FileError for a frame that cannot
  /// be read (the next one still can) and std::out_of_range past the end.
  virtual Image read(std::int64_t i) = 0;
};

/// Opens what `expand_frames` gave, or a video. Nothing is decoded yet. Throws FileError.
std::unique_ptr<FrameSource> open_frames(const std::vector<std::string>& arguments);

}  // namespace dic
