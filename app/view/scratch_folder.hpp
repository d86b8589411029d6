#pragma once

#include <stdlib.h>

#include <dic/error.hpp>
#include <filesystem>
#include <string>

namespace dic::app {

/// A folder for files of this program alone, which only its user can read. It ends with the object.
class ScratchFolder {
 public:
  /// Throws FileError.
  ScratchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dic-view-XXXXXX").string();
    if (!mkdtemp(name.data())) throw FileError("No folder could be made in the folder for temporary files.");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace dic::app
