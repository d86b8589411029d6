#pragma once

#include <map>
#include <vector>

#include "match/pose_image.hpp"
#include "match/pose_kernels.hpp"

namespace dic::match {

/// An image and its reduced copies.
class ImagePyramid {
 public:
  /// mask: empty, or of the image's size, non-zero = the pixel counts.
  ImagePyramid(ImageView image, ImageView mask, core::ThreadPool& pool);
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
  ImageView image_;
  std::vector<FloatImage> levels_, masks_;
  std::map<int, CoarseImage> coarse_;  ///< the key is the level
};

/// Pixels for bilinear sampling.
SampleImage sample_image(const FloatImage& image, const FloatImage* mask);

}  // namespace dic::match
