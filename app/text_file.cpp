#include <cstdint>
#include <cstdio>
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

std::string printable(const std::string& text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  std::string shown;
  for (std::size_t k = 0; k < text.size(); ++k) {
    const bool is_two_bytes = byte(k) == 0xc2 && byte(k + 1) >= 0x80 && byte(k + 1) < 0xa0;  // UTF-8
    if (is_two_bytes) ++k;
    if (byte(k) >= 0x20 && byte(k) != 0x7f && !is_two_bytes) {
      shown += text[k];
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, is_two_bytes ? "\\u00%02x" : "\\x%02x", byte(k));
    shown += byte(k) == '\n' ? "\\n" : byte(k) == '\t' ? "\\t" : byte(k) == '\r' ? "\\r" : code;
  }
  return shown;
}

}  // namespace dic::app
