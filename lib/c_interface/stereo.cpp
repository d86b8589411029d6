#include <dic/camera_rig.hpp>
#include <dic/shared/enum_names.hpp>
#include <dic/stereo.hpp>
#include <dic/stereo_files.hpp>
#include <sstream>
#include <string>

#include "c_interface/objects.hpp"

using namespace dic;
using namespace dic::c_interface;

struct dic_stereo {
  StereoTracker tracker;
  double epipolar_median = 0, epipolar_sd = 0;  ///< of the last pair, px
  std::int64_t pairs = 0;                       ///< number of pairs after the references
};

namespace {

bool is_true(const std::string& name, const std::string& value) {
  if (value != "true" && value != "false")
    throw UsageError("The option " + name + " is true or false, got \"" + value + "\".");
  return value == "true";
}

std::array<Roi::Vertex, 3> three_points(const std::string& text) {
  std::array<Roi::Vertex, 3> points;
  std::istringstream stream(text);
  char comma[3] = {};
  for (std::size_t k = 0; k < points.size(); ++k) stream >> points[k].x >> comma[k] >> points[k].y;
  std::string rest;
  if (!stream || std::string(comma, 3) != ",,," || stream >> rest)
    throw UsageError("The axes need three points \"x,y x,y x,y\", got \"" + text + "\".");
  return points;
}

void set(StereoOptions& options, const std::string& name, const std::string& value) {
  if (name == "axes") {
    const auto axes = from_name<StereoAxes>(value);
    if (!axes) throw UsageError("The axes are camera, plane, cylinder or points, got \"" + value + "\".");
    options.axes = *axes;
  } else if (name == "axes-points") {
    options.axes_points = three_points(value);
  } else if (name == "correct-rig") {
    options.correct_rig = is_true(name, value);
  } else if (name == "remove-rigid-motion") {
    options.remove_rigid_motion = is_true(name, value);
  } else {
    throw UsageError("There is no option \"" + name +
                     "\" of two cameras: those are axes, axes-points, correct-rig and remove-rigid-motion.");
  }
}

StereoOptions stereo_options(const char* settings) {
  StereoOptions options;
  std::istringstream lines(settings ? settings : "");
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos)
      throw UsageError("A setting is a line \"name=value\", got \"" + line + "\".");
    set(options, line.substr(0, equals), line.substr(equals + 1));
  }
  return options;
}

ImageView view_of(const dic_image* image, const char* name) {
  const dic_image& given = checked(image, name);
  return c_interface::view_of(given.pixels, given.type, given.width, given.height, given.row_bytes);
}

dic_result* owned_pair(const StereoFrame& frame, std::int64_t index) {
  FrameResult result;
  result.field = frame.field;
  result.index = index;
  return new dic_result{std::move(result)};
}

}  // namespace

dic_status dic_stereo_create(const dic_options* options, const char* calibration, const char* settings,
                             const dic_image* left, const dic_image* right, dic_stereo** stereo) {
  return guarded([&] {
    checked(stereo, "stereo") = nullptr;
    const TrackJob& job = job_of(options);
    const std::string file = &checked(calibration, "calibration");
    StereoOptions chosen = stereo_options(settings);
    chosen.track = job.options;
    if (const auto problems = one_camera_problems(job); !problems.empty()) throw UsageError(problems.front());
    const ImageView of_left = view_of(left, "left"), of_right = view_of(right, "right");
    StereoTracker tracker(chosen, read_camera_rig(file, of_left.size()), of_left, of_right, job.roi);
    const StereoFrame& reference = tracker.reference();
    const double median = reference.epipolar_median, sd = reference.epipolar_sd;
    *stereo = new dic_stereo{std::move(tracker), median, sd};
  });
}

void dic_stereo_destroy(dic_stereo* stereo) { delete stereo; }

dic_status dic_stereo_reference(const dic_stereo* stereo, dic_result** result) {
  return guarded([&] {
    dic_result*& out = checked(result, "result");
    out = nullptr;
    out = owned_pair(checked(stereo, "stereo").tracker.reference(), 0);
  });
}

dic_status dic_stereo_track(dic_stereo* stereo, const dic_image* left, const dic_image* right,
                            dic_result** result) {
  return guarded([&] {
    dic_result*& out = checked(result, "result");
    out = nullptr;
    dic_stereo& self = checked(stereo, "stereo");
    const StereoFrame frame = self.tracker.track(view_of(left, "left"), view_of(right, "right"));
    out = owned_pair(frame, ++self.pairs);
    self.epipolar_median = frame.epipolar_median, self.epipolar_sd = frame.epipolar_sd;
  });
}

dic_status dic_stereo_epipolar(const dic_stereo* stereo, double* median, double* sd) {
  return guarded([&] {
    const dic_stereo& self = checked(stereo, "stereo");
    if (median) *median = self.epipolar_median;
    if (sd) *sd = self.epipolar_sd;
  });
}
