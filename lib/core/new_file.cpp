#include "core/new_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <random>
#include <string>
#include <string_view>

namespace dic::core {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = ".dic-";
constexpr std::size_t kDigits = 16;
constexpr const char* kEnding = ".part";
constexpr int kAttempts = 10;  // names that are tried; the first is almost always free

/// The path that is replaced: the target of a symbolic link, otherwise the path itself.
fs::path target_of(const fs::path& path, std::error_code& error) {
  fs::path target = path;
  if (fs::is_symlink(fs::symlink_status(path, error))) target = fs::weakly_canonical(path, error);
  if (error == std::errc::no_such_file_or_directory) error.clear();
  if (error) return path;
  const fs::file_status there = fs::status(target, error);
  if (there.type() == fs::file_type::not_found) error.clear();
  if (!error && fs::exists(there) && !fs::is_regular_file(there))
    error = std::make_error_code(fs::is_directory(there) ? std::errc::is_a_directory
                                                         : std::errc::operation_not_permitted);
  return target;
}

}  // namespace

fs::path unique_name(const char* ending) {
  thread_local std::random_device random;
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x%08x", random(), random());
  return std::string(kPrefix) + digits + ending;
}

bool is_unique_name(const fs::path& name, const char* ending) {
  const std::string text = name.string();
  if (!text.starts_with(kPrefix) || !text.ends_with(ending)) return false;
  if (text.size() != kPrefix.size() + kDigits + std::string_view(ending).size()) return false;
  const std::string digits = text.substr(kPrefix.size(), kDigits);
  return digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

bool NewFile::is_temporary(const fs::path& name) { return is_unique_name(name, kEnding); }

NewFile::NewFile(const fs::path& path, std::error_code& error) : target_(target_of(path, error)) {
  if (!error && path.native().empty()) error = std::make_error_code(std::errc::no_such_file_or_directory);
  for (int attempt = 0; !error && temporary_.empty() && attempt < kAttempts; ++attempt) {
    const fs::path name = target_.parent_path() / unique_name(kEnding);
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (file >= 0) {
      ::close(file);
      temporary_ = name;
    } else if (errno != EEXIST || attempt + 1 == kAttempts) {
      error.assign(errno, std::generic_category());
    }
  }
}

NewFile::~NewFile() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void NewFile::commit(std::error_code& error) {
  fs::rename(temporary_, target_, error);
  if (!error) temporary_.clear();
}

}  // namespace dic::core
