#pragma once

#include <dic/image.hpp>
#include <dic/shared/shape_parameters.hpp>
#include <vector>

namespace dic {

/// How the material around a position of the reference moves, to first order.
struct LocalMotion {
  double x = 0, y = 0;    ///< in the reference, px
  ShapeParameters shape;  ///< order 1
};

/// How much a surface may have been stretched in one direction more than in the other.
enum class Stretch {
  small,  ///< up to about 1.5: rotation and scale alone explain the look of a feature
  large,  ///< up to about 3: the reference is searched in four views of it, each stretched in another
          ///< direction
};

/// Finds motions of any size and rotation by matching features (SIFT, Lowe 2004) of both images. A motion is
/// returned for features whose neighbours' matches lie on one affine map with it: bodies that move otherwise
/// have motions of their own, and where nothing agrees there is none. Good to about 1 px; the refinement
/// starts from it.
///
/// wanted: u8, the reference's size: only features where it is not zero are looked for.
std::vector<LocalMotion> find_local_motions(ImageView reference, ImageView wanted, ImageView current,
                                            Stretch stretch);

}  // namespace dic
