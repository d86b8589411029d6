#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dic/live.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
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

double quantile(std::span<const double> sorted, double share) {
  return sorted[std::min(static_cast<std::size_t>(share * static_cast<double>(sorted.size())),
                         sorted.size() - 1)];
}

void measure(const live::MovingSpeckle& speckle, double rate, int step, DropPolicy drop) {
  constexpr int kFrames = 2000, kWarm = 100;
  TrackJob job;
  job.options.step = step;
  job.pictures = Pictures::none;
  job.output.clear();
  LiveOptions options;
  options.camera = "memory";
  options.drop = drop;
  options.until_frames = kFrames;
  LiveStream stream(job, options, [&](const std::string&, const CameraSettings&) {
    return std::make_unique<MemoryCamera>(speckle, rate);
  });
  std::vector<double> latencies;
  std::int64_t ok = 0, points = 0;
  while (const std::optional<LiveFrame> frame = stream.next()) {
    if (!frame->event.empty() || !frame->field || frame->number <= kWarm) continue;
    latencies.push_back(1e3 * frame->latency);
    ok += frame->field->counts()[static_cast<int>(Status::ok)];
    points += frame->field->grid().points();
  }
  const LiveSummary summary = stream.finish();
  if (latencies.empty()) {
    std::printf("nothing was measured: %s\n", summary.problem.c_str());
    return;
  }
  std::ranges::sort(latencies);
  std::printf(
      "%s, %lld points, step %d, %.0f frames/s, %s: p50 %.2f ms, p99 %.2f ms, max %.2f ms; %lld frames "
      "produced, "
      "%lld results, %lld dropped; %.2f %% ok %s\n",
      summary.track.device.c_str(), static_cast<long long>(summary.track.points), step, rate,
      std::string(to_string(drop)).c_str(), quantile(latencies, 0.5), quantile(latencies, 0.99),
      latencies.back(), static_cast<long long>(summary.produced), static_cast<long long>(summary.results),
      static_cast<long long>(summary.drops.without_result()),
      100.0 * static_cast<double>(ok) / static_cast<double>(points), summary.problem.c_str());
}

}  // namespace

/// live_latency [SIDE OF THE IMAGE [FRAMES PER SECOND [STEP]]]
int main(int argc, char** argv) {
  const int side = argc > 1 ? std::atoi(argv[1]) : 2048;
  const double rate = argc > 2 ? std::atof(argv[2]) : 200;
  const int step = argc > 3 ? std::atoi(argv[3]) : 10;
  const live::MovingSpeckle speckle({side, side});
  for (const DropPolicy drop : {DropPolicy::newest, DropPolicy::never}) measure(speckle, rate, step, drop);
}
