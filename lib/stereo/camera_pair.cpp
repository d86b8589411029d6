#include "stereo/camera_pair.hpp"

#include <dic/error.hpp>

#include "camera/lens.hpp"

namespace dic::stereo {

CameraPair camera_pair_of(const CameraRig& rig) {
  for (const std::string& problem : rig.validate()) throw UsageError(problem);
  CameraPair pair{};
  pair.left = camera::terms_of(*rig.cameras[0].camera.lens);
  pair.right = camera::terms_of(*rig.cameras[1].camera.lens);
  const auto& t = rig.cameras[1].translation_mm;
  pair.translation = vector3(t[0], t[1], t[2]);
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j) pair.rotation(i, j) = rig.cameras[1].rotation[3 * i + j];
  const Matrix3 across = {{{0, -t[2], t[1]}, {t[2], 0, -t[0]}, {-t[1], t[0], 0}}};
  pair.essential = across * pair.rotation;
  return pair;
}

}  // namespace dic::stereo
