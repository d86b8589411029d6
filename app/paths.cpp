#include <dic/error.hpp>
#include <filesystem>
#include <system_error>

#include "commands.hpp"

namespace dic::app {

void refuse_input(const std::string& option, const std::filesystem::path& output,
                  const std::vector<std::filesystem::path>& inputs) {
  std::error_code error;
  if (!std::filesystem::exists(output, error)) return;
  for (const auto& input : inputs)
    if (std::filesystem::equivalent(output, input, error))
      throw UsageError(option + " would replace " + output.string() +
                       ", which is read: choose another name.");
}

bool is_result(const std::filesystem::path& path) {
  std::error_code unknown;
  return path.extension() == ".vtkhdf" || std::filesystem::exists(path / "result.vtkhdf", unknown);
}

}  // namespace dic::app
