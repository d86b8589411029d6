#include <dic/kernels/points.hpp>
#include <functional>
#include <limits>

#include "benchmarks/device_benchmark.hpp"
#include "kernels/points_state.hpp"

// What happens to the points of a frame between search, refinement and field. A sane frame has few lost
// points and islands; the poor one is full of them.
namespace {

using namespace dic;
using bench_gpu::Measurements;
using kernels::RefineResult;
using kernels::RefineTask;
using kernels::Stream;
using test::DeviceArray;
using test::DeviceList;
using test::PointsState;

std::vector<std::int32_t> all_points(int count) {
  std::vector<std::int32_t> all(count);
  for (int i = 0; i < count; ++i) all[i] = i;
  return all;
}

/// Peaks that are taken every time: no score is as good as NaN.
std::vector<Peak> peaks_to_take(int count) {
  Peak peak;
  peak.found = true;
  peak.score = std::numeric_limits<float>::quiet_NaN();
  return std::vector<Peak>(count, peak);
}

/// What the launches read and write, for one state.
struct Frame {
  Stream stream;
  PointsState state;
  test::DevicePoints device{state, stream};
  int count = state.count();
  DeviceArray<std::int32_t> all{all_points(count), stream};
  DeviceArray<kernels::PointStart> starts{state.starts, stream}, other_starts{state.starts, stream};
  DeviceArray<kernels::TrackedPoint> tracked{state.tracked, stream}, scratch{state.tracked, stream};
  DeviceArray<RefineTask> tasks{state.tracked.size(), stream};
  DeviceArray<RefineResult> results{std::vector<RefineResult>(count), stream};
  DeviceArray<Peak> peaks{peaks_to_take(count), stream};
  DeviceArray<PatchPosition> references{state.tracked.size(), stream}, windows{state.tracked.size(), stream};
  DeviceArray<std::uint8_t> fresh{std::vector<std::uint8_t>(count, 1), stream};
  DeviceArray<track::NeighbourSupport> supports{state.tracked.size(), stream};
  DeviceArray<std::uint8_t> workspace{
      std::max({kernels::classify_lost_workspace_bytes(count), kernels::noise_workspace_bytes(count),
                kernels::fill_field_workspace_bytes(device.points)}),
      stream};
  DeviceArray<double> noise{1, stream}, u{state.point_at.size(), stream}, v{state.point_at.size(), stream};
  DeviceArray<float> floats{3 * state.point_at.size(), stream};
  DeviceArray<Status> status{state.point_at.size(), stream};
  DeviceArray<std::int16_t> iterations{state.point_at.size(), stream};
  DeviceList first{state.tracked.size(), stream}, second{state.tracked.size(), stream};
  DeviceArray<std::int32_t> counts{3, stream};

  explicit Frame(const PointsState& s) : state(s) {}

  kernels::FieldArrays field() const {
    kernels::FieldArrays arrays;
    const std::size_t nodes = state.point_at.size();
    arrays.u = u.data(), arrays.v = v.data(), arrays.zncc = floats.data();
    arrays.sigma_u = floats.data() + nodes, arrays.sigma_v = floats.data() + 2 * nodes;
    arrays.status = status.data(), arrays.iterations = iterations.data();
    return arrays;
  }
};

/// Adds measurements of one frame to a list.
struct Collect {
  Measurements& out;
  std::string prefix;
  const Stream* stream;

  void operator()(const std::string& name, std::function<void()> launch,
                  std::function<void()> prepare = {}) const {
    out.push_back({prefix + "/" + name, stream, std::move(launch), 0, std::move(prepare), {}});
  }
};

void add_starts(const Collect& collect, const std::shared_ptr<const Frame>& frame) {
  const kernels::StreamHandle handle = frame->stream.handle();
  const kernels::GridPoints& points = frame->device.points;
  constexpr int radius = PointsState::radius, range = 2;
  collect("starts from last", [=] {
    kernels::launch_starts_from_last(points, frame->tracked.data(), frame->other_starts.data(),
                                     frame->first.list(), frame->counts.data(), handle);
  });
  collect("split", [=] {
    kernels::launch_split_subsets(points, nullptr, frame->count, radius, frame->first.list(),
                                  frame->second.list(), handle);
  });
  const kernels::SearchWindows windows{frame->references.data(), frame->windows.data(), frame->count,
                                       2 * radius + 1, range};
  collect("place windows", [=] {
    kernels::launch_place_windows(points, frame->all.data(), frame->starts.data(), windows, handle);
  });
  collect("take peaks", [=] {
    kernels::launch_take_peaks(frame->all.data(), windows, frame->peaks.data(), true,
                               frame->other_starts.data(), frame->first.list(), handle);
  });
  collect("count lost", [=] {
    kernels::launch_list_lost_starts(points, frame->tracked.data(), nullptr, frame->starts.data(), 0.5f,
                                     frame->first.list(), frame->counts.data(), handle);
  });
}

void add_recovery(const Collect& collect, const std::shared_ptr<const Frame>& frame) {
  const kernels::StreamHandle handle = frame->stream.handle();
  const kernels::GridPoints& points = frame->device.points;
  collect("unrefined", [=] {
    kernels::launch_initial_tasks(points, frame->starts.data(), -1, 1, frame->scratch.data(),
                                  {frame->tasks.data(), frame->first.count.data()}, handle);
  });
  const auto select_all = [=] {
    kernels::launch_tasks_from_starts(points, frame->scratch.data(), frame->starts.data(), {-1, 2}, 1,
                                      {frame->tasks.data(), frame->first.count.data()}, handle);
  };
  const auto accept_all = [=] {
    kernels::launch_accept_results(points, {frame->tasks.data(), points.count, frame->first.count.data()},
                                   frame->results.data(), frame->scratch.data(), frame->fresh.data(), handle);
  };
  collect("select all", select_all);
  collect("accept all", accept_all, select_all);
  const auto front = [=] {
    kernels::launch_recovery_tasks(points, frame->tracked.data(), frame->fresh.data(),
                                   {frame->tasks.data(), frame->first.count.data()}, handle);
  };
  collect("front, all fresh", front, [=] { kernels::fill(frame->fresh.data(), 1, frame->count, handle); });
  collect("front, none fresh", front, [=] {
    select_all();
    accept_all();
  });
}

void add_verdicts(const Collect& collect, const std::shared_ptr<const Frame>& frame) {
  const kernels::StreamHandle handle = frame->stream.handle();
  const kernels::GridPoints& points = frame->device.points;
  constexpr int radius = PointsState::radius;
  collect("drop unconfirmed", [=] {
    kernels::launch_drop_unconfirmed(points, frame->tracked.data(), frame->supports.data(),
                                     frame->first.list(), handle);
  });
  collect("explain lost", [=] {
    kernels::launch_classify_lost(points, frame->tracked.data(), radius, frame->state.width,
                                  frame->state.height, frame->workspace.data(), handle);
  });
  collect("noise", [=] {
    kernels::launch_estimate_noise(points, frame->tracked.data(), {}, radius, frame->noise.data(),
                                   frame->workspace.data(), handle);
  });
  collect("field", [=] {
    kernels::launch_fill_field(points, frame->tracked.data(), nullptr, track::NoiseModel{}, frame->field(),
                               frame->workspace.data(), handle);
  });
}

/// As most frames are: none lost; points are certain, or those of noisy images.
PointsState sane(PointsState state, float zncc) {
  for (int i = 0; i < state.count(); ++i) {
    state.tracked[i].result.zncc = zncc;
    state.starts[i].score = 0.9f;
    state.subsets[i].status = state.tracked[i].result.status = Status::ok;
  }
  return state;
}

/// One measured point in a corner explains all others.
PointsState one_measured(int side) {
  PointsState one({side, side, false, false}, 1);
  for (auto& point : one.tracked) point.result.status = Status::diverged;
  one.subsets[0].status = one.tracked[0].result.status = Status::ok;
  one.tracked[0].result.zncc = 0.95f;
  return one;
}

void add_frame(const std::string& name, const std::function<PointsState()>& state,
               bool verdicts_only = false) {
  bench_gpu::add([=] {
    const auto frame = std::make_shared<const Frame>(state());
    Measurements out;
    const Collect collect{out, name + ", " + std::to_string(frame->count) + " points", &frame->stream};
    if (!verdicts_only) {
      add_starts(collect, frame);
      add_recovery(collect, frame);
    }
    add_verdicts(collect, frame);
    return out;
  });
}

void add_all() {
  for (const int side : {256, 806}) {
    const test::PointsCase plain{side, side, false, false};
    add_frame("sane frame", [=] { return sane(PointsState(plain, 1), 0.95f); });
    add_frame("noisy frame", [=] { return sane(PointsState(plain, 1), 0.8f); });
    add_frame("poor frame", [=] { return PointsState({side, side, true, true}, 1); });
    add_frame(
        "one measured point in a corner", [=] { return one_measured(side); }, true);
  }
}

}  // namespace

int main(int argc, char** argv) { return bench_gpu::run_all(argc, argv, add_all); }
