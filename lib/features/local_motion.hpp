#pragma once

#include <dic/image.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <memory>
#include <vector>

namespace dic::features {

/// How the material around a position of the reference moves, to first order.
struct LocalMotion {
  double x = 0, y = 0;    ///< position in the reference, px
  ShapeParameters shape;  ///< motion, order 1
};

/// How much a surface may have been stretched in one direction more than in the other.
enum class Stretch {
  small,  ///< up to about 1.5: rotation and scale alone explain how a feature looks
  large,  ///< up to about 3: features are searched in four views of the reference, each stretched in another
          ///< direction
};

/// Finds motions of any size and rotation by matching features (SIFT, Lowe 2004) of both images.
class MotionFinder {
 public:
  /// Copies what it needs of the pixels.
  MotionFinder(ImageView reference, ImageView current);
  ~MotionFinder();

  /// Returns a motion for each feature that shares an affine map with its neighbours' matches: independently
  /// moving bodies have motions of their own, and features that agree with nothing have none. Motions are
  /// good to about 1 px; the refinement starts from them. The features of the current image are found by the
  /// first call that needs them.
  ///
  /// mask: u8, as large as the reference; only features where it is not zero are searched.
  std::vector<LocalMotion> find(ImageView mask, Stretch stretch);

 private:
  struct Images;
  std::unique_ptr<Images> images_;
};

}  // namespace dic::features
