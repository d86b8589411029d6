#include <algorithm>
#include <chrono>
#include <cmath>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/synth.hpp>
#include <dic/track_stream.hpp>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/bench.hpp"
#include "bench/temporary_folder.hpp"
#include "bench/timing.hpp"
#include "core/device_name.hpp"

namespace dic::bench {
namespace {

constexpr int kMargin = 40;  ///< px without points at every border

SynthOptions speckle(const TrackCase& shape) {
  SynthOptions synth;
  synth.size = {shape.size, shape.size};
  synth.noise = shape.noise;
  synth.seed = shape.seed;
  synth.threads = shape.options.threads;
  synth.motion = {.kind = MotionKind::affine, .u = 5.3, .v = -3.6, .ux = 0.005, .vy = -0.002};
  synth.motion.cx = synth.motion.cy = (shape.size - 1) / 2.0;
  synth.amounts = {0, 1, 2.0 / 3, 1.0 / 3};
  return synth;
}

struct Errors {
  std::int64_t measured = 0;
  double u = 0, v = 0;  ///< root mean square errors
};

Errors errors_of(const Field& field, const Motion& motion) {
  const Grid& grid = field.grid();
  Errors errors;
  for (std::int64_t k = 0; k < grid.nodes(); ++k) {
    if (!has_values(field.status[k])) continue;
    const auto [u, v] =
        motion.at(grid.x(static_cast<int>(k % grid.nx)), grid.y(static_cast<int>(k / grid.nx)), 1);
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

Roi inner_roi(const TrackCase& shape) {
  Roi roi;
  const int side = shape.size - 2 * kMargin - 3;  // 941 px for 1024
  roi.rect = {kMargin, kMargin, side, side};
  return roi;
}

void check(const TrackCase& shape) {
  if (shape.size <= 2 * kMargin + 3)
    throw UsageError("The images must be larger: 40 px at every border have no points.");
}

/// Total seconds of a stage.
double seconds_of(const std::vector<StageSpan>& spans, std::string_view stage) {
  double seconds = 0;
  for (const StageSpan& span : spans)
    if (span.stage == stage) seconds += std::chrono::duration<double>(span.end - span.begin).count();
  return seconds;
}

/// Sums over the results of a stream.
struct StreamSums {
  std::int64_t frames = 0, lost = 0;
  StageSeconds stages;
  double copy = 0, latency = 0;

  void add(const FrameResult& result) {
    ++frames;
    for (const Status status : result.field.status) lost += !has_values(status);
    stages += result.seconds;
    copy += seconds_of(result.spans, "copy");
    latency += result.latency;
  }
  StreamTiming means() const {
    const auto n = static_cast<double>(std::max<std::int64_t>(frames, 1));
    StreamTiming timing;
    timing.lost = static_cast<double>(lost) / n;
    timing.copy = copy / n;
    timing.latency = latency / n;
    for (double StageSeconds::*stage :
         {&StageSeconds::prepare, &StageSeconds::search, &StageSeconds::refine, &StageSeconds::strain})
      timing.stages.*stage = stages.*stage / n;
    return timing;
  }
};

/// order of the frames of speckle(): 1/3, 2/3, 1, 2/3 of the motion
constexpr int kToAndFro[] = {3, 2, 1, 2};

/// The frames that a stream gets.
struct Shown {
  Image reference;
  Roi roi;
  std::vector<Image> frames;  ///< repeated cyclically
};

StreamTiming time_stream(const TrackOptions& options, const Shown& shown, int frames,
                         const std::stop_token& stop) {
  constexpr int kWarmUp = 8;  // number of frames until all memory is allocated
  StreamSums sums;
  TrackStream stream(options, shown.reference, shown.roi, [&](const FrameResult& result) {
    if (result.index >= kWarmUp) sums.add(result);
  });
  const auto push = [&](int frame) {
    if (stop.stop_requested()) throw Cancelled("The benchmark was cancelled.");
    stream.push(shown.frames[frame % shown.frames.size()]);
  };
  for (int i = 0; i < kWarmUp; ++i) push(i);
  stream.finish();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < frames; ++i) push(kWarmUp + i);
  stream.finish();
  const double seconds = seconds_since(start);
  StreamTiming timing = sums.means();
  timing.points = stream.grid().points();
  timing.frames_per_second = frames / seconds;
  timing.device = stream.device();
  return timing;
}

/// Numbers of the GPUs; none for "cpu". device: as returned by TrackStream::device, "cuda:0,2, NVIDIA ...".
std::vector<int> gpus_of(const std::string& device) {
  return core::parse_device(device.substr(0, device.find(", "))).ordinals;
}

}  // namespace

TrackSummary track_files(const TrackCase& shape, int frames, std::stop_token stop) {
  check(shape);
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (int i = 0; i < 4; ++i) {
    files.push_back(folder.path / ("frame_" + std::to_string(i) + ".png"));
    write_image(files.back(), synth_frame(speckle(shape), i));
  }
  TrackJob job;
  job.reference = files[0];
  for (int i = 0; i < frames; ++i) job.frames.push_back(files[kToAndFro[i % std::size(kToAndFro)]]);
  job.output = folder.path / "out";
  job.roi = inner_roi(shape);
  job.options = shape.options;
  job.pictures = Pictures::none;
  return dic::track_files(job, {}, std::move(stop));
}

StreamTiming track_stream(const TrackCase& shape, int frames, std::stop_token stop) {
  check(shape);
  const SynthOptions synth = speckle(shape);
  Shown shown{synth_frame(synth, 0), inner_roi(shape), {}};
  for (const int i : kToAndFro) shown.frames.push_back(synth_frame(synth, i));
  StreamTiming timing = time_stream(shape.options, shown, frames, stop);
  const std::vector<int> gpus = gpus_of(timing.device);
  if (gpus.size() < 2) return timing;
  TrackOptions one = shape.options;
  one.device = "cuda:" + std::to_string(gpus.front());
  timing.gpus = static_cast<int>(gpus.size());
  timing.frames_per_second_of_one = time_stream(one, shown, frames, stop).frames_per_second;
  return timing;
}

TrackTiming track(const TrackCase& shape, std::stop_token stop) {
  if (shape.repeats < 1) throw UsageError("There must be at least one repeat.");
  check(shape);
  const SynthOptions synth = speckle(shape);
  const Image reference = synth_frame(synth, 0), current = synth_frame(synth, 1);

  TrackTiming timing;
  std::vector<StageSeconds> runs;
  for (int repeat = 0; repeat < shape.repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    Tracker tracker(shape.options, reference, inner_roi(shape));
    const FrameResult result = tracker.track(current, stop);
    runs.push_back(result.seconds);
    runs.back().prepare += tracker.prepare_seconds();
    runs.back().total = seconds_since(start);
    if (repeat > 0) continue;
    const Errors errors = errors_of(result.field, synth.motion);
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
