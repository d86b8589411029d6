#include <cstdint>
#include <dic/error.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "commands.hpp"

namespace dic::app {

std::string read_text(const std::string& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error))
    throw FileError("Cannot read " + file + ": it is no file (" +
                    (error ? error.message() : "a folder or a pipe") + ").");
  constexpr std::uintmax_t most = std::uintmax_t{256} << 20;  // bytes
  if (std::filesystem::file_size(file, error) > most)
    throw FileError("Cannot read " + file + ": it has more than " + std::to_string(most >> 20) + " MiB.");
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf()))
    throw FileError("Cannot read " + file + ": check its name and permissions.");
  return text.str();
}

}  // namespace dic::app
