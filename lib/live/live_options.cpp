#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/live.hpp>
#include <iterator>
#include <sstream>

#include "core/number_text.hpp"

namespace dic {
namespace {

[[noreturn]] void refuse(const std::string& name, const std::string& what, const std::string& text) {
  throw UsageError(name + " needs " + what + ", got \"" + text + "\"");
}

template <typename Number>
Number parsed_number(const std::string& name, const std::string& what, const std::string& text) {
  const std::optional<Number> value = core::parse_number<Number>(text);
  if (!value) refuse(name, what, text);
  return *value;
}

/// A number, or no value for 0 where the camera decides.
std::optional<double> number_or_none(const std::string& name, const std::string& text) {
  const auto value = parsed_number<double>(name, "a number", text);
  return value == 0 ? std::nullopt : std::optional(value);
}

template <typename Number, std::size_t count>
std::array<Number, count> numbers(const std::string& name, const std::string& what, const std::string& text) {
  std::array<Number, count> values{};
  std::istringstream parts(text);
  std::size_t found = 0;
  for (std::string part; std::getline(parts, part, ',');) {
    const std::optional<Number> value = core::parse_number<Number>(part);
    if (!value || found == count) refuse(name, what, text);
    values[found++] = *value;
  }
  if (found != count || text.ends_with(',')) refuse(name, what, text);
  return values;
}

void set_feature(LiveOptions& live, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) refuse("set", "Feature=Value", text);
  live.settings.features.emplace_back(text.substr(0, equals), text.substr(equals + 1));
}

void set_region(LiveOptions& live, const std::string& text) {
  const std::string what = "four whole numbers x,y,width,height";
  const auto [x, y, width, height] = numbers<int, 4>("region", what, text);
  if (x < 0 || y < 0 || width < 1 || height < 1) refuse("region", what, text);
  live.settings.region = {x, y, width, height};
}

void set_drop(LiveOptions& live, const std::string& text) {
  const std::optional<DropPolicy> policy = from_name<DropPolicy>(text);
  if (!policy) refuse("drop", "newest, never or stop", text);
  live.drop = *policy;
}

void set_lost(LiveOptions& live, const std::string& text) {
  const std::string wait = "wait=", what = "stop or wait=SECONDS";
  if (text != "stop" && !text.starts_with(wait)) refuse("lost", what, text);
  live.wait_for_camera = text == "stop" ? 0 : parsed_number<double>("lost", what, text.substr(wait.size()));
}

void set_until(LiveOptions& live, const std::string& text) {
  const std::string what = "a number of results, as 500, or a time, as 60s";
  const bool is_time = text.ends_with('s');
  live.until_seconds = is_time ? parsed_number<double>("until", what, text.substr(0, text.size() - 1)) : 0;
  live.until_frames = is_time ? 0 : parsed_number<int>("until", what, text);
}

bool is_true(const std::string& name, const std::string& text) {
  if (text != "true" && text != "false") refuse(name, "true or false", text);
  return text == "true";
}

void set_axes(LiveOptions& live, const std::string& text) {
  const std::optional<StereoAxes> axes = from_name<StereoAxes>(text);
  if (!axes) refuse("axes", "camera, plane, cylinder or points", text);
  live.stereo.axes = *axes;
}

void set_axes_points(LiveOptions& live, const std::string& text) {
  try {
    live.stereo.axes_points = parse_axes_points(text);
  } catch (const UsageError& problem) {
    throw UsageError("axes-points " + std::string(problem.what()));
  }
}

void add_extensometer(LiveOptions& live, const std::string& text) {
  const auto [x1, y1, x2, y2] = numbers<double, 4>("extensometer", "four numbers x1,y1,x2,y2", text);
  live.extensometers.push_back({Position{x1, y1}, Position{x2, y2}});
}

struct Option {
  const char* name;
  void (*set)(LiveOptions& live, const std::string& text);
};
constexpr Option kOptions[] = {
    {"camera", [](LiveOptions& live, const std::string& text) { live.camera = text; }},
    {"right-camera", [](LiveOptions& live, const std::string& text) { live.right_camera = text; }},
    {"calibration", [](LiveOptions& live, const std::string& text) { live.calibration = text; }},
    {"axes", set_axes},
    {"axes-points", set_axes_points},
    {"correct-rig", [](LiveOptions& live,
                       const std::string& text) { live.stereo.correct_rig = is_true("correct-rig", text); }},
    {"remove-rigid-motion",
     [](LiveOptions& live, const std::string& text) {
       live.stereo.remove_rigid_motion = is_true("remove-rigid-motion", text);
     }},
    {"set", set_feature},
    {"region", set_region},
    {"format", [](LiveOptions& live, const std::string& text) { live.settings.format = text; }},
    {"fps", [](LiveOptions& live,
               const std::string& text) { live.settings.frame_rate = number_or_none("fps", text); }},
    {"exposure",
     [](LiveOptions& live, const std::string& text) {
       live.settings.exposure = parsed_number<double>("exposure", "a number of us", text);
     }},
    {"gain",
     [](LiveOptions& live, const std::string& text) {
       live.settings.gain = parsed_number<double>("gain", "a number", text);
     }},
    {"trigger", [](LiveOptions& live, const std::string& text) { live.settings.trigger = text; }},
    {"buffers",
     [](LiveOptions& live, const std::string& text) {
       live.settings.buffers = parsed_number<int>("buffers", "a whole number", text);
     }},
    {"drop", set_drop},
    {"record", [](LiveOptions& live, const std::string& text) { live.record = text; }},
    {"udp", [](LiveOptions& live, const std::string& text) { live.udp = text; }},
    {"tcp", [](LiveOptions& live,
               const std::string& text) { live.tcp = parsed_number<int>("tcp", "a port", text); }},
    {"lost", set_lost},
    {"until", set_until},
    {"extensometer", add_extensometer},
    {"only-extensometers",
     [](LiveOptions& live, const std::string& text) {
       live.only_extensometers = is_true("only-extensometers", text);
     }},
};

}  // namespace

void set_live_option(LiveOptions& live, const std::string& name, const std::string& value) {
  const auto* found = std::ranges::find(kOptions, name, &Option::name);
  if (found == std::end(kOptions))
    throw UsageError("There is no option \"" + name + "\": dic live --help lists all");
  found->set(live, value);
}

std::vector<std::string> live_option_names() {
  std::vector<std::string> names;
  for (const Option& option : kOptions) names.emplace_back(option.name);
  return names;
}

std::vector<std::string> LiveOptions::validate() const {
  std::vector<std::string> found;
  const auto need = [&](bool is_right, const char* sentence) {
    if (!is_right) found.emplace_back(sentence);
  };
  const auto is_positive = [](const std::optional<double>& value) {
    return !value || (std::isfinite(*value) && *value > 0);
  };
  need(!camera.empty(), "No camera was named: give its name or address, or fake.");
  need(right_camera.empty() || !calibration.empty(), "Two cameras need their calibration: name its file.");
  need(calibration.empty() || !right_camera.empty(),
       "A calibration of two cameras was given, but no right camera: name it.");
  need(!right_camera.empty() || (stereo.axes == StereoAxes::camera && !stereo.axes_points &&
                                 !stereo.correct_rig && !stereo.remove_rigid_motion),
       "Axes, rig and rigid motion are settings of two cameras, but no right camera was given: name it.");
  need(right_camera.empty() || right_camera != camera, "The left and the right camera are the same one.");
  need(is_positive(settings.frame_rate), "The frame rate must be a positive number of frames per second.");
  need(is_positive(settings.exposure), "The exposure must be a positive number of microseconds.");
  need(!settings.gain || std::isfinite(*settings.gain), "The gain must be a number.");
  need(!settings.trigger.empty(), "The trigger must be free, software or the name of an input, as Line0.");
  need(settings.buffers >= 2 && settings.buffers <= 10000, "The number of buffers must be 2 to 10000.");
  need(!tcp || (*tcp >= 0 && *tcp <= 65535), "The TCP port must be 0 to 65535.");
  need(std::isfinite(wait_for_camera) && wait_for_camera >= 0,
       "The time to wait for a camera must be 0 or more seconds.");
  need(!only_extensometers || !extensometers.empty(), "No extensometer was given to measure.");
  need(until_frames >= 0, "The number of results to end after must be 0 (never) or more.");
  need(std::isfinite(until_seconds) && until_seconds >= 0,
       "The time to end after must be 0 (never) or more seconds.");
  return found;
}

}  // namespace dic
