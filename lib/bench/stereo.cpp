#include <array>
#include <chrono>
#include <cmath>
#include <dic/error.hpp>
#include <dic/stereo.hpp>
#include <dic/synth_stereo.hpp>
#include <vector>

#include "bench/bench.hpp"
#include "bench/timing.hpp"

namespace dic::bench {
namespace {

StereoSynthOptions moving_plane(const StereoCase& shape) {
  constexpr double kDistance = 500, kAngle = 25;  // mm, degrees
  StereoSynthOptions synth;
  synth.image.size = {shape.size, shape.size};
  synth.image.noise = shape.noise;
  synth.image.seed = shape.seed;
  synth.image.threads = shape.options.threads;
  synth.image.amounts = {0, 1.0 / 3, 2.0 / 3, 1};
  synth.rig = convergent_rig(synth.image.size, 2.5 * shape.size, kDistance, kAngle);
  synth.pose = facing_middle(synth.rig, kDistance);
  synth.motion.translation_mm = {3, -2, 4};
  return synth;
}

/// Sets the errors of the last pair.
void judge(const StereoScene& scene, int frame, const Field& field, StereoTiming& timing) {
  const Grid& grid = field.grid();
  double z = 0, w = 0;
  timing.measured = 0;
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    if (!has_values(field.status[k])) continue;
    const StereoTruth truth =
        scene.truth(frame, grid.x(static_cast<int>(k % grid.nx)), grid.y(static_cast<int>(k / grid.nx)));
    if (truth.measurable == Measurable::no) continue;
    z += std::pow(field.stereo.z[k] - truth.position_mm[2], 2);
    w += std::pow(field.stereo.w[k] - truth.displacement_mm[2], 2);
    ++timing.measured;
  }
  const auto count = static_cast<double>(timing.measured);
  timing.rms_error_z = std::sqrt(z / count);
  timing.rms_error_w = std::sqrt(w / count);
}

}  // namespace

StereoTiming stereo(const StereoCase& shape, const std::stop_token& stop) {
  const StereoSynthOptions synth = moving_plane(shape);
  const StereoScene scene(synth);
  const auto frames = static_cast<int>(synth.image.amounts.size());
  std::array<std::vector<Image>, 2> images;
  for (std::size_t camera = 0; camera < images.size(); ++camera)
    for (int frame = 0; frame < frames; ++frame) images[camera].push_back(scene.frame(camera, frame));

  StereoOptions options;
  options.track = shape.options;
  StereoTiming timing;
  std::vector<double> references, pairs, one_camera;
  for (int repeat = 0; repeat < shape.repeats; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    StereoTracker tracker(options, synth.rig, images[0][0], images[1][0], {}, stop);
    references.push_back(seconds_since(start));
    start = std::chrono::steady_clock::now();
    StereoFrame last;
    for (int frame = 1; frame < frames; ++frame)
      last = tracker.track(images[0][frame], images[1][frame], stop);
    pairs.push_back(seconds_since(start) / (frames - 1));
    Tracker alone(shape.options, images[0][0]);
    start = std::chrono::steady_clock::now();
    for (int frame = 1; frame < frames; ++frame) alone.track(images[0][frame], stop);
    one_camera.push_back(seconds_since(start) / (frames - 1));
    timing.device = tracker.device();
    timing.points = tracker.grid().points();
    if (repeat == 0) judge(scene, frames - 1, last.field, timing);
  }
  timing.reference_seconds = median_of(references);
  timing.pair_seconds = median_of(pairs);
  timing.one_camera_seconds = median_of(one_camera);
  return timing;
}

}  // namespace dic::bench
