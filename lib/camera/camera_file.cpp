#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>

#include "camera/camera_json.hpp"

namespace dic {
namespace {

using camera::Json;

constexpr int kVersion = 1;

SpecimenPlane parse_plane(const Json& object) {
  if (!object.is_object()) camera::refuse("\"plane\" must be an object");
  camera::require_known_keys(object, {"px_from_mm"});
  return {camera::matrix(camera::member(object, "px_from_mm"), "px_from_mm")};
}

CameraParameters parse_parameters(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_object() && json.contains("dic_stereo"))
    camera::refuse("it is the calibration of two cameras, for measuring in 3-D with left and right images");
  if (!json.is_object() || !json.contains("dic_camera"))
    camera::refuse("it is not JSON with the key \"dic_camera\"; dic calibrate writes such files");
  camera::require_version(json, "dic_camera", kVersion);
  camera::require_known_keys(json,
                             {"dic_camera", "image_width", "image_height", "lens", "plane", "calibration"});
  CameraParameters camera;
  camera.image = {camera::whole_number(json, "image_width"), camera::whole_number(json, "image_height")};
  if (json.contains("lens")) camera.lens = camera::parse_lens(json["lens"]);
  if (json.contains("plane")) camera.plane = parse_plane(json["plane"]);
  return camera;
}

}  // namespace

std::string camera_json(const CameraParameters& camera, const std::string& calibration) {
  Json json;
  json["dic_camera"] = kVersion;
  json["image_width"] = camera.image.width;
  json["image_height"] = camera.image.height;
  if (camera.lens) json["lens"] = camera::lens_json(*camera.lens);
  if (camera.plane) json["plane"] = {{"px_from_mm", camera::matrix_json(camera.plane->px_from_mm)}};
  if (!calibration.empty()) json["calibration"] = Json::parse(calibration);
  return json.dump(2) + "\n";
}

Camera parse_camera(const std::string& text) { return Camera(parse_parameters(text)); }

Camera read_camera(const std::filesystem::path& path) {
  std::error_code unknown;
  const bool is_file = std::filesystem::is_regular_file(path, unknown);  // a pipe could block for ever
  std::ifstream stream;
  if (is_file) stream.open(path, std::ios::binary);
  std::string text;
  if (!is_file || !std::getline(stream, text, '\0'))
    throw FileError("The camera " + path.string() + " cannot be read: check its name and permissions.");
  std::optional<Camera> camera;
  camera::read_named(path, "camera", [&] { camera = parse_camera(text); });
  return *camera;
}

void write_camera(const std::filesystem::path& path, const CameraParameters& camera,
                  const std::string& calibration) {
  write_text_file(path, camera_json(camera, calibration));
}

}  // namespace dic
