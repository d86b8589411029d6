#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <string>

namespace dic::track::cuda {

/// How much of the images a GPU holds at once.
struct ImageMemory {
  std::size_t wanted = 0;  ///< bytes, for the images as a whole
  std::size_t there = 0;   ///< bytes, for images
  int rows = 0;            ///< of the reference, where images are measured in bands of rows; else 0

  /// free: bytes of the GPU that are. points: of the grid.
  ImageMemory(const TrackOptions& options, const ImageView& image, std::int64_t points, std::size_t free);

  /// A sentence for the user; empty where images are whole.
  std::string note(const TrackOptions& options) const;
};

/// Rows of a current image that are there beside so many of the reference: the displacements of one band
/// may differ as much as it has rows.
constexpr int current_rows(int reference_rows) { return 2 * reference_rows; }

}  // namespace dic::track::cuda
