#include <algorithm>
#include <cmath>
#include <dic/camera.hpp>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "camera/lens.hpp"

namespace dic {
namespace {

using camera::kLensParameters;
using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

/// Throws a UsageError; the caller adds the name of the file.
[[noreturn]] void refuse(const std::string& problem) { throw UsageError(problem); }

const Json& member(const Json& object, const char* key) {
  if (!object.contains(key)) refuse("the key \"" + std::string(key) + "\" is missing");
  return object[key];
}

double number(const Json& value, const std::string& key) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse("\"" + key + "\" must be a number");
  return value.get<double>();
}

int whole_number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 || value.get<std::int64_t>() > 1 << 20)
    refuse("\"" + std::string(key) + "\" must be a whole number");
  return value.get<int>();
}

/// Refuses unknown keys, so that a misspelled parameter does not become 0.
template <typename Keys>
void require_known_keys(const Json& object, const Keys& known) {
  for (const auto& [key, value] : object.items())
    if (!known(key)) refuse("there is no key \"" + key + "\"");
}

Lens parse_lens(const Json& object) {
  if (!object.is_object()) refuse("\"lens\" must be an object");
  require_known_keys(object, [](const std::string& key) {
    return std::ranges::any_of(kLensParameters, [&](const auto& parameter) { return key == parameter.name; });
  });
  Lens lens;
  for (std::size_t k = 0; k < kLensParameters.size(); ++k) {
    const auto [key, value] = kLensParameters[k];
    const bool is_required = k < camera::kPinholeParameters;  // missing others are 0
    if (is_required || object.contains(key)) lens.*value = number(member(object, key), key);
  }
  return lens;
}

SpecimenPlane parse_plane(const Json& object) {
  if (!object.is_object()) refuse("\"plane\" must be an object");
  require_known_keys(object, [](const std::string& key) { return key == "px_from_mm"; });
  const Json& rows = member(object, "px_from_mm");
  SpecimenPlane plane;
  const auto is_row = [](const Json& row) { return row.is_array() && row.size() == 3; };
  if (!is_row(rows) || !std::all_of(rows.begin(), rows.end(), is_row))
    refuse("\"px_from_mm\" must be three rows of three numbers");
  for (std::size_t k = 0; k < 9; ++k) plane.px_from_mm[k] = number(rows[k / 3][k % 3], "px_from_mm");
  return plane;
}

CameraParameters parse_parameters(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("dic_camera"))
    refuse("it is not JSON with the key \"dic_camera\"; dic calibrate writes such files");
  if (const int version = whole_number(json, "dic_camera"); version != kVersion)
    refuse("it has version " + std::to_string(version) + ", but this dic reads version " +
           std::to_string(kVersion));
  require_known_keys(json, [](const std::string& key) {
    return key == "dic_camera" || key == "image_width" || key == "image_height" || key == "lens" ||
           key == "plane" || key == "calibration";
  });
  CameraParameters camera;
  camera.image = {whole_number(json, "image_width"), whole_number(json, "image_height")};
  if (json.contains("lens")) camera.lens = parse_lens(json["lens"]);
  if (json.contains("plane")) camera.plane = parse_plane(json["plane"]);
  return camera;
}

Json lens_json(const Lens& lens) {
  Json json;
  for (const auto& [key, value] : kLensParameters) json[key] = lens.*value;
  return json;
}

Json plane_json(const SpecimenPlane& plane) {
  const auto& h = plane.px_from_mm;
  return {{"px_from_mm", {{h[0], h[1], h[2]}, {h[3], h[4], h[5]}, {h[6], h[7], h[8]}}}};
}

}  // namespace

std::string camera_json(const CameraParameters& camera, const std::string& calibration) {
  Json json;
  json["dic_camera"] = kVersion;
  json["image_width"] = camera.image.width;
  json["image_height"] = camera.image.height;
  if (camera.lens) json["lens"] = lens_json(*camera.lens);
  if (camera.plane) json["plane"] = plane_json(*camera.plane);
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
  try {
    return parse_camera(text);
  } catch (const UsageError& error) {
    const std::string problem = error.what();
    throw FileError("The camera " + path.string() + " cannot be used: " + problem +
                    (problem.ends_with('.') ? "" : "."));
  }
}

void write_camera(const std::filesystem::path& path, const CameraParameters& camera,
                  const std::string& calibration) {
  write_text_file(path, camera_json(camera, calibration));
}

}  // namespace dic
