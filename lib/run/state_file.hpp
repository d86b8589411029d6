#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace dic::run {

/// States from which a next frame is measured: a file with two places that are written in turn, so that one
/// of them is whole whenever the process ends.
class StateFile {
 public:
  /// Creates the file, or continues it. Throws FileError.
  explicit StateFile(std::filesystem::path path);
  ~StateFile();
  StateFile(const StateFile&) = delete;
  StateFile& operator=(const StateFile&) = delete;

  /// Writes the state of a frame, whose index tells states apart. All states of a file have the same size.
  /// Throws FileError.
  void write(std::int64_t frame, std::span<const std::byte> state);

  /// Reads the state of a frame; empty if it is missing or damaged.
  static std::vector<std::byte> read(const std::filesystem::path& path, std::int64_t frame);

 private:
  /// Chooses the place to write first: not the one of an earlier run's last frame.
  int first_place(std::uint64_t bytes) const;

  std::filesystem::path path_;
  int file_ = -1;
  int place_ = -1;  ///< place that is written next; -1 before the first write
};

}  // namespace dic::run
