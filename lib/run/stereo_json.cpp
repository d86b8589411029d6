#include "run/stereo_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dic/info.hpp>
#include <numbers>
#include <utility>

#include "run/json_text.hpp"
#include "run/run_json.hpp"

namespace dic::run {
namespace {

/// Adds the options of stereo to those of one camera, and removes what one camera alone has.
void add_stereo_options(Json& json, const StereoJob& job) {
  for (const char* name : {"frames", "camera", "global", "global_resolution", "noise_floor", "scale"})
    json.erase(name);
  json["axes"] = to_string(job.options.axes);
  json["axes_points"] = nullptr;
  if (const auto& points = job.options.axes_points)
    for (const Roi::Vertex& point : *points) json["axes_points"].push_back({point.x, point.y});
  json["remove_rigid_motion"] = job.options.remove_rigid_motion;
  json["correct_rig"] = job.options.correct_rig;
}

Json stereo_settings(const StereoJob& job) {
  Json json = Json::parse(settings_json(job.track));
  json["left"] = json["frames"];
  json["right"] = job.right;
  json["calibration"] = job.calibration.string();
  add_stereo_options(json, job);
  return json;
}

Json rig_json(const CameraRig& rig) {
  const RigCamera& right = rig.cameras.at(1);
  const auto& r = right.rotation;
  const auto& t = right.translation_mm;
  const double cosine = std::clamp((r[0] + r[4] + r[8] - 1) / 2, -1.0, 1.0);
  return {{"baseline_mm", std::hypot(t[0], t[1], t[2])},
          {"angle_deg", std::acos(cosine) * 180 / std::numbers::pi},
          {"epipolar_px", rig.epipolar_px}};
}

Json correction_json(const std::optional<RigCorrection>& correction) {
  if (!correction) return nullptr;
  return {{"rotation_deg", correction->rotation_deg},
          {"sigma_rotation_deg", correction->sigma_rotation_deg},
          {"direction_deg", correction->direction_deg},
          {"sigma_direction_deg", correction->sigma_direction_deg},
          {"epipolar_before_px", correction->epipolar_before_px},
          {"epipolar_after_px", correction->epipolar_after_px},
          {"points", correction->points}};
}

Json motion_json(const RigidMotion& motion) {
  if (!motion.is_known) return nullptr;
  return {{"rotation_deg", motion.rotation_deg},
          {"translation_mm", motion.translation_mm},
          {"centre_mm", motion.centre_mm},
          {"sigma_rotation_deg", motion.sigma_rotation_deg},
          {"sigma_translation_mm", motion.sigma_translation_mm},
          {"residual_mm", motion.residual_mm},
          {"points", motion.points}};
}

Json describe_pair(const StereoFrameSummary& frame) {
  Json json;
  json["file"] = frame.left;
  json["right_file"] = frame.right;
  json["time"] = frame.time ? Json(*frame.time) : Json(nullptr);
  json["error"] = frame.error.empty() ? Json(nullptr) : Json(frame.error);
  if (!frame.error.empty()) return json;
  for (int status = 0; status < kStatusCount; ++status)
    json["counts"][std::string(to_string(static_cast<Status>(status)))] = frame.counts[status];
  for (std::size_t k = 0; k < kStereoSummary.size(); ++k) {
    const std::string name(kStereoSummary[k]);
    json["mean_" + name] = frame.statistics[k].mean;
    json["sd_" + name] = frame.statistics[k].sd;
    json["sigma_" + name] = frame.statistics[k].sigma;
  }
  json["epipolar_median"] = frame.epipolar_median;
  json["epipolar_sd"] = frame.epipolar_sd;
  json["rigid_motion"] = motion_json(frame.motion);
  json["noise_left"] = frame.noise_left;
  json["noise_right"] = frame.noise_right;
  json["seconds"] = frame.seconds;
  return json;
}

RigidMotion motion_of(const Json& json) {
  RigidMotion motion;
  if (json.is_null()) return motion;
  motion.is_known = true;
  for (const auto& [name, values] :
       {std::pair("rotation_deg", &motion.rotation_deg), std::pair("translation_mm", &motion.translation_mm),
        std::pair("centre_mm", &motion.centre_mm),
        std::pair("sigma_rotation_deg", &motion.sigma_rotation_deg),
        std::pair("sigma_translation_mm", &motion.sigma_translation_mm)})
    for (std::size_t k = 0; k < values->size(); ++k) {
      const Json& value = json.at(name).at(k);
      (*values)[k] = value.is_null() ? NAN : value.get<double>();
    }
  motion.residual_mm = number(json, "residual_mm");
  motion.points = json.at("points");
  return motion;
}

}  // namespace

std::string stereo_settings_json(const StereoJob& job) { return dump(stereo_settings(job), -1); }

std::string stereo_resume_settings(const StereoJob& job, const CameraRig& rig) {
  Json json = Json::parse(resume_settings(job.track));
  add_stereo_options(json, job);
  json["calibration"] = Json::parse(camera_rig_json(rig));
  json["fps"] = nullptr, json["times"] = nullptr;  // times are compared one by one
  return dump(json, -1);
}

std::string frame_json(const StereoFrameSummary& frame) { return dump(describe_pair(frame), -1); }

StereoFrameSummary stereo_frame_from_json(const std::string& text) {
  const Json json = Json::parse(text);
  StereoFrameSummary frame;
  frame.left = json.at("file"), frame.right = json.at("right_file");
  if (!json.at("time").is_null()) frame.time = json.at("time").get<double>();
  if (!json.at("error").is_null()) {
    frame.error = json.at("error");
    return frame;
  }
  for (int status = 0; status < kStatusCount; ++status)
    frame.counts[status] = json.at("counts").at(std::string(to_string(static_cast<Status>(status))));
  for (std::size_t k = 0; k < kStereoSummary.size(); ++k) {
    const std::string name(kStereoSummary[k]);
    frame.statistics[k] = {number(json, "mean_" + name), number(json, "sd_" + name),
                           number(json, "sigma_" + name)};
  }
  frame.motion = motion_of(json.at("rigid_motion"));
  for (const auto& [name, value] :
       {std::pair("epipolar_median", &frame.epipolar_median), std::pair("epipolar_sd", &frame.epipolar_sd),
        std::pair("noise_left", &frame.noise_left), std::pair("noise_right", &frame.noise_right),
        std::pair("seconds", &frame.seconds)})
    *value = number(json, name);
  return frame;
}

std::string stereo_run_json(const StereoJob& job, const StereoSummary& summary, RunState state) {
  Json json;
  json["state"] = to_string(state);
  json["frames_done"] = std::ssize(summary.frames);
  json["frames_given"] = summary.frames_given ? Json(*summary.frames_given) : Json(nullptr);
  json["version"] = version();
  json["command"] = job.track.command;
  json["date"] = summary.date;
  json["host"] = summary.host;
  json["settings"] = stereo_settings(job);
  json["chosen"] = {{"prefilter", summary.options.prefilter.value_or(0)},
                    {"subset", summary.options.refine.subset},
                    {"order_between_cameras", summary.order_between_cameras}};
  json["reference"] = summary.frames.empty() ? "" : summary.frames.front().left;
  json["rig"] = rig_json(summary.rig);
  json["rig_correction"] = correction_json(summary.rig_correction);
  json["pairing"] = summary.pairing.empty() ? Json(nullptr) : Json(summary.pairing);
  json["image"] = {{"width", summary.image.width}, {"height", summary.image.height}};
  json["gauge_px"] = summary.gauge;
  json["gauge_mm"] = summary.gauge_mm;
  json["device"] = summary.device;
  json["device_reason"] = summary.device_reason;
  json["kernels"] = summary.kernels;
  json["points"] = summary.points;
  json["length_unit"] = "mm";
  json["frames_drawn"] = summary.frames_drawn;
  json["interrupted"] = summary.interrupted;
  const StageSeconds& s = summary.seconds;
  json["seconds"] = {{"load", s.load},
                     {"prepare", s.prepare},
                     {"search", s.search},
                     {"refine", s.refine},
                     {"geometry", summary.geometry_seconds},
                     {"strain", s.strain},
                     {"write", s.write},
                     {"total", s.total}};
  json["frames"] = Json::array();
  if (state != RunState::running)  // while the run lasts, frames are only counted
    for (const StereoFrameSummary& frame : summary.frames) json["frames"].push_back(describe_pair(frame));
  return dump(json, 2) + "\n";
}

}  // namespace dic::run
