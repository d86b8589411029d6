#pragma once

#include <cstdint>
#include <dic/image.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "image/buffer.hpp"

namespace dic::image {

/// A file with frames that are read in any order. Several threads may read at the same time.
class FrameFile {
 public:
  virtual ~FrameFile() = default;
  virtual std::int64_t count() const = 0;
  /// Throws Refusal.
  virtual Image read(std::int64_t i, ImageBuffers& buffers) const = 0;
  /// Time at which frame i was taken, s from the first frame of the file; none if the file does not say.
  virtual std::optional<double> time(std::int64_t) const { return {}; }
  virtual std::optional<double> frames_per_second() const { return {}; }
};

/// Opens a recording of a high-speed camera (is_recording()). Throws Refusal.
std::unique_ptr<FrameFile> open_recording(const std::filesystem::path& path);
/// True for endings of such recordings: .cine of Phantom; .mraw, .cih and .cihx of Photron.
bool is_recording(const std::filesystem::path& path);

/// The pages of a TIFF as frames; null if it has only one. Throws Refusal.
std::unique_ptr<FrameFile> open_stack(const std::filesystem::path& path);

/// Number of frames in a file of any kind: 1 for an image, and for a file that cannot be read.
std::int64_t frames_in(const std::filesystem::path& path);

}  // namespace dic::image
