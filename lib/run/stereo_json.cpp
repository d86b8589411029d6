#include "run/stereo_json.hpp"

#include <algorithm>
#include <cmath>
#include <dic/info.hpp>
#include <nlohmann/json.hpp>
#include <numbers>

#include "run/run_json.hpp"

namespace dic::run {
namespace {

using Json = nlohmann::ordered_json;

Json settings(const StereoJob& job) {
  Json json = Json::parse(settings_json(job.track));
  for (const char* name :
       {"camera", "global", "global_resolution", "noise_floor", "scale", "fps", "times", "max_memory"})
    json.erase(name);
  json["left"] = json["frames"];
  json.erase("frames");
  json["right"] = job.right;
  json["calibration"] = job.calibration.string();
  json["axes"] = to_string(job.options.axes);
  json["axes_points"] = nullptr;
  if (const auto& points = job.options.axes_points)
    for (const Roi::Vertex& point : *points) json["axes_points"].push_back({point.x, point.y});
  json["remove_rigid_motion"] = job.options.remove_rigid_motion;
  json["correct_rig"] = job.options.correct_rig;
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

Json frame_json(const StereoFrameSummary& frame) {
  Json json;
  json["file"] = frame.left;
  json["right_file"] = frame.right;
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

/// File names need not be valid UTF-8; JSON must be.
std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

std::string stereo_settings_json(const StereoJob& job) { return dump(settings(job), -1); }

std::string stereo_run_json(const StereoJob& job, const StereoSummary& summary) {
  Json json;
  json["state"] = to_string(summary.interrupted ? RunState::interrupted : RunState::complete);
  json["version"] = version();
  json["command"] = job.track.command;
  json["date"] = summary.date;
  json["host"] = summary.host;
  json["settings"] = settings(job);
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
  json["seconds"] = {{"load", s.load},     {"prepare", s.prepare}, {"search", s.search}, {"refine", s.refine},
                     {"strain", s.strain}, {"write", s.write},     {"total", s.total}};
  json["frames"] = Json::array();
  for (const StereoFrameSummary& frame : summary.frames) json["frames"].push_back(frame_json(frame));
  return dump(json, 2) + "\n";
}

}  // namespace dic::run
