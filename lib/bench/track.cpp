#include <algorithm>
#include <cmath>
#include <dic/bench.hpp>
#include <dic/error.hpp>
#include <dic/synth.hpp>

#include "bench/timing.hpp"

namespace dic::bench {
namespace {

constexpr int kMargin = 40;  ///< px without points at every border

SynthOptions speckle(const TrackCase& shape) {
  SynthOptions synth;
  synth.width = synth.height = shape.size;
  synth.noise = shape.noise;
  synth.seed = shape.seed;
  synth.threads = shape.options.threads;
  synth.motion = {.kind = MotionKind::affine, .u = 5.3, .v = -3.6, .ux = 0.005, .vy = -0.002};
  synth.motion.cx = synth.motion.cy = (shape.size - 1) / 2.0;
  return synth;
}

struct Errors {
  std::int64_t measured = 0;
  double u = 0, v = 0;  ///< root mean squares
};

Errors errors_of(const Field& field, const Grid& grid, const Motion& motion) {
  Errors errors;
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    if (!has_values(field.status[k])) continue;
    double u = 0, v = 0;
    motion.at(grid.x(static_cast<int>(k % grid.nx)), grid.y(static_cast<int>(k / grid.nx)), 1, u, v);
    errors.u += (field.u[k] - u) * (field.u[k] - u);
    errors.v += (field.v[k] - v) * (field.v[k] - v);
    ++errors.measured;
  }
  const auto count = static_cast<double>(std::max<std::int64_t>(errors.measured, 1));
  errors.u = std::sqrt(errors.u / count);
  errors.v = std::sqrt(errors.v / count);
  return errors;
}

double median_stage(const std::vector<StageSeconds>& runs, double StageSeconds::*stage) {
  std::vector<double> values;
  for (const StageSeconds& run : runs) values.push_back(run.*stage);
  return median_of(values);
}

}  // namespace

TrackTiming track(const TrackCase& shape, std::stop_token stop) {
  if (shape.repeats < 1) throw UsageError("There must be at least one repeat.");
  if (shape.size <= 2 * kMargin + 3)
    throw UsageError("The pictures must be larger: 40 px at every border have no points.");
  const SynthOptions synth = speckle(shape);
  const Image reference = synth_frame(synth, 0), current = synth_frame(synth, 1);
  Roi roi;
  const int side = shape.size - 2 * kMargin - 3;  // 941 px for 1024
  roi.rect = {kMargin, kMargin, side, side};

  TrackTiming timing;
  std::vector<StageSeconds> runs;
  for (int repeat = 0; repeat < shape.repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    Tracker tracker(shape.options, reference, roi);
    const Field field = tracker.track(current, stop);
    runs.push_back(tracker.seconds());
    runs.back().total = seconds_since(start);
    if (repeat > 0) continue;
    const Errors errors = errors_of(field, tracker.grid(), synth.motion);
    timing = {.points = tracker.grid().points(),
              .measured = errors.measured,
              .seconds = {},
              .rms_error_u = errors.u,
              .rms_error_v = errors.v,
              .device = tracker.device(),
              .kernels = tracker.kernels()};
  }
  for (double StageSeconds::*stage : {&StageSeconds::prepare, &StageSeconds::search, &StageSeconds::refine,
                                      &StageSeconds::strain, &StageSeconds::total})
    timing.seconds.*stage = median_stage(runs, stage);
  return timing;
}

}  // namespace dic::bench
