#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace dic::run {

/// From which the next frame is measured: a file with two places, written in turn, so that one of them is
/// whole whenever the process ends.
class StateFile {
 public:
  /// Creates the file, or goes on with it. Throws FileError.
  explicit StateFile(std::filesystem::path path);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// `frame` tells states apart. All states of a file have the same size. Throws FileError.
  void write(std::int64_t frame, std::span<const std::byte> state);

  /// That of a frame; empty where it is not there, or damaged.
  static std::vector<std::byte> read(const std::filesystem::path& path, std::int64_t frame);

 private:
  /// Not that of the last frame of an earlier run.
  int first_place(std::uint64_t bytes) const;

  std::filesystem::path path_;
  int file_ = -1;
  int place_ = -1;  ///< that is written next; -1 = nothing was written yet
};

}  // namespace dic::run
