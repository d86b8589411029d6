#include <dic/calibrate.hpp>
#include <dic/info.hpp>
#include <nlohmann/json.hpp>

#include "camera/lens.hpp"

namespace dic {
namespace {

using Json = nlohmann::ordered_json;

Json target_json(const Target& target) {
  Json json = {{"pattern", to_string(target.pattern)},
               {"columns", target.columns},
               {"rows", target.rows},
               {"square_mm", target.square_mm}};
  if (target.pattern == TargetPattern::charuco) {
    json["marker_mm"] = target.marker_mm;
    json["dictionary"] = target.dictionary;
  }
  return json;
}

Json deviations_json(const Lens& deviations) {
  Json json;
  for (std::size_t k = 0; k < camera::kEstimableParameters; ++k) {
    const auto& [name, value] = camera::kLensParameters[k];
    json[name] = deviations.*value;
  }
  return json;
}

Json image_json(const CalibrationImage& image) {
  return {{"file", image.file},
          {"points", image.points.size()},
          {"rms_px", image.rms},
          {"problem", image.problem.empty() ? Json() : Json(image.problem)}};
}

Json plane_json(const PlaneFit& plane) {
  Json json = image_json(plane.image);
  json["rms_mm"] = plane.rms_mm;
  json["tilt_deg"] = plane.tilt_deg;
  json["distance_mm"] = plane.distance_mm;
  return json;
}

Json pair_json(const CalibrationPair& pair) {
  return {{"left", image_json(pair.left)},
          {"right", image_json(pair.right)},
          {"epipolar_px", pair.epipolar_px},
          {"problem", pair.problem.empty() ? Json() : Json(pair.problem)}};
}

// JSON must be valid UTF-8, but file names need not be.
std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string calibration_json(const StereoCalibration& calibration, const std::string& command) {
  Json json = {{"version", version()},
               {"command", command},
               {"target", target_json(calibration.target)},
               {"model", to_string(calibration.model)},
               {"rms_px", calibration.rms},
               {"coverage", calibration.coverage},
               {"angle_deg", calibration.angle_deg},
               {"baseline_mm", calibration.baseline_mm},
               {"target_error_mm", calibration.target_error_mm}};
  if (calibration.check_distance_mm > 0)
    json["check_distance"] = {{"measured_mm", calibration.check_distance_mm},
                              {"found_mm", calibration.found_distance_mm}};
  json["pairs"] = Json::array();
  for (const CalibrationPair& pair : calibration.pairs) json["pairs"].push_back(pair_json(pair));
  json["warnings"] = calibration.warnings;
  return text_of(json);
}

std::string calibration_json(const Calibration& calibration, const std::string& command) {
  Json json = {{"version", version()}, {"command", command}, {"target", target_json(calibration.target)}};
  if (calibration.deviations) {
    json["model"] = to_string(calibration.model);
    json["rms_px"] = calibration.rms;
    json["coverage"] = calibration.coverage;
    json["standard_deviations"] = deviations_json(*calibration.deviations);
    json["images"] = Json::array();
    for (const CalibrationImage& image : calibration.images) json["images"].push_back(image_json(image));
  }
  if (calibration.plane) json["plane"] = plane_json(*calibration.plane);
  json["warnings"] = calibration.warnings;
  return text_of(json);
}

}  // namespace dic
