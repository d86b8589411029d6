#include <algorithm>
#include <cstdlib>
#include <dic/visible_gpus.hpp>
#include <filesystem>
#include <fstream>

#include "core/device_name.hpp"

namespace dic {
namespace {

constexpr const char* kVisible = "CUDA_VISIBLE_DEVICES";

std::string model_of(const std::filesystem::path& gpu) {
  std::ifstream file(gpu / "information");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Model:")) return line;
  return "";
}

/// True where the driver says so. Among different ones, the first may be too old, and another one be chosen.
bool gpus_are_alike() {
  std::error_code unknown;
  std::optional<std::string> model;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", unknown)) {
    const std::string own = model_of(gpu.path());
    if (own.empty() || own != model.value_or(own)) return false;
    model = own;
  }
  return model.has_value();
}

}  // namespace

std::optional<std::vector<std::string>> visible_gpus() {
  const char* visible = std::getenv(kVisible);
  if (!visible) return std::nullopt;
  std::vector<std::string> gpus;
  const std::string text = visible;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    gpus.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return gpus;
}

void hide_unused_gpus(const std::string& device) {
  const bool takes_the_first = device == "auto" || device == "cuda";
  if (takes_the_first && !gpus_are_alike()) return;
  const core::DeviceName name = core::parse_device(takes_the_first ? "cuda:0" : device);
  if (name.backend != "cuda" || name.ordinals.empty()) return;
  const std::size_t needed = std::ranges::max(name.ordinals) + std::size_t{1};
  const auto seen = visible_gpus();
  const std::size_t count = seen ? std::min(needed, seen->size()) : needed;
  std::string list;
  for (std::size_t k = 0; k < count; ++k)
    list += (k == 0 ? "" : ",") + (seen ? (*seen)[k] : std::to_string(k));
  setenv(kVisible, list.c_str(), 1);
}

}  // namespace dic
