#include "io/hdf5_superblock.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>

namespace dic::hdf5 {
namespace {

constexpr std::string_view kSignature("\x89HDF\r\n\x1a\n", 8);
constexpr std::size_t kVersionAt = 8, kAddressBytesAt = 9, kMarksAt = 11, kEndAt = 28;
constexpr std::size_t kChecksumAt = Superblock::kBytes - sizeof(std::uint32_t);
static_assert(std::endian::native == std::endian::little, "as numbers are in the file");

}  // namespace

std::uint32_t lookup3(std::span<const char> bytes) {
  using Words = std::array<std::uint32_t, 3>;
  Words w;
  w.fill(0xdeadbeefU + static_cast<std::uint32_t>(bytes.size()));
  const auto add = [&](std::size_t count) {
    Words next{};
    std::memcpy(next.data(), bytes.data(), count);
    for (std::size_t k = 0; k < w.size(); ++k) w[k] += next[k];
    bytes = bytes.subspan(count);
  };
  auto& [a, b, c] = w;
  while (bytes.size() > sizeof(Words)) {
    add(sizeof(Words));
    a -= c, a ^= std::rotl(c, 4), c += b;
    b -= a, b ^= std::rotl(a, 6), a += c;
    c -= b, c ^= std::rotl(b, 8), b += a;
    a -= c, a ^= std::rotl(c, 16), c += b;
    b -= a, b ^= std::rotl(a, 19), a += c;
    c -= b, c ^= std::rotl(b, 4), b += a;
  }
  if (bytes.empty()) return c;
  add(bytes.size());
  c ^= b, c -= std::rotl(b, 14);
  a ^= c, a -= std::rotl(c, 11);
  b ^= a, b -= std::rotl(a, 25);
  c ^= b, c -= std::rotl(b, 16);
  a ^= c, a -= std::rotl(c, 4);
  b ^= a, b -= std::rotl(a, 14);
  c ^= b, c -= std::rotl(b, 24);
  return c;
}

std::optional<Superblock> Superblock::in(std::span<const char> file) {
  if (file.size() < kBytes || std::string_view(file.data(), kSignature.size()) != kSignature) return {};
  if (file[kVersionAt] != 3 || file[kAddressBytesAt] != sizeof(std::uint64_t)) return {};
  Superblock found;
  std::ranges::copy(file.first(kBytes), found.bytes_.begin());
  return found;
}

std::uint64_t Superblock::end_of_file() const {
  std::uint64_t end = 0;
  std::memcpy(&end, &bytes_[kEndAt], sizeof end);
  return end;
}

void Superblock::set_end_of_file(std::uint64_t end) {
  std::memcpy(&bytes_[kEndAt], &end, sizeof end);
  set_checksum();
}

void Superblock::set_unmarked() {
  bytes_[kMarksAt] = 0;
  set_checksum();
}

void Superblock::set_checksum() {
  const std::uint32_t sum = lookup3(std::span<const char>(bytes_).first(kChecksumAt));
  std::memcpy(&bytes_[kChecksumAt], &sum, sizeof sum);
}

}  // namespace dic::hdf5
