#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

namespace dic {

/// A file in memory with the bytes of the fuzzer, for readers that take a name.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const std::uint8_t> bytes) : file_(memfd_create("input", MFD_CLOEXEC)) {
    if (file_ < 0 || ::write(file_, bytes.data(), bytes.size()) != std::ssize(bytes)) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

/// What must hold whatever the input is; else the fuzzer reports a crash.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace dic
