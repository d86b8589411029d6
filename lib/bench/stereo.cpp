#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <dic/error.hpp>
#include <dic/stereo.hpp>
#include <dic/stereo_stream.hpp>
#include <dic/synth_stereo.hpp>
#include <vector>

#include "bench/bench.hpp"
#include "bench/timing.hpp"

namespace dic::bench {
namespace {

StereoSynthOptions moving_specimen(const StereoCase& shape) {
  constexpr double kDistance = 500, kAngle = 25, kRadius = 120;  // mm, degrees, mm
  constexpr double kFocal = 2.5;                                 // times the side of the images
  StereoSynthOptions synth;
  synth.image.size = {shape.size, shape.size};
  synth.image.noise = shape.noise;
  synth.image.seed = shape.seed;
  synth.image.threads = shape.options.threads;
  synth.image.amounts = {0, 0.5, 1};
  synth.surface.kind = shape.surface;
  synth.surface.radius_mm = kRadius;
  synth.rig = convergent_rig(synth.image.size, kFocal * shape.size, kDistance, kAngle);
  synth.pose = facing_middle(synth.rig, kDistance);
  const double motion = 2 * shape.motion, mm_per_px = kDistance / (kFocal * shape.size);
  synth.motion.translation_mm = {motion * mm_per_px, -motion * mm_per_px * 2 / 3,
                                 motion * kDistance / shape.size};
  return synth;
}

/// The part of the left reference that both cameras see in all pairs, as bench::track_stream() leaves out the
/// border of its images; or all of it.
Roi region_of(const StereoCase& shape) {
  if (shape.whole) return {};
  const int margin = shape.size / 12 + shape.options.refine.subset / 2;
  Roi roi;
  roi.rect = {margin, margin, shape.size - 2 * margin, shape.size - 2 * margin};
  return roi;
}

constexpr int kFrames = 3;
/// The images of both cameras: the references, and the moved specimen.
using Images = std::array<std::array<Image, kFrames>, 2>;
/// Number of the image that a pair shows: the specimen moves to and fro.
std::size_t shown_at(int pair) { return pair % 4 == 3 ? 0 : pair % 4 == 1 ? 2 : 1; }

/// Sets the rate of a stream of pairs, which go to and fro over the images.
void time_stereo_stream(const StereoOptions& options, const CameraRig& rig, const Images& images,
                        const Roi& roi, int pairs, StereoTiming& timing, const std::stop_token& stop) {
  constexpr int kWarmUp = 4;  // number of pairs until all memory is allocated
  int measured = 0;
  StereoStream stream(options, rig, images[0][0], images[1][0], roi, [&](const StereoFrame& frame) {
    if (frame.index < kWarmUp) return;
    timing.stages += frame.seconds;
    timing.geometry_seconds += frame.geometry_seconds;
    ++measured;
  });
  const auto push = [&](int pair) {
    if (stop.stop_requested()) throw Cancelled("The benchmark was cancelled.");
    stream.push(images[0][shown_at(pair)], images[1][shown_at(pair)]);
  };
  for (int pair = 0; pair < kWarmUp; ++pair) push(pair);
  stream.finish();
  const auto start = std::chrono::steady_clock::now();
  for (int pair = 0; pair < pairs; ++pair) push(kWarmUp + pair);
  stream.finish();
  timing.streamed = pairs;
  timing.pairs_per_second = pairs / seconds_since(start);
  for (double StageSeconds::*stage :
       {&StageSeconds::prepare, &StageSeconds::search, &StageSeconds::refine, &StageSeconds::strain})
    timing.stages.*stage /= measured;
  timing.geometry_seconds /= measured;
}

/// Sets the errors of the last pair.
void judge_pair(const StereoScene& scene, int frame, const Field& field, StereoTiming& timing) {
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
  const StereoSynthOptions synth = moving_specimen(shape);
  const StereoScene scene(synth);
  Images images;
  for (std::size_t camera = 0; camera < images.size(); ++camera)
    for (int frame = 0; frame < kFrames; ++frame) images[camera][frame] = scene.frame(camera, frame);

  const Roi roi = region_of(shape);
  StereoOptions options;
  options.track = shape.options;
  StereoTiming timing;
  std::vector<double> references, pairs, one_camera;
  for (int repeat = 0; repeat < shape.repeats; ++repeat) {
    auto start = std::chrono::steady_clock::now();
    StereoTracker tracker(options, synth.rig, images[0][0], images[1][0], roi, stop);
    references.push_back(seconds_since(start));
    constexpr int kPairs = 4;  // after the first one, for which the trackers still prepare themselves
    const StereoFrame moved = tracker.track(images[0][1], images[1][1], stop);
    start = std::chrono::steady_clock::now();
    for (int pair = 1; pair <= kPairs; ++pair)
      tracker.track(images[0][shown_at(pair)], images[1][shown_at(pair)], stop);
    pairs.push_back(seconds_since(start) / kPairs);
    Tracker alone(shape.options, images[0][0], roi);
    alone.track(images[0][1], stop);
    start = std::chrono::steady_clock::now();
    for (int pair = 1; pair <= kPairs; ++pair) alone.track(images[0][shown_at(pair)], stop);
    one_camera.push_back(seconds_since(start) / kPairs);
    timing.device = tracker.device();
    timing.points = tracker.grid().points();
    if (repeat == 0) judge_pair(scene, 1, moved.field, timing);
  }
  timing.reference_seconds = median_of(references);
  timing.pair_seconds = median_of(pairs);
  timing.one_camera_seconds = median_of(one_camera);
  const int streamed =
      shape.stream > 0 ? shape.stream : std::clamp(static_cast<int>(2 / timing.pair_seconds), 4, 200);
  time_stereo_stream(options, synth.rig, images, roi, streamed, timing, stop);
  return timing;
}

}  // namespace dic::bench
