#pragma once

#include <dic/export.hpp>
#include <filesystem>
#include <system_error>

namespace dic::core {

/// A file that is written under a unique temporary name beside its final place and renamed when it is
/// complete. If the final name is a symbolic link, its target is replaced and the link stays. Devices, pipes
/// and folders are never replaced.
class NewFile {
 public:
  /// Creates the empty temporary file. On failure, `error` says why, and the object must not be used.
  NewFile(const std::filesystem::path& path, std::error_code& error);
  /// Removes the temporary file unless it was committed.
  DIC_INTERNAL_API ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }
  /// Renames the temporary file to its final name.
  void commit(std::error_code& error);

  /// True for names of temporary files, which a killed run leaves behind.
  static bool is_temporary(const std::filesystem::path& name);

 private:
  std::filesystem::path target_, temporary_;
};

/// A unique file name for use beside a user's files: ".dic-", 16 random hexadecimal digits and the ending.
std::filesystem::path unique_name(const char* ending);
/// True for names that `unique_name` creates with this ending.
bool is_unique_name(const std::filesystem::path& name, const char* ending);

}  // namespace dic::core
