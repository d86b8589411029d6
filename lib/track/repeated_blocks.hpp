#pragma once

#include <cstdint>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <memory>
#include <vector>

namespace dic::track {

/// One flag for each block of 8x8 px of an image, row by row.
using BlockFlags = std::vector<std::uint8_t>;

/// Finds blocks of a video that repeat the frame before: where little changes, codecs skip blocks (ITU-T
/// H.264, P_Skip). Pixels of such a block stand still while the material moves. Images of 8 bits only.
class RepeatedBlocks {
 public:
  static constexpr int kSide = 8;  ///< px

  /// reference: on the host; the image before the first frame.
  explicit RepeatedBlocks(ImageView reference);

  /// Returns which blocks show the same texture as the image before, to the last grey level; null if none
  /// does. Noise makes that improbable. A whole image that is the same has the blocks of the one before.
  /// image: on the host, the next frame. One call at a time.
  std::shared_ptr<const BlockFlags> find(ImageView image);
  /// Sets `marks`, of the size of the reference, to a value at the pixels of the reference that a frame shows
  /// in repeated blocks although the material has moved since their last change. Takes frames in their order.
  /// repeated: what find() returned for the frame; field: its motion. Returns whether there are such blocks.
  bool mark(const BlockFlags& repeated, const Field& field, Image& marks, std::uint8_t value) const;
  /// Takes the motion of a frame as that of all blocks which it did not repeat.
  void keep_motion(const BlockFlags* repeated, const Field& field);

 private:
  /// Displacement of the material in a block, px; NaN where it is unknown.
  struct Motion {
    float u, v;
  };

  std::size_t blocks() const { return static_cast<std::size_t>(columns_) * rows_; }
  std::vector<Motion> motion_by_block(const Field& field) const;
  std::vector<std::size_t> wrong_blocks(const BlockFlags& repeated, const std::vector<Motion>& now) const;

  Size size_;
  int columns_, rows_;                      ///< numbers of blocks
  std::vector<std::uint64_t> samples_;      ///< two rows of every block of the last image
  std::shared_ptr<const BlockFlags> last_;  ///< what find() returned
  bool are_any_ = false;                    ///< a frame with repeated blocks was seen
  std::vector<Motion> last_change_;         ///< motion when each block changed last; empty: unknown
};

}  // namespace dic::track
