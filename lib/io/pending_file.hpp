#pragma once

#include <cstdio>
#include <dic/export.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/new_file.hpp"

namespace dic {

/// Throws the FileError of a file that cannot be written: its name, the reason, what to do.
[[noreturn]] DIC_INTERNAL_API void throw_cannot_write(const std::filesystem::path& path,
                                                      const std::string& reason);
/// The same for an error of the system (errno).
[[noreturn]] DIC_INTERNAL_API void throw_cannot_write(const std::filesystem::path& path, int error);

/// A file that is written under a temporary name beside its own and renamed when it is whole, so that a
/// failure leaves nothing half-written behind and an earlier file untouched; see NewFile.
class PendingFile {
 public:
  /// Creates the temporary file, empty. Throws FileError, also where `path` is a device, a pipe or a folder.
  DIC_INTERNAL_API explicit PendingFile(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& temporary() const { return file_->temporary(); }
  /// Renames into place. Throws FileError.
  DIC_INTERNAL_API void commit();

 private:
  std::filesystem::path path_;
  std::optional<core::NewFile> file_;  ///< removes what was written unless it was committed
};

/// Text that is written piece by piece into a PendingFile. Throws FileError wherever the system refuses.
class PendingText {
 public:
  DIC_INTERNAL_API explicit PendingText(std::filesystem::path path);

  const std::filesystem::path& path() const { return file_.path(); }
  DIC_INTERNAL_API void write(std::string_view text);
  DIC_INTERNAL_API void commit();

 private:
  struct Closer {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  PendingFile file_;
  std::unique_ptr<std::FILE, Closer> stream_;  // declared last: closed before the file is removed
};

}  // namespace dic
