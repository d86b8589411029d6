#include "core/device_name.hpp"

#include <charconv>
#include <dic/error.hpp>
#include <string_view>

namespace dic::core {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  throw UsageError("\"" + text +
                   "\" is not a device: use cpu, cuda, cuda:N, cuda:N,M, cuda:all, opencl or opencl:N.");
}

int parse_ordinal(std::string_view number, const std::string& text) {
  int ordinal = -1;
  const auto [stop, error] = std::from_chars(number.data(), number.data() + number.size(), ordinal);
  if (error != std::errc() || stop != number.data() + number.size() || ordinal < 0) refuse(text);
  return ordinal;
}

}  // namespace

DeviceName parse_device(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string backend = text.substr(0, colon);
  if (backend != "cuda" && backend != "opencl" && text != "cpu") refuse(text);
  if (colon == std::string::npos) return {backend, {0}};
  std::string_view list = std::string_view(text).substr(colon + 1);
  if (list == "all") return {backend, {}};
  DeviceName name{backend, {}};
  while (true) {
    const std::size_t comma = list.find(',');
    name.ordinals.push_back(parse_ordinal(list.substr(0, comma), text));
    if (comma == std::string_view::npos) return name;
    list.remove_prefix(comma + 1);
  }
}

DeviceName parse_tracking_device(const std::string& text) {
  const DeviceName name = parse_device(text);
  if (name.backend == "opencl")
    throw UsageError("\"" + text +
                     "\" cannot track or refine: use cpu or cuda; OpenCL is for dic match and correlations.");
  return name;
}

}  // namespace dic::core
