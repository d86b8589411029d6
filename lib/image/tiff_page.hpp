#pragma once

#include <cstdint>

namespace dic::image {

/// One picture of a TIFF.
struct TiffPage {
  std::uint64_t directory = 0;  ///< offset of its directory in the file
  /// Bytes by which its pixels lie behind those that the directory names: ImageJ writes one directory for all
  /// pages of a large stack, whose pixels follow each other.
  std::uint64_t shift = 0;
};

}  // namespace dic::image
