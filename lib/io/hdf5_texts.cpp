#include "io/hdf5_texts.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

namespace dic::hdf5 {
namespace {

// Largest number of bytes of all texts of an element: names, commands, settings.
constexpr std::size_t kLongestText = std::size_t{1} << 26;

// Sizes of the format's records, for addresses and lengths of 8 bytes.
constexpr std::size_t kReference = 16;   ///< of an element: length (4), address of the heap (8), index (4)
constexpr std::size_t kHeapHead = 16;    ///< of a heap: "GCOL", version (1), reserved (3), size (8)
constexpr std::size_t kObjectHead = 16;  ///< of an object: index (2), uses (2), reserved (4), size (8)

/// A whole number of `bytes` bytes, the lowest first.
std::uint64_t number_at(const char* at, int bytes) {
  std::uint64_t value = 0;
  for (int k = bytes - 1; k >= 0; --k) value = value << 8 | static_cast<unsigned char>(at[k]);
  return value;
}

/// Leaves the references to texts as they are stored.
herr_t keep_references(hid_t from, hid_t to, H5T_cdata_t* about, std::size_t, std::size_t, std::size_t, void*,
                       void*, hid_t) {
  if (about->command != H5T_CONV_INIT) return 0;
  about->need_bkg = H5T_BKG_NO;
  return H5Tis_variable_str(from) > 0 && H5Tget_size(to) == kReference ? 0 : -1;
}

/// As long as it lives, HDF5 converts texts of variable length to opaque bytes: their references.
class ReferenceType {
 public:
  ReferenceType() : bytes_(H5Tcreate(H5T_OPAQUE, kReference), H5Tclose), text_(H5Tcopy(H5T_C_S1), H5Tclose) {
    H5Tset_size(text_, H5T_VARIABLE);
    H5Tregister(H5T_PERS_SOFT, kName, text_, bytes_, keep_references);
  }
  ~ReferenceType() { H5Tunregister(H5T_PERS_SOFT, kName, text_, bytes_, keep_references); }
  ReferenceType(const ReferenceType&) = delete;
  ReferenceType& operator=(const ReferenceType&) = delete;

  hid_t id() const { return bytes_; }

 private:
  static constexpr const char* kName = "dic references";
  Handle bytes_, text_;
};

/// The global heaps of a file.
class GlobalHeaps {
 public:
  GlobalHeaps(const std::filesystem::path& path, hid_t file) : stream_(path, std::ios::binary) {
    std::error_code failure;
    const std::uintmax_t bytes = std::filesystem::file_size(path, failure);
    const Handle creation(H5Fget_create_plist(file), H5Pclose);
    hsize_t base = 0;
    std::size_t address = 0, length = 0;
    if (failure || H5Pget_userblock(creation, &base) < 0 || H5Pget_sizes(creation, &address, &length) < 0)
      return;
    if (address != 8 || length != 8 || base > bytes) return;
    base_ = base;
    bytes_ = bytes - base;
  }

  /// The text of a reference. False where it or the heap is damaged.
  bool read(const char* reference, std::string& text) {
    const std::uint64_t length = number_at(reference, 4), address = number_at(reference + 4, 8);
    const auto index = static_cast<std::uint32_t>(number_at(reference + 12, 4));
    text.clear();
    if (address == 0 || length == 0) return true;
    const auto heap = heaps_.contains(address) ? heaps_.find(address) : open(address);
    if (heap == heaps_.end()) return false;
    const auto object = heap->second.find(index);
    if (object == heap->second.end() || length > object->second.size()) return false;
    text.assign(object->second, 0, length);
    text.resize(strnlen(text.c_str(), text.size()));
    return true;
  }

 private:
  using Heap = std::map<std::uint32_t, std::string>;

  std::map<std::uint64_t, Heap>::iterator open(std::uint64_t address) {
    std::array<char, kHeapHead> head{};
    if (!read_bytes(address, head.data(), head.size())) return heaps_.end();
    if (std::string_view(head.data(), 5) != std::string_view("GCOL\1", 5)) return heaps_.end();
    const std::uint64_t size = number_at(head.data() + 8, 8);
    if (size < kHeapHead || size > kLongestText - held_) return heaps_.end();
    std::string bytes(size, '\0');
    if (!read_bytes(address, bytes.data(), size)) return heaps_.end();
    held_ += size;
    Heap heap;
    for (std::size_t at = kHeapHead; at + kObjectHead <= size;) {
      const auto index = static_cast<std::uint32_t>(number_at(&bytes[at], 2));
      const std::uint64_t length = number_at(&bytes[at + 8], 8);
      if (index == 0) break;  // the rest is free
      if (length > size - at - kObjectHead) return heaps_.end();
      heap[index] = bytes.substr(at + kObjectHead, length);
      at += kObjectHead + (length + 7) / 8 * 8;
    }
    return heaps_.emplace(address, std::move(heap)).first;
  }

  bool read_bytes(std::uint64_t address, char* bytes, std::uint64_t count) {
    if (address > bytes_ || count > bytes_ - address) return false;
    stream_.clear();
    stream_.seekg(static_cast<std::streamoff>(base_ + address));
    return static_cast<bool>(stream_.read(bytes, static_cast<std::streamsize>(count)));
  }

  std::ifstream stream_;
  std::uint64_t base_ = 0, bytes_ = 0;  ///< begin of the HDF5 part of the file, and its size
  std::map<std::uint64_t, Heap> heaps_;
  std::size_t held_ = 0;  ///< bytes in heaps_
};

std::optional<std::vector<std::string>> variable_texts(const std::filesystem::path& path, hid_t file,
                                                       std::size_t number, const ReadElements& read) {
  std::vector<char> references(number * kReference);
  const ReferenceType type;
  if (read(type.id(), references.data()) < 0) return {};
  GlobalHeaps heaps(path, file);
  std::vector<std::string> texts(number);
  std::size_t all = 0;
  for (std::size_t k = 0; k < number; ++k) {
    if (!heaps.read(&references[k * kReference], texts[k])) return {};
    all += texts[k].size();
    if (all > kLongestText) return {};
  }
  return texts;
}

}  // namespace

std::optional<std::vector<std::string>> read_texts(const std::filesystem::path& path, hid_t file, hid_t type,
                                                   hid_t space, const ReadElements& read) {
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (H5Tget_class(type) != H5T_STRING || count < 0) return {};
  const auto number = static_cast<std::size_t>(count);
  if (number > kLongestText) return {};
  if (number == 0) return std::vector<std::string>();
  if (H5Tis_variable_str(type) > 0) return variable_texts(path, file, number, read);
  const std::size_t length = H5Tget_size(type);
  if (length == 0 || length > kLongestText / number) return {};
  std::vector<char> bytes(number * length);
  if (read(type, bytes.data()) < 0) return {};
  std::vector<std::string> texts;
  for (std::size_t k = 0; k < number; ++k) {
    const char* text = bytes.data() + k * length;
    texts.emplace_back(text, strnlen(text, length));
  }
  return texts;
}

}  // namespace dic::hdf5
