#pragma once

#include <array>
#include <dic/camera.hpp>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

/// The parts that the files of one and of several cameras have in common.
namespace dic::camera {

using Json = nlohmann::ordered_json;

/// Throws a UsageError; the reader of the file adds its name.
[[noreturn]] void refuse(const std::string& problem);

const Json& member(const Json& object, const char* key);
/// A finite number.
double number(const Json& value, const std::string& key);
int whole_number(const Json& object, const char* key);
/// A matrix of three rows of three numbers.
std::array<double, 9> matrix(const Json& value, const char* key);
/// Refuses unknown keys, so that a misspelled parameter does not become 0.
void require_known_keys(const Json& object, std::initializer_list<const char*> known);
/// Refuses files of another version of the format. version: the key that marks the format.
void require_version(const Json& object, const char* key, int version);

Lens parse_lens(const Json& object);
/// Every parameter; the skew only if there is one, so that earlier versions of dic read the file.
Json lens_json(const Lens& lens);
/// Three rows of three numbers.
Json matrix_json(const std::array<double, 9>& matrix);

/// Calls `read`, and adds to its UsageError the name of the file. what: "camera" or "calibration".
void read_named(const std::filesystem::path& path, const char* what, const std::function<void()>& read);

}  // namespace dic::camera
