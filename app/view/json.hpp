#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace dic::app {

using Json = nlohmann::ordered_json;

/// Compact. Names of files need not be valid UTF-8; JSON must be. NaN becomes null.
inline std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dic::app
