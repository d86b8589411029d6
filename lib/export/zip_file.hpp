#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/pending_file.hpp"

namespace dic::exporting {

/// A ZIP archive that is written front to back, its members as they are (method "stored"), of any size
/// (ZIP64).
class ZipFile {
 public:
  explicit ZipFile(const std::filesystem::path& path) : file_(path) {}

  /// Begins a member, name in ASCII; what is written until the next one belongs to it.
  void begin(const std::string& name);
  void write(std::string_view bytes);
  void commit();

 private:
  struct Member {
    std::string name;
    std::uint64_t offset = 0, size = 0;
    std::uint32_t crc = 0;
  };

  void end_member();
  void put(const std::string& bytes);

  PendingText file_;
  std::uint64_t position_ = 0;
  bool in_member_ = false;
  std::vector<Member> members_;
};

}  // namespace dic::exporting
