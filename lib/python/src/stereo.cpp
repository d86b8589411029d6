#include <nanobind/stl/array.h>
#include <nanobind/stl/function.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <dic/error.hpp>
#include <dic/stereo_files.hpp>

#include "bindings.hpp"
#include "interruptible.hpp"
#include "options.hpp"

namespace dic::python {

namespace {

/// Called with stage, frame and frames.
using OnProgress = std::function<void(std::string, int, int)>;
using Point = std::array<double, 2>;

/// Inputs of a run besides its options.
struct Inputs {
  std::vector<std::string> left, right;
  std::string calibration, axes;
  std::optional<std::array<Point, 3>> axes_points;
  bool remove_rigid_motion = false, correct_rig = false;
};

StereoJob job_of(const Inputs& inputs, const OptionValues& options, const std::optional<Array>& roi) {
  StereoJob job;
  job.track = job_with(options, roi);
  job.track.frames = inputs.left;
  job.track.command = "dic.stereo in Python";
  job.right = inputs.right;
  job.calibration = inputs.calibration;
  const std::optional<StereoAxes> axes = from_name<StereoAxes>(inputs.axes);
  if (!axes) throw UsageError("The axes are camera, plane, cylinder or points, got \"" + inputs.axes + "\".");
  job.options.axes = *axes;
  job.options.remove_rigid_motion = inputs.remove_rigid_motion;
  job.options.correct_rig = inputs.correct_rig;
  if (inputs.axes_points) {
    auto& points = job.options.axes_points.emplace();
    for (std::size_t k = 0; k < points.size(); ++k)
      points[k] = {(*inputs.axes_points)[k][0], (*inputs.axes_points)[k][1]};
  }
  return job;
}

/// Name and error of each pair, and what is to be said about their names.
nb::dict summary_of(const StereoSummary& summary) {
  nb::list frames;
  for (const StereoFrameSummary& frame : summary.frames)
    frames.append(nb::make_tuple(frame.left, frame.error));
  nb::dict out;
  out["frames"] = frames;
  out["pairing"] = summary.pairing;
  out["epipolar_median"] = summary.frames.front().epipolar_median;
  return out;
}

nb::dict stereo(const Inputs& inputs, const OptionValues& options, const std::optional<Array>& roi,
                const std::optional<OnProgress>& on_progress) {
  const StereoJob job = job_of(inputs, options, roi);
  const auto show = [&](const Progress& progress) {
    const nb::gil_scoped_acquire python;
    (*on_progress)(progress.stage, progress.frame, progress.frames);
  };
  return summary_of(interruptible([&](const std::stop_token& stop) {
    return stereo_files(job, on_progress ? ProgressCallback(show) : ProgressCallback(), stop);
  }));
}

}  // namespace

void add_stereo(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<Inputs>(module, "StereoInputs", "Images and axes of a measurement with two cameras.")
      .def(nb::init<>())
      .def_rw("left", &Inputs::left)
      .def_rw("right", &Inputs::right)
      .def_rw("calibration", &Inputs::calibration)
      .def_rw("axes", &Inputs::axes)
      .def_rw("axes_points", &Inputs::axes_points)
      .def_rw("remove_rigid_motion", &Inputs::remove_rigid_motion)
      .def_rw("correct_rig", &Inputs::correct_rig);
  module.def("stereo_files", &stereo, "inputs"_a, "options"_a, "roi"_a = nb::none(),
             "progress"_a = nb::none(), "Measures pairs of files into files: what `dic stereo` does.");
  module.def(
      "one_camera_options",
      [] {
        nb::dict options;
        for (const OneCameraOption& option : one_camera_options()) options[option.name.c_str()] = option.why;
        return options;
      },
      "Options of a measurement with one camera that one with two does not have, and why.");
}

}  // namespace dic::python
