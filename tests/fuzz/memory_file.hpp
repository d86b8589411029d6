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

/// A file in memory with the fuzzer's bytes, for readers that take a file name. Only one may exist at a time.
/// (HDF5 does not open files of memfd_create.)
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

/// Checks a condition that must hold for every input; a violation is reported by the fuzzer as a crash.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace dic
