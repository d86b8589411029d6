#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace dic::hdf5 {

/// The first bytes of an HDF5 file of version 1.10: version 3 of the superblock, with addresses of 8 bytes
/// (HDF5 File Format Specification, II.A).
///
/// HDF5 marks there that a writer has the file open. Nobody takes that mark away after a kill, and programs
/// that do not ask for "single writer, multiple readers" then refuse the file. What is in it is whole all the
/// same, as the file is written in the order that such readers need.
class Superblock {
 public:
  static constexpr std::size_t kBytes = 48;

  /// None where there is another version, or none.
  static std::optional<Superblock> in(std::span<const char> file);

  const std::array<char, kBytes>& bytes() const { return bytes_; }
  std::uint64_t end_of_file() const;
  void set_end_of_file(std::uint64_t end);
  /// No writer has the file open.
  void set_unmarked();

 private:
  void set_checksum();

  std::array<char, kBytes> bytes_{};
};

/// Bob Jenkins' hash "lookup3" with the start value 0: the checksum of HDF5's metadata.
std::uint32_t lookup3(std::span<const char> bytes);

}  // namespace dic::hdf5
