#pragma once

#include <map>
#include <vector>

#include "match/pose_image.hpp"
#include "match/pose_kernels.hpp"

namespace dic::match {

/// An image and its reduced copies, whose memory serves image after image.
class ImagePyramid {
 public:
  /// Begins another image. mask: empty, or of the image's size, non-zero = the pixel counts.
  void set(ImageView image, ImageView mask, core::ThreadPool& pool);
  /// Makes the levels up to this one, level 0 only by require_full().
  void require(int level, core::ThreadPool& pool);
  void require_full(core::ThreadPool& pool);
  const ImageView& image() const { return image_; }
  const FloatImage& level(int level) const { return levels_[level]; }
  const FloatImage* mask(int level) const { return masks_.empty() ? nullptr : &masks_[level]; }
  /// A level with at least this margin, which stays until one with a wider margin is asked for. `require` it
  /// first.
  const CoarseImage& coarse(int level, int margin, core::ThreadPool& pool);

 private:
  struct Coarse {
    CoarseImage image;
    bool is_made = false;
  };

  ImageView image_;
  std::vector<FloatImage> levels_{1}, masks_;
  int made_ = 0;                  ///< levels from 1 to this one belong to the image
  bool has_full_ = false;         ///< level 0 does
  std::map<int, Coarse> coarse_;  ///< the key is the level
};

/// Pixels for bilinear sampling.
SampleImage sample_image(const FloatImage& image, const FloatImage* mask);

}  // namespace dic::match
