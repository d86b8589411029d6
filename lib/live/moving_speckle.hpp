#pragma once

#include <cstdint>
#include <cstring>
#include <dic/synth.hpp>
#include <utility>
#include <vector>

namespace dic::live {

/// Frames of speckle that moves and stretches evenly, back and forth with a period of 30 frames, as the fake
/// camera shows them.
class MovingSpeckle {
 public:
  static constexpr int kStates = 16;

  explicit MovingSpeckle(Size size) {
    SynthOptions options = scene(size);
    for (int state = 0; state < kStates; ++state) states_.push_back(synth_frame(options, state));
  }
  /// states: kStates images, u8.
  explicit MovingSpeckle(std::vector<Image> states) : states_(std::move(states)) {}
  /// Share of the whole motion that a state has.
  static double amount_of(int state) { return static_cast<double>(state) / (kStates - 1); }
  static int state_of(std::int64_t id) {
    const int phase = static_cast<int>(id % (2 * kStates - 2));
    return phase < kStates ? phase : 2 * kStates - 2 - phase;
  }
  /// Displacement of the material at x, y of state 0 in another state.
  static std::array<double, 2> displacement(Size size, double x, double y, int state) {
    return scene(size).motion.at(x, y, amount_of(state));
  }
  /// Pixels of a frame: u8.
  const Image& frame(std::int64_t id) const { return states_[static_cast<std::size_t>(state_of(id))]; }

  /// The images and their motion, one for each state.
  static SynthOptions scene(Size size) {
    SynthOptions options;
    options.size = size;
    options.noise = 1;
    options.blob_sigma = 2;
    options.motion.kind = MotionKind::affine;
    options.motion.u = 3;
    options.motion.v = -1.5;
    options.motion.ux = 0.01;
    options.motion.vy = -0.003;
    options.motion.cx = size.width / 2.0;
    options.motion.cy = size.height / 2.0;
    options.amounts.clear();
    for (int state = 0; state < kStates; ++state) options.amounts.push_back(amount_of(state));
    return options;
  }

 private:
  std::vector<Image> states_;
};

}  // namespace dic::live
