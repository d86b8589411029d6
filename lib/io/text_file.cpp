#include "io/text_file.hpp"

#include <array>
#include <cstdint>
#include <dic/error.hpp>
#include <fstream>
#include <string_view>
#include <utility>

namespace dic::io {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostBytes = std::uintmax_t{256} << 20;

[[noreturn]] void refuse(const fs::path& path, const std::string& why) {
  throw FileError("'" + path.string() + "' cannot be read: " + why + ".");
}

std::string read_whole_file(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) refuse(path, "there is no such file; check its name");
  if (fs::is_directory(status)) refuse(path, "it is a folder; name a text file");
  if (!error && !fs::is_regular_file(status))
    refuse(path, "it is a pipe or a device; write the text to a file and name that");
  const std::uintmax_t size = error ? 0 : fs::file_size(path, error);
  if (size > kMostBytes)
    refuse(path, "it has more than " + std::to_string(kMostBytes >> 20) + " MiB, too much for a table");
  std::string bytes(size, '\0');
  std::ifstream stream(path, std::ios::binary);
  if (error || !stream || !stream.read(bytes.data(), static_cast<std::streamsize>(size)))
    refuse(path, "check its name and permissions");
  return bytes;
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12), put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18), put(0x80 | (code >> 12 & 0x3F)), put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

/// bytes: UTF-16 with the byte order mark.
std::string from_utf16(std::string_view bytes) {
  const bool is_big = static_cast<unsigned char>(bytes[0]) == 0xFE;
  const auto unit = [&](std::size_t k) -> std::uint32_t {
    const auto low = static_cast<unsigned char>(bytes[k + (is_big ? 1 : 0)]);
    const auto high = static_cast<unsigned char>(bytes[k + (is_big ? 0 : 1)]);
    return std::uint32_t{high} << 8 | low;
  };
  std::string text;
  for (std::size_t k = 2; k + 1 < bytes.size(); k += 2) {
    std::uint32_t code = unit(k);
    const bool is_first_of_two = code >= 0xD800 && code < 0xDC00 && k + 3 < bytes.size();
    if (is_first_of_two) code = 0x10000 + ((code - 0xD800) << 10) + ((unit(k += 2) - 0xDC00) & 0x3FF);
    append_utf8(text, code);
  }
  return text;
}

/// Number of bytes of the UTF-8 character at the start of `text`; 0 if these bytes are none.
std::size_t utf8_length(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t length = first < 0x80 ? 1 : first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  if (first > 0xF4 || length > text.size()) return 0;
  for (std::size_t k = 1; k < length; ++k)
    if ((static_cast<unsigned char>(text[k]) & 0xC0) != 0x80) return 0;
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string from_windows_1252(std::string_view bytes) {
  // The characters of 0x80 to 0x9F; those of 0xA0 to 0xFF have their own numbers.
  constexpr std::array<std::uint16_t, 32> upper = {
      0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6,  0x2030, 0x160,
      0x2039, 0x152,  0x8D,   0x17D,  0x8F,   0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
      0x2013, 0x2014, 0x2DC,  0x2122, 0x161,  0x203A, 0x153,  0x9D,   0x17E,  0x178};
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    append_utf8(text, byte >= 0x80 && byte < 0xA0 ? upper[byte - 0x80] : byte);
  }
  return text;
}

}  // namespace

std::string read_text_file(const fs::path& path) { return decoded_text(read_whole_file(path), path); }

std::string decoded_text(std::string bytes, const fs::path& path) {
  std::string text = std::move(bytes);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) text = from_utf16(text);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  if (text.find('\0') != std::string::npos)
    refuse(path, "it holds NUL, which no text has; save it as text in UTF-8");
  return is_utf8(text) ? text : from_windows_1252(text);
}

}  // namespace dic::io
