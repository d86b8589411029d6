#include <cstdio>
#include <dic/error.hpp>
#include <dic/kernels/points.hpp>
#include <functional>
#include <limits>

#include "kernels/device_timing.hpp"
#include "kernels/points_state.hpp"

// Times what happens to the points of a frame between search, refinement and field: medians over repeats,
// warm. A sane frame has few lost points and islands; the poor one is full of them.
//
//     kernels_time_points
namespace {

using namespace dic;
using kernels::RefineResult;
using kernels::RefineTask;
using kernels::Stream;
using test::DeviceArray;
using test::DeviceList;
using test::PointsState;

void report(const Stream& stream, const char* name, const std::function<void()>& launch) {
  std::printf("  %-28s %8.1f us\n", name, 1e6 * test::median_seconds(stream, launch));
  std::fflush(stdout);
}

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
  DeviceArray<std::uint8_t> workspace{kernels::classify_lost_workspace_bytes(count), stream};
  DeviceArray<double> noise{1, stream}, u{state.point_at.size(), stream}, v{state.point_at.size(), stream};
  DeviceArray<float> floats{3 * state.point_at.size(), stream};
  DeviceArray<Status> status{state.point_at.size(), stream};
  DeviceArray<std::int16_t> iterations{state.point_at.size(), stream};
  DeviceList first{state.tracked.size(), stream}, second{state.tracked.size(), stream};

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

void time_starts(const Frame& f) {
  const kernels::StreamHandle handle = f.stream.handle();
  const kernels::GridPoints& points = f.device.points;
  constexpr int radius = PointsState::radius, range = 2;
  report(f.stream, "starts from last", [&] {
    kernels::launch_starts_from_last(points, f.tracked.data(), f.other_starts.data(), f.first.list(), handle);
  });
  report(f.stream, "split", [&] {
    kernels::launch_split_subsets(points, nullptr, f.count, radius, f.first.list(), f.second.list(), handle);
  });
  report(f.stream, "place windows", [&] {
    kernels::launch_place_windows(points, f.all.data(), f.count, radius, range, f.starts.data(),
                                  f.references.data(), f.windows.data(), handle);
  });
  report(f.stream, "take peaks", [&] {
    kernels::launch_take_peaks(f.all.data(), f.count, f.references.data(), f.windows.data(), f.peaks.data(),
                               true, f.other_starts.data(), f.first.list(), handle);
  });
  report(f.stream, "count lost",
         [&] { kernels::launch_list_lost_starts(points, f.starts.data(), 0.5f, f.first.list(), handle); });
}

void time_recovery(const Frame& f) {
  const kernels::StreamHandle handle = f.stream.handle();
  const kernels::GridPoints& points = f.device.points;
  report(f.stream, "unrefined", [&] {
    kernels::launch_initial_tasks(points, f.starts.data(), -1, 1, f.scratch.data(), f.tasks.data(),
                                  f.first.count.data(), handle);
  });
  report(f.stream, "select all", [&] {
    kernels::launch_tasks_from_starts(points, f.scratch.data(), f.starts.data(), -1, 2, 1, f.tasks.data(),
                                      f.first.count.data(), handle);
  });
  report(f.stream, "front, all fresh", [&] {
    kernels::launch_recovery_tasks(points, f.tracked.data(), f.fresh.data(), f.tasks.data(),
                                   f.first.count.data(), handle);
  });
  kernels::launch_tasks_from_starts(points, f.scratch.data(), f.starts.data(), -1, 2, 1, f.tasks.data(),
                                    f.first.count.data(), handle);
  report(f.stream, "accept all", [&] {
    kernels::launch_accept_results(points, {f.tasks.data(), points.count, f.first.count.data()},
                                   f.results.data(), f.scratch.data(), f.fresh.data(), handle);
  });
  report(f.stream, "front, none fresh", [&] {
    kernels::launch_recovery_tasks(points, f.tracked.data(), f.fresh.data(), f.tasks.data(),
                                   f.first.count.data(), handle);
  });
}

void time_verdicts(const Frame& f) {
  const kernels::StreamHandle handle = f.stream.handle();
  const kernels::GridPoints& points = f.device.points;
  constexpr int radius = PointsState::radius;
  report(f.stream, "drop unconfirmed", [&] {
    kernels::launch_drop_unconfirmed(points, f.tracked.data(), f.supports.data(), f.first.list(), handle);
  });
  report(f.stream, "explain lost", [&] {
    kernels::launch_classify_lost(points, f.tracked.data(), radius, f.state.width, f.state.height,
                                  f.workspace.data(), handle);
  });
  report(f.stream, "noise", [&] {
    kernels::launch_estimate_noise(points, f.tracked.data(), {}, radius, f.noise.data(), f.workspace.data(),
                                   handle);
  });
  report(f.stream, "field", [&] {
    kernels::launch_fill_field(points, f.tracked.data(), nullptr, f.noise.data(), f.field(), handle);
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

void time_frame(const char* name, const PointsState& state) {
  const Frame frame(state);
  std::printf("%s, %d points\n", name, frame.count);
  time_starts(frame);
  time_recovery(frame);
  time_verdicts(frame);
}

}  // namespace

int main() {
  try {
    std::printf("%s\n", kernels::find_device(0).model.c_str());
    for (const int side : {256, 806}) {
      time_frame("sane frame", sane(PointsState({side, side, false, false}, 1), 0.95f));
      time_frame("noisy frame", sane(PointsState({side, side, false, false}, 1), 0.8f));
      time_frame("poor frame", PointsState({side, side, true, true}, 1));
      PointsState one({side, side, false, false}, 1);
      for (auto& point : one.tracked) point.result.status = Status::diverged;
      one.subsets[0].status = one.tracked[0].result.status = Status::ok;
      one.tracked[0].result.zncc = 0.95f;
      const Frame frame(one);
      std::printf("one measured point in a corner, %d points\n", frame.count);
      time_verdicts(frame);
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
