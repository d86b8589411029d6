#pragma once

#include <cstdlib>
#include <dic/error.hpp>
#include <filesystem>
#include <string>

namespace dic::bench {

/// A new folder that is removed with its contents. Throws FileError.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "dic-bench-XXXXXX").string();
    if (!mkdtemp(name.data())) throw FileError("A temporary folder like " + name + " cannot be made.");
    path = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path path;
};

}  // namespace dic::bench
