#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dic::run {

using Json = nlohmann::ordered_json;

/// Reads a number; null, which stands for a missing number, becomes NaN.
double number(const Json& json, const std::string& name);

/// File names need not be valid UTF-8; JSON must be. indent: -1 is a single line.
std::string dump(const Json& json, int indent = -1);

}  // namespace dic::run
