#include <dic/error.hpp>
#include <fstream>
#include <sstream>

#include "commands.hpp"

namespace dic::app {

std::string read_text(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  if (!stream || !(text << stream.rdbuf()))
    throw FileError("Cannot read " + file + ": check its name and its rights.");
  return text.str();
}

}  // namespace dic::app
