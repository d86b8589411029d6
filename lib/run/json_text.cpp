#include "run/json_text.hpp"

#include <cmath>

namespace dic::run {

double number(const Json& json, const std::string& name) {
  const Json& value = json.at(name);
  return value.is_null() ? NAN : value.get<double>();
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace dic::run
