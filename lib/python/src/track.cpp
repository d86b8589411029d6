#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstddef>
#include <dic/error.hpp>
#include <dic/image_io.hpp>
#include <dic/track_files.hpp>
#include <dic/track_options.hpp>
#include <dic/track_parts.hpp>
#include <memory>

#include "bindings.hpp"
#include "frame_result.hpp"
#include "guarded.hpp"
#include "interruptible.hpp"
#include "options.hpp"

namespace dic::python {

namespace {

nb::list option_table() {
  nb::list table;
  for (const TrackOption& option : track_options()) {
    nb::dict entry;
    entry["name"] = option.name;
    entry["group"] = option.group;
    entry["kind"] = std::string(to_string(option.kind));
    entry["placeholder"] = option.placeholder;
    entry["choices"] = option.choices;
    entry["help"] = option.help;
    entry["default"] = option.get(TrackJob{});
    table.append(entry);
  }
  return table;
}

OptionValues values_in(const TrackOptions& options) {
  TrackJob job;
  job.options = options;
  return values_of(job);
}

std::unique_ptr<Guarded<Tracker>> make_tracker(const Array& reference, const OptionValues& options,
                                               const std::optional<Array>& roi) {
  const TrackJob job = job_for(reference, options, roi);
  const ImageView image = view_of(reference, memory_for(job.options.device));
  return std::make_unique<Guarded<Tracker>>(interruptible(
      [&](const std::stop_token&) { return std::make_unique<Tracker>(job.options, image, job.roi); }));
}

FrameResult track(Guarded<Tracker>& guarded, const Array& current) {
  const ImageView image = view_of(current, memory_for(guarded.object().device()));
  return guarded.call(
      [&](Tracker& tracker, const std::stop_token& stop) { return tracker.track(image, stop); });
}

/// Called with stage, frame and frames.
using OnProgress = std::function<void(std::string, int, int)>;

nb::dict summary_of(const TrackSummary& summary) {
  nb::list frames;
  for (const FrameSummary& frame : summary.frames) frames.append(nb::make_tuple(frame.file, frame.error));
  nb::dict out;
  out["reference"] = summary.reference;
  out["device"] = summary.device;
  out["points"] = summary.points;
  out["seconds"] = summary.seconds.total;
  out["output"] = summary.output.string();
  out["frames"] = frames;  // name and error
  return out;
}

TrackJob job_of(const std::vector<std::string>& frames, const OptionValues& options,
                const std::optional<Array>& roi, const std::string& command,
                const std::vector<double>& times) {
  TrackJob job = job_with(options, roi);
  job.times = times;
  job.frames = frames;
  job.command = command;
  return job;
}

nb::dict track_all(const std::vector<std::string>& frames, const OptionValues& options,
                   const std::optional<Array>& roi, const std::string& command,
                   const std::vector<double>& times, const std::optional<OnProgress>& on_progress) {
  const TrackJob job = job_of(frames, options, roi, command, times);
  const auto show = [&](const Progress& progress) {
    const nb::gil_scoped_acquire python;
    (*on_progress)(progress.stage, progress.frame, progress.frames);
  };
  return summary_of(interruptible([&](const std::stop_token& stop) {
    return track_files(job, on_progress ? ProgressCallback(show) : ProgressCallback(), stop);
  }));
}

/// Calls task(job, stop) without Python's lock, with what track_files takes behind the arguments of the task.
template <typename... Arguments, typename Task>
auto of_job(Task task) {
  return
      [task](Arguments... arguments, const std::vector<std::string>& frames, const OptionValues& options,
             const std::optional<Array>& roi, const std::string& command, const std::vector<double>& times) {
        const TrackJob job = job_of(frames, options, roi, command, times);
        return interruptible([&](const std::stop_token& stop) { return task(arguments..., job, stop); });
      };
}

void track_part(std::size_t number, const TrackJob& job, const std::stop_token& stop) {
  if (track_files(planned_parts(job).at(number), {}, stop).interrupted)
    throw Cancelled("The measurement was cancelled.");
}

void add_parts(nb::module_& module) {
  using namespace nb::literals;
  module.def(
      "expand_frames",
      [](const std::vector<std::string>& arguments) {
        std::vector<std::string> names;
        for (const auto& path : expand_frames(arguments)) names.push_back(path.string());
        return names;
      },
      "arguments"_a, "Names of the images that files, globs and folders mean, in their order.");
  module.def("plan_parts", of_job<int>([](int processes, const TrackJob& job, const std::stop_token&) {
               return plan_parts(job, processes).size();
             }),
             "processes"_a, "frames"_a, "options"_a, "roi"_a.none(), "command"_a, "times"_a,
             "Divides a run of track_files among processes. Returns the number of parts; 0 = all is done.");
  module.def("track_part", of_job<std::size_t>(&track_part), "number"_a, "frames"_a, "options"_a,
             "roi"_a.none(), "command"_a, "times"_a, "Measures a part that was planned.");
  const auto join = of_job<>([](const TrackJob& job, const std::stop_token&) { return join_parts(job); });
  module.def(
      "join_parts",
      [join](const std::vector<std::string>& frames, const OptionValues& options,
             const std::optional<Array>& roi, const std::string& command, const std::vector<double>& times) {
        return summary_of(join(frames, options, roi, command, times));
      },
      "frames"_a, "options"_a, "roi"_a.none(), "command"_a, "times"_a,
      "Makes one result of the parts, all measured by now.");
}

}  // namespace

void add_track(nb::module_& module) {
  using namespace nb::literals;
  add_frame_result(module);
  add_parts(module);
  module.def(
      "track_options", &option_table,
      "The options of a measurement: a list of dictionaries with name, group, kind, placeholder, choices, "
      "help and default.");
  module.def("track_files", &track_all, "frames"_a, "options"_a, "roi"_a = nb::none(), "command"_a = "",
             "times"_a = std::vector<double>(), "progress"_a = nb::none(),
             "Tracks files into files: what `dic track` does.");
  module.def(
      "times", [](const OptionValues& options) { return job_with(options, std::nullopt).times; }, "options"_a,
      "Seconds of the frames, as the option times reads them.");
  module.def(
      "scale", [](const OptionValues& options) { return job_with(options, std::nullopt).scale(); },
      "options"_a, "mm per px of a run with these options; 0 where lengths are px.");
  nb::class_<Guarded<Tracker>>(module, "Tracker")
      .def(nb::new_(&make_tracker), "reference"_a, "options"_a = OptionValues(), "roi"_a = nb::none())
      .def("track", &track, "current"_a,
           "Measures the next frame, an array [y, x] of the reference's size and type. Calls "
           "from several threads wait for each other.\n\n"
           "Raises UsageError where size or type differ, DeviceError, KeyboardInterrupt.")
      .def_prop_ro(
          "grid", [](Guarded<Tracker>& self) -> const Grid& { return self.object().grid(); },
          nb::rv_policy::reference_internal, "The points.")
      .def_prop_ro("device", property_of<Tracker, &Tracker::device>(),
                   "'cpu', or number and name of the GPU.")
      .def_prop_ro("device_reason", property_of<Tracker, &Tracker::device_reason>(),
                   "Why the device was chosen, one sentence.")
      .def_prop_ro("kernels", property_of<Tracker, &Tracker::kernels>(),
                   "Variants of the correlation and SIMD targets that ran.")
      .def_prop_ro(
          "options",
          [](Guarded<Tracker>& self) {
            return values_in(self.ask([](Tracker& tracker) { return tracker.options(); }));
          },
          "All options by name as text, with what was chosen from the reference.")
      .def_prop_ro("prepare_seconds", property_of<Tracker, &Tracker::prepare_seconds>(),
                   "Time that preparing the reference took, seconds.");
}

}  // namespace dic::python
