#include "view/calibration_run.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <dic/camera.hpp>
#include <dic/camera_rig.hpp>
#include <dic/error.hpp>
#include <filesystem>
#include <utility>

#include "view/folder_list.hpp"

namespace dic::app {
namespace {

/// Text of a number for people.
template <typename... Values>
std::string formatted(const char* format, Values... values) {
  std::array<char, 200> text{};
  std::snprintf(text.data(), text.size(), format, values...);
  return text.data();
}

std::string optional_text(const Json& json, const char* name) {
  const Json value = json.value(name, Json());
  if (value.is_null()) return {};
  if (!value.is_string()) throw UsageError(std::string("The page sent a \"") + name + "\" that is no text.");
  return value.get<std::string>();
}

template <typename Enum>
Enum choice_in(const Json& json, const char* name) {
  const std::string text = optional_text(json, name);
  const auto value = from_name<Enum>(text);
  if (!value) throw UsageError("A calibration has no such " + std::string(name) + ".");
  return *value;
}

Target target_in(const Json& json) {
  if (!json.is_object()) throw UsageError("The page asked without a target.");
  Target target;
  target.pattern = choice_in<TargetPattern>(json, "pattern");
  target.columns = json.value("columns", 0);
  target.rows = json.value("rows", 0);
  target.square_mm = json.value("square_mm", 0.0);
  target.marker_mm = json.value("marker_mm", 0.0);
  if (const std::string dictionary = optional_text(json, "dictionary"); !dictionary.empty())
    target.dictionary = dictionary;
  for (const std::string& problem : target.validate()) throw UsageError(problem);
  return target;
}

Json places_json(const auto& points) {
  Json places = Json::array();
  for (const auto& point : points) places.push_back({point.x, point.y});
  return places;
}

Json image_json(const CalibrationImage& image) {
  return {{"points", places_json(image.points)},
          {"residuals", places_json(image.residuals)},
          {"rms", image.rms},
          {"problem", image.problem}};
}

/// Parameters of a lens, with standard deviations where they are known.
void add_lens(Json& facts, const Lens& lens, const std::optional<Lens>& deviations, const std::string& of) {
  using Member = double Lens::*;
  constexpr std::pair<const char*, Member> kAll[] = {{"fx", &Lens::fx}, {"fy", &Lens::fy}, {"cx", &Lens::cx},
                                                     {"cy", &Lens::cy}, {"k1", &Lens::k1}, {"k2", &Lens::k2},
                                                     {"k3", &Lens::k3}, {"p1", &Lens::p1}, {"p2", &Lens::p2},
                                                     {"k4", &Lens::k4}, {"k5", &Lens::k5}, {"k6", &Lens::k6}};
  for (const auto& [name, member] : kAll) {
    if (lens.*member == 0) continue;
    const std::string unit = name[0] == 'f' || name[0] == 'c' ? " px" : "";
    const std::string value = deviations ? formatted("%.4g ± %.1g", lens.*member, (*deviations).*member)
                                         : formatted("%.5g", lens.*member);
    facts.push_back({of + name, value + unit});
  }
}

Json answer_of(const Calibration& found) {
  Json facts = Json::array(), images = Json::array();
  if (found.deviations) add_lens(facts, *found.camera.lens, found.deviations, "");
  for (const CalibrationImage& image : found.images) images.push_back(image_json(image));
  if (const auto& plane = found.plane) {
    images.push_back(image_json(plane->image));
    facts.push_back({"scale in the middle", formatted("%.5g mm/px", Camera(found.camera).scale_mm_per_px())});
    facts.push_back({"specimen, residuals", formatted("%.4f mm", plane->rms_mm)});
    if (std::isfinite(plane->tilt_deg))
      facts.push_back({"specimen, tilt", formatted("%.2f°", plane->tilt_deg)});
    if (std::isfinite(plane->distance_mm))
      facts.push_back({"specimen, distance", formatted("%.1f mm", plane->distance_mm)});
  }
  return {{"width", found.camera.image.width},
          {"height", found.camera.image.height},
          {"rms", found.deviations ? found.rms : found.plane->image.rms},
          {"coverage", found.deviations ? Json::array({found.coverage}) : Json::array()},
          {"facts", facts},
          {"warnings", found.warnings},
          {"images", images}};
}

Json answer_of(const StereoCalibration& found) {
  Json facts = Json::array(), images = Json::array();
  facts.push_back({"distance of the cameras", formatted("%.5g mm", found.baseline_mm)});
  facts.push_back({"angle between them", formatted("%.4f°", found.angle_deg)});
  facts.push_back({"off epipolar lines", formatted("%.4f px", found.rig.epipolar_px)});
  add_lens(facts, *found.rig.cameras[0].camera.lens, std::nullopt, "left ");
  add_lens(facts, *found.rig.cameras[1].camera.lens, std::nullopt, "right ");
  for (const auto side : {&CalibrationPair::left, &CalibrationPair::right})
    for (const CalibrationPair& pair : found.pairs) {
      images.push_back(image_json(pair.*side));
      if (!pair.problem.empty()) images.back()["problem"] = pair.problem;
    }
  const Size size = found.rig.cameras[0].camera.image;
  return {{"width", size.width},        {"height", size.height}, {"rms", found.rms},
          {"coverage", found.coverage}, {"facts", facts},        {"images", images},
          {"warnings", found.warnings}};
}

void write(const std::filesystem::path& path, const Calibration& found, const std::string& command) {
  write_camera(path, found.camera, calibration_json(found, command));
}

void write(const std::filesystem::path& path, const StereoCalibration& found, const std::string& command) {
  write_camera_rig(path, found.rig, calibration_json(found, command));
}

void write(const std::filesystem::path& /*path*/, std::monostate /*none*/, const std::string& /*command*/) {
  throw UsageError("There is no calibration yet: calibrate first.");
}

}  // namespace

Json CalibrationRun::choose(const Json& asked, const AllowedFolders& folders) {
  const auto open = [&](const char* name) {
    Chosen chosen{optional_text(asked, name), {}};
    if (chosen.arguments.empty()) return chosen;
    check_frames(chosen.arguments, folders);
    chosen.images = NamedImages({chosen.arguments});
    return chosen;
  };
  Chosen left = open("left"), right = open("right"), plane = open("plane");
  if (plane.images.count() > 1) throw UsageError("The specimen needs one image of the target, not several.");
  const std::lock_guard lock(mutex_);
  left_ = std::move(left), right_ = std::move(right), plane_ = std::move(plane);
  found_ = std::monostate();
  Json answer = {{"names", Json::array()}, {"sides", Json::array()}};
  for (const auto& [side, chosen] :
       {std::pair("left", &left_), std::pair("right", &right_), std::pair("plane", &plane_)})
    for (int k = 0; k < chosen->images.count(); ++k) {
      answer["names"].push_back(chosen->images.name(k));
      answer["sides"].push_back(side);
    }
  return answer;
}

Image CalibrationRun::image(int index) const {
  const std::lock_guard lock(mutex_);
  if (index < 0) throw FileError("There is no image of the target with a negative number.");
  for (const Chosen* chosen : {&left_, &right_, &plane_}) {
    if (index < chosen->images.count()) return chosen->images.read(index);
    index -= chosen->images.count();
  }
  throw FileError("There are fewer images of the target: choose them again.");
}

Json CalibrationRun::calibrate(const Json& asked) {
  const Target target = target_in(asked.value("target", Json()));
  const auto model = choice_in<LensModel>(asked, "model");
  const std::lock_guard lock(mutex_);
  if (left_.images.empty() && plane_.images.empty()) throw UsageError("Choose images of the target first.");
  found_ = std::monostate();
  return right_.images.empty() ? calibrate_one(target, model) : calibrate_two(target, model);
}

Json CalibrationRun::calibrate_one(const Target& target, LensModel model) {
  CalibrationJob job;
  if (!left_.images.empty()) job.images = {left_.arguments};
  job.plane = plane_.arguments;
  job.target = target;
  job.model = model;
  const Calibration& found = found_.emplace<Calibration>(dic::calibrate(job));
  return answer_of(found);
}

Json CalibrationRun::calibrate_two(const Target& target, LensModel model) {
  if (!plane_.images.empty())
    throw UsageError(
        "Two cameras need no image on the specimen: leave it out, or leave out the right camera.");
  StereoCalibrationJob job;
  job.left = {left_.arguments};
  job.right = {right_.arguments};
  job.target = target;
  job.model = model;
  const StereoCalibration& found = found_.emplace<StereoCalibration>(calibrate_stereo(job));
  return answer_of(found);
}

std::string CalibrationRun::save(const std::string& path, bool force, const AllowedFolders& folders,
                                 const std::string& command) const {
  folders.check(path, "The camera file");
  const std::lock_guard lock(mutex_);
  std::error_code unknown;
  if (!force && std::filesystem::exists(path, unknown))
    throw UsageError(path + " exists already: choose another name, or replace it.");
  std::visit([&](const auto& found) { write(path, found, command); }, found_);
  return path;
}

}  // namespace dic::app
