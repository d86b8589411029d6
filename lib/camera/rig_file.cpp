#include <cmath>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <utility>

#include "camera/camera_json.hpp"
#include "camera/rig.hpp"
#include "io/text_file.hpp"

namespace dic {
namespace {

using camera::Json;

constexpr int kRigVersion = 1;

CameraParameters parse_one(const Json& object, const char* key) {
  const Json& json = camera::member(object, key);
  if (!json.is_object()) camera::refuse("\"" + std::string(key) + "\" must be an object");
  camera::require_known_keys(json, {"image_width", "image_height", "lens"});
  CameraParameters camera;
  camera.image = {camera::whole_number(json, "image_width"), camera::whole_number(json, "image_height")};
  camera.lens = camera::parse_lens(camera::member(json, "lens"));
  return camera;
}

std::vector<double> parse_covariance(const Json& object) {
  if (!object.is_object()) camera::refuse("\"covariance\" must be an object");
  camera::require_known_keys(object, {"parameters", "matrix"});
  const std::vector<std::string> names = rig_parameter_names(2);
  if (camera::member(object, "parameters") != Json(names))
    camera::refuse("the \"parameters\" of its covariance are not those of this version");
  const Json& rows = camera::member(object, "matrix");
  std::vector<double> values;
  if (!rows.is_array()) camera::refuse("\"matrix\" must be an array of rows");
  for (const Json& row : rows) {
    if (!row.is_array() || row.size() != names.size())
      camera::refuse("\"matrix\" must have a row of numbers for each of its parameters");
    for (const Json& element : row) values.push_back(camera::number(element, "matrix"));
  }
  if (values.size() != names.size() * names.size())
    camera::refuse("\"matrix\" must have a row of numbers for each of its parameters");
  return values;
}

CameraRig parse_stereo(const Json& json) {
  camera::require_version(json, "dic_stereo", kRigVersion);
  camera::require_known_keys(json, {"dic_stereo", "left", "right", "rotation", "translation_mm",
                                    "epipolar_px", "covariance", "calibration"});
  CameraRig rig;
  rig.cameras.resize(2);
  rig.cameras[0].camera = parse_one(json, "left");
  rig.cameras[1].camera = parse_one(json, "right");
  rig.cameras[1].rotation = camera::matrix(camera::member(json, "rotation"), "rotation");
  const Json& translation = camera::member(json, "translation_mm");
  if (!translation.is_array() || translation.size() != 3)
    camera::refuse("\"translation_mm\" must be three numbers");
  for (std::size_t k = 0; k < 3; ++k)
    rig.cameras[1].translation_mm[k] = camera::number(translation[k], "translation_mm");
  if (json.contains("epipolar_px") && !json["epipolar_px"].is_null())
    rig.epipolar_px = camera::number(json["epipolar_px"], "epipolar_px");
  if (json.contains("covariance")) rig.covariance = parse_covariance(json["covariance"]);
  return rig;
}

Json one_json(const CameraParameters& camera) {
  return {{"image_width", camera.image.width},
          {"image_height", camera.image.height},
          {"lens", camera::lens_json(*camera.lens)}};
}

Json covariance_json(const std::vector<double>& covariance) {
  const std::vector<std::string> names = rig_parameter_names(2);
  Json rows = Json::array();
  const auto n = static_cast<std::ptrdiff_t>(names.size());
  for (auto row = covariance.begin(); row != covariance.end(); row += n)
    rows.push_back(std::vector<double>(row, row + n));
  return {{"parameters", names}, {"matrix", std::move(rows)}};
}

}  // namespace

CameraRig camera::parse_rig(const std::string& text, Size image) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("dic_camera"))
    refuse("it is the calibration of one camera; calibrate both together, from left and right images");
  const bool is_ours = json.is_object() && json.contains("dic_stereo");
  CameraRig rig = is_ours ? parse_stereo(json) : import_rig(text, image);
  if (const auto problems = rig.validate(); !problems.empty()) refuse(problems.front());
  return rig;
}

CameraRig read_camera_rig(const std::filesystem::path& path, Size image) {
  CameraRig rig;
  const std::string text = io::read_text_file(path);
  camera::read_named(path, "calibration", [&] { rig = camera::parse_rig(text, image); });
  return rig;
}

std::string camera_rig_json(const CameraRig& rig, const std::string& calibration) {
  if (const auto problems = rig.validate(); !problems.empty()) throw UsageError(problems.front());
  if (rig.cameras.size() != 2) throw UsageError("A stereo file holds two cameras, not more.");
  Json json;
  json["dic_stereo"] = kRigVersion;
  json["left"] = one_json(rig.cameras[0].camera);
  json["right"] = one_json(rig.cameras[1].camera);
  json["rotation"] = camera::matrix_json(rig.cameras[1].rotation);
  json["translation_mm"] = rig.cameras[1].translation_mm;
  json["epipolar_px"] = std::isnan(rig.epipolar_px) ? Json() : Json(rig.epipolar_px);
  if (!rig.covariance.empty()) json["covariance"] = covariance_json(rig.covariance);
  if (!calibration.empty()) json["calibration"] = Json::parse(calibration);
  return json.dump(2) + "\n";
}

void write_camera_rig(const std::filesystem::path& path, const CameraRig& rig,
                      const std::string& calibration) {
  write_text_file(path, camera_rig_json(rig, calibration));
}

}  // namespace dic
