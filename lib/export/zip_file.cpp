#include "export/zip_file.hpp"

#include <libdeflate.h>

#include <concepts>
#include <initializer_list>
#include <utility>

namespace dic::exporting {
namespace {

// PKWARE's APPNOTE.TXT, 4.3 and 4.5.3. Sizes follow the data (bit 3), and stand in the directory with 64
// bits.
constexpr std::uint16_t kVersion = 45, kSizesFollow = 1 << 3, kStored = 0;
constexpr std::uint16_t kTime = 0,
                        kDate = (1 << 5) | 1;  // the first day that there is: the same file each time
constexpr std::uint32_t kIn64Bits = 0xFFFFFFFF;

/// Little endian, whatever the machine is.
template <std::unsigned_integral T>
std::string packed(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values)
    for (std::size_t k = 0; k < sizeof(T); ++k) bytes += static_cast<char>(value >> (8 * k));
  return bytes;
}
std::string shorts(std::initializer_list<std::uint16_t> values) { return packed(values); }
std::string ints(std::initializer_list<std::uint32_t> values) { return packed(values); }
std::string longs(std::initializer_list<std::uint64_t> values) { return packed(values); }

std::uint16_t length(const std::string& text) { return static_cast<std::uint16_t>(text.size()); }

}  // namespace

void ZipFile::put(const std::string& bytes) {
  file_.write(bytes);
  position_ += bytes.size();
}

void ZipFile::begin(const std::string& name) {
  end_member();
  members_.push_back({name, position_, 0, 0});
  in_member_ = true;
  const std::string extra = shorts({1, 16}) + longs({0, 0});
  put(ints({0x04034b50}) + shorts({kVersion, kSizesFollow, kStored, kTime, kDate}) +
      ints({0, kIn64Bits, kIn64Bits}) + shorts({length(name), length(extra)}) + name + extra);
}

void ZipFile::write(std::string_view bytes) {
  Member& member = members_.back();
  member.crc = libdeflate_crc32(member.crc, bytes.data(), bytes.size());
  member.size += bytes.size();
  file_.write(bytes);
  position_ += bytes.size();
}

void ZipFile::end_member() {
  if (!std::exchange(in_member_, false)) return;
  const Member& member = members_.back();
  put(ints({0x08074b50, member.crc}) + longs({member.size, member.size}));
}

void ZipFile::commit() {
  end_member();
  const std::uint64_t begin = position_;
  for (const Member& member : members_) {
    const std::string extra = shorts({1, 24}) + longs({member.size, member.size, member.offset});
    put(ints({0x02014b50}) + shorts({kVersion, kVersion, kSizesFollow, kStored, kTime, kDate}) +
        ints({member.crc, kIn64Bits, kIn64Bits}) + shorts({length(member.name), length(extra), 0, 0, 0}) +
        ints({0, kIn64Bits}) + member.name + extra);
  }
  const std::uint64_t size = position_ - begin, end = position_, count = members_.size();
  put(ints({0x06064b50}) + longs({44}) + shorts({kVersion, kVersion}) + ints({0, 0}) +
      longs({count, count, size, begin}));
  put(ints({0x07064b50, 0}) + longs({end}) + ints({1}));
  put(ints({0x06054b50}) + shorts({0, 0, 0xFFFF, 0xFFFF}) + ints({kIn64Bits, kIn64Bits}) + shorts({0}));
  file_.commit();
}

}  // namespace dic::exporting
