#include "run/own_files.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <fstream>
#include <system_error>

#include "core/new_file.hpp"
#include "io/pending_file.hpp"

namespace dic::run {

namespace fs = std::filesystem;

namespace {

/// Writes a name as one line of a list, since frames may be named with a newline.
std::string line_of_name(const std::string& name) {
  std::string line;
  for (const char c : name) line += c == '\\' ? "\\\\" : c == '\n' ? "\\n" : std::string(1, c);
  return line + '\n';
}

std::string name_of(const std::string& line) {
  std::string name;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const bool is_escape = line[i] == '\\' && i + 1 < line.size();
    if (is_escape) ++i;
    name += is_escape && line[i] == 'n' ? '\n' : line[i];
  }
  return name;
}

bool stays_inside(const fs::path& folder, const fs::path& name) {
  const fs::path normal = name.lexically_normal();
  const bool is_below = !normal.empty() && normal.is_relative() && *normal.begin() != "..";
  return is_below && has_own_parents(folder, normal);
}

/// Writes all bytes at once, so that a killed process leaves no part of a line. Returns false if the system
/// refuses; errno says why.
bool append(int file, const std::string& bytes) {
  const ssize_t written = ::write(file, bytes.data(), bytes.size());
  if (written >= 0 && written < std::ssize(bytes)) errno = ENOSPC;
  return written == std::ssize(bytes);
}

/// False if a full disk has cut off the last line.
bool ends_with_a_line(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return size <= 0 || (::pread(file, &last, 1, size - 1) == 1 && last == '\n');
}

}  // namespace

void throw_not_writable(const fs::path& path, const std::string& reason) {
  throw FileError("Cannot write into " + path.string() + " (" + reason + "): choose another folder with -o.");
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() != fs::file_type::not_found;
}

bool is_regular(const fs::path& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::regular;
}

bool has_own_parents(const fs::path& folder, const fs::path& name) {
  fs::path parent = folder;
  for (const fs::path& part : name.parent_path()) {
    parent /= part;
    std::error_code ignored;
    const auto type = fs::symlink_status(parent, ignored).type();
    if (type == fs::file_type::not_found) return true;
    if (type != fs::file_type::directory) return false;
  }
  return true;
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw_not_writable(folder, error.message());
}

std::set<std::string> files_below(const fs::path& folder) {
  std::set<std::string> names;
  std::error_code ignored;
  for (fs::recursive_directory_iterator entry(folder, ignored), end; !ignored && entry != end;
       entry.increment(ignored))
    if (entry->is_regular_file(ignored) && !core::NewFile::is_temporary(entry->path().filename()))
      names.insert(entry->path().lexically_relative(folder).generic_string());
  return names;
}

std::vector<fs::path> temporary_files_in(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> found;
  for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (core::NewFile::is_temporary(entry->path().filename()) && is_regular(entry->path()))
      found.push_back(entry->path());
  return found;
}

std::set<std::string> read_names(const fs::path& list, const fs::path& folder) {
  std::set<std::string> names;
  std::ifstream stream(list);
  for (std::string line; std::getline(stream, line);) {
    const std::string name = name_of(line);
    if (stays_inside(folder, name)) names.insert(name);
  }
  return names;
}

void write_names(const fs::path& list, const std::set<std::string>& names) {
  std::string lines;
  for (const std::string& name : names) lines += line_of_name(name);
  write_text_file(list, lines);
}

void append_name(const fs::path& list, const std::string& name) {
  const int file = ::open(list.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666);
  const bool is_written =
      file >= 0 && append(file, (ends_with_a_line(file) ? "" : "\n") + line_of_name(name));
  const int reason = errno;
  if (file >= 0) ::close(file);
  if (!is_written) throw_cannot_write(list, reason);
}

}  // namespace dic::run
