#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/image.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace dic {

/// Reads one image as grey: 8 and 16 bit stay u8 and u16, float stays f32 (16- and 64-bit float becomes f32).
///
/// Reads PNG, TIFF (DNG too), BMP, JPEG, PGM, GIF and any other format that OpenCV decodes. Colour (and
/// palette) becomes grey by Y = 0.299 R + 0.587 G + 0.114 B (ITU-R BT.601), rounded to the image's type;
/// equal channels keep their value exactly; for a JPEG the stored luma is taken, which is the same Y before
/// any rounding of R, G, B. CMYK becomes RGB by R = (1 - C)(1 - K). Alpha is ignored (read_opacity() reads
/// it), white-is-zero TIFFs of up to 16 bit are inverted. The orientation that EXIF or a TIFF notes is
/// applied: the image is as viewers show it. TIFFs of 1 to 7 bit are scaled to 0..255, those of 9 to 15 bit
/// keep their values in u16 and set `bit_depth`; signed and 32-bit whole numbers become f32 (rounded beyond
/// 2^24). Of a TIFF with several pages and of a GIF the first picture is read; thumbnails and reduced copies
/// are no pictures. The largest image has 2^30 pixels. Throws FileError: missing, unreadable, not an image,
/// too large, truncated or damaged (a partial image is never returned), values in a float image that are not
/// finite, an element type or a compression that is not supported.
DIC_API Image read_image(const std::filesystem::path& path);

/// The pixels of an image file that are at least half opaque: u8, 255 there, 0 elsewhere. An empty image if
/// all are. Throws like read_image().
DIC_API Image read_opacity(const std::filesystem::path& path);

/// Reads a mask: u8, 255 inside, 0 outside. Inside is where the image is not 0; with lossy compression
/// (JPEG), where it is above half its largest value. White-is-zero TIFFs by ImageJ and tifffile, which store
/// masks so, count by what they store. Transparent pixels are outside; where all opaque pixels have the same
/// answer, the opacity alone decides. Throws like read_image(), and if the file holds several images.
DIC_API Image read_mask(const std::filesystem::path& path);

/// Writes u8 or u16 (PNG, TIFF, BMP, PGM by the ending; 16 bit not as BMP) or f32 (TIFF). Writes to a
/// temporary name in the same folder, then renames, so that the file is complete or absent. Throws FileError
/// (no rights, disk full) and UsageError for an ending or an element type that does not fit.
DIC_API void write_image(const std::filesystem::path& path, ImageView image);

/// A colour image that somebody else owns: `height` rows of `width` pixels of 3 bytes R, G, B, no padding.
struct RgbView {
  const std::uint8_t* data = nullptr;
  int width = 0;   ///< px
  int height = 0;  ///< px
};
/// Writes an 8-bit colour image (PNG, TIFF, BMP). Throws like the function for grey images.
DIC_API void write_image(const std::filesystem::path& path, RgbView image);

/// A colour image that is made row by row, so that it need not fit into memory as a whole.
struct RgbRows {
  Size size = {};  ///< px
  /// Writes row y, from 0 at the top: size.width pixels of 3 bytes R, G, B. Called from the top down, at most
  /// once per row.
  std::function<void(int y, std::span<std::uint8_t> rgb)> write_row = {};
};
/// Writes a colour image that is made row by row. A PNG is written without holding the whole image. Throws
/// like the function for grey images.
DIC_API void write_image(const std::filesystem::path& path, const RgbRows& image);

/// Expands files, globs ("frames/*.png", quoted), directories into a list of image files.
///
/// Order, as guaranteed by `dic track`: files of a directory or a quoted glob are sorted naturally (frame2
/// before frame10, frame_-1 before frame_0, 0.25kN before 0.5kN); a list of files in alphabetical order (as a
/// shell expands a glob, by bytes or in the user's language) is sorted naturally too; any other list keeps its
/// order. Files of a directory that are hidden, or not images by
/// their ending, are skipped; recordings of high-speed cameras count as images. An argument that names an existing file or directory is taken literally, even
/// if it contains glob characters (* ? [ ]). Throws FileError if a name matches nothing.
DIC_API std::vector<std::filesystem::path> expand_frames(const std::vector<std::string>& arguments);

/// Natural order of two names: numbers compare as numbers ("img_9" < "img_10"), with a sign ("img_-1" <
/// "img_0") and with decimals before a unit ("0.25kN" < "0.5kN"). All names of a list tell more than two;
/// see expand_frames.
DIC_API bool natural_less(const std::string& a, const std::string& b);

/// Size and modification time of a file, as text; empty if the file does not exist.
DIC_API std::string file_stamp(const std::filesystem::path& path);

/// True for endings of video files (avi, mp4, mov, mkv, ...).
DIC_API bool is_video(const std::filesystem::path& path);

/// A sequence of frames, read one at a time: image files, pages of TIFF stacks, recordings of high-speed
/// cameras, or the frames of one video.
class DIC_API FrameSource {
 public:
  virtual ~FrameSource() = default;
  /// Number of frames; none if a video does not tell. A video may hold a few frames more or less.
  virtual std::optional<std::int64_t> count() const = 0;
  /// Name of frame i for messages and file stems ("frame_0003.png"; "clip_000012" for a file with several
  /// frames).
  virtual std::string name(std::int64_t i) const = 0;
  /// The file that holds frame i.
  virtual std::filesystem::path file(std::int64_t i) const = 0;
  /// Reads frame i. Video is decoded in order: i must not decrease (UsageError). Throws FileError for a frame
  /// that cannot be read (the next one still can) and std::out_of_range past the end. A video that ends well
  /// before its own count is a FileError at the first missing frame, then std::out_of_range.
  virtual Image read(std::int64_t i) = 0;
  /// A text that changes when the file of frame i changes: its size and modification time. Empty if unknown.
  virtual std::string stamp(std::int64_t) const { return {}; }
  /// Frame rate of a video or a recording, if known.
  virtual std::optional<double> frames_per_second() const { return {}; }
  /// Time at which frame i is shown or was taken, s from the first frame, if the file notes it for each
  /// frame. A video knows the times of frames that were read (and of the first one). Thread-safe.
  virtual std::optional<double> time(std::int64_t) const { return {}; }
  /// True if several threads may read at the same time, in any order.
  virtual bool reads_in_parallel() const { return false; }
};

/// Opens the images that `expand_frames` finds, or one video. The pages of a TIFF and the frames of a
/// recording
/// (.cine of Phantom; .mraw with its .cihx or .cih of Photron) are frames, as are those of a GIF that is
/// named alone. Nothing is decoded yet. Throws FileError, also if a video is mixed with other files.
DIC_API std::unique_ptr<FrameSource> open_frames(const std::vector<std::string>& arguments);

}  // namespace dic
