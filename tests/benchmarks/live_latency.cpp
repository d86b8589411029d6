#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <dic/live.hpp>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "live/camera.hpp"
#include "live/moving_speckle.hpp"

/// Latency of live measurements of whole fields, with frames from memory.
namespace {

using namespace dic;
using Clock = std::chrono::system_clock;

/// Shows moving speckle at a constant rate; frames that are not fetched wait.
class MemoryCamera final : public live::LiveCamera {
 public:
  MemoryCamera(const live::MovingSpeckle& speckle, double frames_per_second)
      : period_(std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 / frames_per_second))) {
    for (int state = 0; state < live::MovingSpeckle::kStates; ++state)
      states_.push_back(std::make_shared<const Image>(copy_of(speckle.frame(state).view())));
  }
  std::string name() const override { return "memory"; }
  std::vector<CameraSetting> settings() const override { return {}; }
  void start() override { begin_ = Clock::now(); }
  std::optional<live::CameraFrame> next(std::chrono::milliseconds longest) override {
    const Clock::time_point due = begin_ + (id_ + 1) * period_, end = Clock::now() + longest;
    std::this_thread::sleep_until(std::min(due, end));
    if (due > Clock::now()) return {};
    ++id_;
    live::CameraFrame frame;
    frame.id = id_;
    frame.camera_time = id_ * period_.count();
    frame.received = due;
    frame.image = states_[static_cast<std::size_t>(live::MovingSpeckle::state_of(id_))];
    return frame;
  }
  std::int64_t produced() const override { return id_; }
  LiveDrops losses() const override { return {}; }
  void stop() override {}

 private:
  std::chrono::nanoseconds period_;
  std::vector<std::shared_ptr<const Image>> states_;
  Clock::time_point begin_;
  std::int64_t id_ = 0;
};

enum class Turning : std::uint8_t { at_once, slowly };

/// Speckle that turns back at once, or slows down before, as a specimen does. Material leaves the image at
/// its edges.
live::MovingSpeckle moving_speckle(Size size, Turning turning) {
  if (turning == Turning::at_once) return live::MovingSpeckle(size);
  SynthOptions options = live::MovingSpeckle::scene(size);
  options.amounts.clear();
  for (int state = 0; state < live::MovingSpeckle::kStates; ++state)
    options.amounts.push_back(0.5 - 0.5 * std::cos(std::numbers::pi * live::MovingSpeckle::amount_of(state)));
  std::vector<Image> states;
  for (int state = 0; state < live::MovingSpeckle::kStates; ++state)
    states.push_back(synth_frame(options, state));
  return live::MovingSpeckle(std::move(states));
}

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return NAN;
  std::ranges::sort(values);
  return values[std::min(static_cast<std::size_t>(share * static_cast<double>(values.size())),
                         values.size() - 1)];
}

struct Load {
  double rate;  ///< frames per second
  int step, frames;
};

/// margin: border of the image that is not measured, px.
void measure(const live::MovingSpeckle& speckle, const char* turning, int margin, const Load& load) {
  constexpr int kWarm = 100;  // frames that are not counted
  std::printf("turning %s, margin %d px: measuring %d frames\n", turning, margin, load.frames);
  TrackJob job;
  job.options.step = load.step;
  const Size image = speckle.frame(0).size();
  job.roi.rect = {margin, margin, image.width - 2 * margin, image.height - 2 * margin};
  job.pictures = Pictures::none;
  job.output.clear();
  LiveOptions options;
  options.camera = "memory";
  options.drop = DropPolicy::never;
  options.until_frames = load.frames;
  LiveStream stream(job, options, [&](const std::string&, const CameraSettings&) {
    return std::make_unique<MemoryCamera>(speckle, load.rate);
  });
  std::vector<double> latencies;
  std::vector<std::vector<double>> by_phase(30);
  while (const std::optional<LiveFrame> frame = stream.next()) {
    if (!frame->event.empty() || !frame->field || frame->number <= kWarm) continue;
    latencies.push_back(1e3 * frame->latency);
    by_phase[static_cast<std::size_t>(frame->id % 30)].push_back(latencies.back());
  }
  const LiveSummary summary = stream.finish();
  std::printf(
      "  %s, %lld points, step %d, %.0f frames/s: p50 %.2f, p90 %.2f, p95 %.2f, p99 %.2f, max %.2f ms; "
      "%lld frames, %lld results, %lld dropped %s\n",
      summary.track.device.c_str(), static_cast<long long>(summary.track.points), load.step, load.rate,
      quantile(latencies, 0.5), quantile(latencies, 0.9), quantile(latencies, 0.95),
      quantile(latencies, 0.99), quantile(latencies, 1), static_cast<long long>(summary.produced),
      static_cast<long long>(summary.results), static_cast<long long>(summary.drops.without_result()),
      summary.problem.c_str());
  const StageSeconds& s = summary.track.seconds;
  const double per_frame = 1e3 / static_cast<double>(std::max<std::int64_t>(summary.results, 1));
  std::printf("  ms per frame: search %.2f, refine %.2f, strain %.2f, measuring %.2f; median by phase:",
              s.search * per_frame, s.refine * per_frame, s.strain * per_frame, s.measuring() * per_frame);
  for (const auto& phase : by_phase) std::printf(" %.1f", quantile(phase, 0.5));
  std::printf("\n");
}

}  // namespace

/// live_latency [SIDE OF THE IMAGE, px [FRAMES PER SECOND [STEP, px [FRAMES]]]]
int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a run that is cut off has said what it knew
  const int side = argc > 1 ? std::atoi(argv[1]) : 2048;
  const Load load{argc > 2 ? std::atof(argv[2]) : 200, argc > 3 ? std::atoi(argv[3]) : 10,
                  argc > 4 ? std::atoi(argv[4]) : 2000};
  for (const Turning turning : {Turning::at_once, Turning::slowly}) {
    const live::MovingSpeckle speckle = moving_speckle({side, side}, turning);
    for (const int margin : {0, side / 64})
      measure(speckle, turning == Turning::slowly ? "slowly" : "at once", margin, load);
  }
}
