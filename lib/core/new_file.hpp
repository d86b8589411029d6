#pragma once

#include <filesystem>
#include <system_error>

namespace dic {

/// A file that is written beside its final place under a name that nothing else has, and renamed when it is
/// whole. Where the final name is a symbolic link, the file behind it is replaced and the link stays.
/// Devices, pipes and folders are never replaced.
class NewFile {
 public:
  /// Creates the temporary file, empty. `error` says why it cannot be: then the object must not be used.
  NewFile(const std::filesystem::path& path, std::error_code& error);
  /// Removes the temporary file unless it was committed.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::filesystem::path& temporary() const { return temporary_; }
  /// Renames into place.
  void commit(std::error_code& error);

  /// True for a name of temporary files: a run that was killed left it.
  static bool is_temporary(const std::filesystem::path& name);

 private:
  std::filesystem::path target_, temporary_;
};

/// ".dic-" with 16 random hexadecimal digits and the ending: a name beside a user's files that nobody else
/// has.
std::filesystem::path unique_name(const char* ending);
/// True for names that `unique_name` makes with this ending.
bool is_unique_name(const std::filesystem::path& name, const char* ending);

}  // namespace dic
