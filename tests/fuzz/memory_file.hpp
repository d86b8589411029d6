#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

namespace dic {

/// A file with the bytes of the fuzzer, in memory, for readers that take a name. One at a time. (HDF5 does
/// not open those of memfd_create.)
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes)
      : path_("/dev/shm/dic_fuzz_" + std::to_string(getpid())) {
    const int file = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (file < 0 || ::write(file, bytes.data(), bytes.size()) != std::ssize(bytes)) std::abort();
    ::close(file);
  }
  ~MemoryFile() { ::unlink(path_.c_str()); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// What must hold whatever the input is; else the fuzzer reports a crash.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace dic
