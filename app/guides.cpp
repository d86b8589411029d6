#include <filesystem>
#include <string>
#include <system_error>

#include "commands.hpp"

namespace dic::app {

std::string guide(const std::string& page) {
  std::error_code unknown;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", unknown);
  const auto installed = (program.parent_path() / DIC_DOCS_FROM_PROGRAM / page).lexically_normal();
  if (!unknown && std::filesystem::exists(installed, unknown)) return installed.string();
  return "docs/" + page;
}

}  // namespace dic::app
