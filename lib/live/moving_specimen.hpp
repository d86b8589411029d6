#pragma once

#include <dic/synth_stereo.hpp>
#include <vector>

#include "live/moving_speckle.hpp"

namespace dic::live {

/// A flat specimen that moves, towards the cameras too, and stretches, as the fake cameras of a pair see it.
/// The rig is that of `dic synth --stereo` with a focal length of 2.5 widths of the image.
inline StereoSynthOptions moving_specimen(Size size) {
  constexpr double kDistance = 500, kAngle = 25;  // mm, degrees
  StereoSynthOptions options;
  options.image.size = size;
  options.image.blob_sigma = 2;
  options.rig = convergent_rig(size, 2.5 * size.width, kDistance, kAngle);
  options.pose = facing_middle(options.rig, kDistance);
  options.motion.translation_mm = {1, -0.5, -2};
  options.motion.ux = 0.01;
  options.motion.vy = -0.003;
  options.image.amounts.clear();
  for (int state = 0; state < MovingSpeckle::kStates; ++state)
    options.image.amounts.push_back(MovingSpeckle::amount_of(state));
  return options;
}

/// The frames of one camera of the pair: 0 = left, 1 = right.
inline MovingSpeckle frames_of_specimen(Size size, std::size_t camera) {
  const StereoScene scene(moving_specimen(size));
  std::vector<Image> states;
  for (int state = 0; state < MovingSpeckle::kStates; ++state) states.push_back(scene.frame(camera, state));
  return MovingSpeckle(std::move(states));
}

}  // namespace dic::live
