#include "synth/sequence_folder.hpp"

#include <charconv>
#include <cstdio>
#include <dic/error.hpp>
#include <system_error>

namespace dic::synth {

namespace fs = std::filesystem;

std::string decimal(double value) {
  constexpr int kDigits = 12;
  char digits[40];
  const auto end =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::general, kDigits).ptr;
  return {digits, end};
}

std::string frame_name(int i) {
  char name[32];
  std::snprintf(name, sizeof name, "frame_%04d.png", i);
  return name;
}

void make_empty_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  const bool empty = !error && fs::is_empty(directory, error);
  if (error)
    throw FileError("'" + directory.string() + "' cannot be made (" + error.message() +
                    "); choose another folder.");
  if (!empty)
    throw FileError("'" + directory.string() + "' is not empty; choose another folder or empty it.");
}

}  // namespace dic::synth
