#include "stereo/camera_pair.hpp"

#include <dic/error.hpp>

namespace dic::stereo {
namespace {

LensTerms terms_of(const Lens& l) {
  return {l.fx, l.fy, l.cx, l.cy, l.k1, l.k2, l.p1, l.p2, l.k3, l.k4, l.k5, l.k6, l.skew};
}

}  // namespace

CameraPair camera_pair_of(const CameraRig& rig) {
  for (const std::string& problem : rig.validate()) throw UsageError(problem);
  CameraPair pair{};
  pair.left = terms_of(*rig.cameras[0].camera.lens);
  pair.right = terms_of(*rig.cameras[1].camera.lens);
  const auto& t = rig.cameras[1].translation_mm;
  pair.translation = vector3(t[0], t[1], t[2]);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) pair.rotation(i, j) = rig.cameras[1].rotation[3 * i + j];
  const Matrix3 across = {{{0, -t[2], t[1]}, {t[2], 0, -t[0]}, {-t[1], t[0], 0}}};
  pair.essential = across * pair.rotation;
  return pair;
}

}  // namespace dic::stereo
