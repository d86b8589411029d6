#pragma once

#include <cstddef>
#include <cstdint>
#include <dic/image.hpp>
#include <dic/track.hpp>
#include <string>

namespace dic::track::cuda {

/// Tells how much of the images a GPU holds at once.
struct ImageMemory {
  std::size_t needed = 0;     ///< bytes that whole images take
  std::size_t available = 0;  ///< bytes that images may take
  int rows = 0;               ///< rows of the reference in a band; 0 if images are measured as a whole

  /// free: free bytes of the GPU. points: number of points of the grid.
  ImageMemory(const TrackOptions& options, const ImageView& image, std::int64_t points, std::size_t free);

  bool in_bands() const { return rows > 0; }
  /// A sentence for the user; empty if images are measured as a whole.
  std::string note(const TrackOptions& options) const;
};

/// Rows of the current image that a GPU holds for this number of rows of the reference: the displacements of
/// one band may differ by as many px as it has rows.
constexpr int current_rows(int reference_rows) { return 2 * reference_rows; }

}  // namespace dic::track::cuda
