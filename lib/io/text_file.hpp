#pragma once

#include <filesystem>
#include <string>

namespace dic::io {

/// Reads a text file that a user names, as UTF-8 without a byte order mark: UTF-16 with a mark (a
/// spreadsheet's "Unicode text") is converted; bytes that are not UTF-8 count as Windows-1252. Throws
/// FileError, also for pipes and devices, which may never end, for more than 256 MiB, and for files that hold
/// NUL.
std::string read_text_file(const std::filesystem::path& path);

/// The text of such a file from its bytes. path: for the message of the FileError about NUL.
std::string decoded_text(std::string bytes, const std::filesystem::path& path);

}  // namespace dic::io
