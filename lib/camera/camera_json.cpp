#include "camera/camera_json.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <dic/error.hpp>

#include "camera/lens.hpp"

namespace dic::camera {

void refuse(const std::string& problem) { throw UsageError(problem); }

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

std::array<double, 9> matrix(const Json& value, const char* key) {
  const auto is_row = [](const Json& row) { return row.is_array() && row.size() == 3; };
  if (!is_row(value) || !std::all_of(value.begin(), value.end(), is_row))
    refuse("\"" + std::string(key) + "\" must be three rows of three numbers");
  std::array<double, 9> numbers{};
  for (std::size_t k = 0; k < 9; ++k) numbers[k] = number(value[k / 3][k % 3], key);
  return numbers;
}

void require_known_keys(const Json& object, std::initializer_list<const char*> known) {
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end()) refuse("there is no key \"" + key + "\"");
}

void require_version(const Json& object, const char* key, int version) {
  if (const int found = whole_number(object, key); found != version)
    refuse("it has version " + std::to_string(found) + ", but this dic reads version " +
           std::to_string(version));
}

Lens parse_lens(const Json& object) {
  if (!object.is_object()) refuse("\"lens\" must be an object");
  for (const auto& [key, value] : object.items())
    if (std::ranges::none_of(kLensParameters, [&](const auto& parameter) { return key == parameter.name; }))
      refuse("there is no key \"" + key + "\"");
  Lens lens;
  for (std::size_t k = 0; k < kLensParameters.size(); ++k) {
    const auto [key, value] = kLensParameters[k];
    const bool is_required = k < kPinholeParameters;  // missing others are 0
    if (is_required || object.contains(key)) lens.*value = number(member(object, key), key);
  }
  return lens;
}

Json lens_json(const Lens& lens) {
  Json json;
  for (const auto& [key, value] : kLensParameters)
    if (value != &Lens::skew || lens.skew != 0) json[key] = lens.*value;
  return json;
}

Json matrix_json(const std::array<double, 9>& m) {
  return {{m[0], m[1], m[2]}, {m[3], m[4], m[5]}, {m[6], m[7], m[8]}};
}

void read_named(const std::filesystem::path& path, const char* what, const std::function<void()>& read) {
  try {
    read();
  } catch (const UsageError& error) {
    const std::string problem = error.what();
    throw FileError("The " + std::string(what) + " " + path.string() + " cannot be used: " + problem +
                    (problem.ends_with('.') ? "" : "."));
  }
}

}  // namespace dic::camera
