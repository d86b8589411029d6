#include "export/mat_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <span>
#include <string_view>
#include <utility>

namespace dic::exporting {
namespace {

/// Bytes of the values of a variable, which the file holds and more.
std::uint64_t bytes_of_values(const matvar_t& variable) {
  if (variable.class_type != MAT_C_STRUCT && variable.class_type != MAT_C_CELL) return variable.nbytes;
  std::uint64_t sum = 0;
  const auto* const parts = static_cast<matvar_t* const*>(variable.data);
  for (std::size_t k = 0; k < variable.nbytes / sizeof(matvar_t*); ++k)
    if (parts[k]) sum += bytes_of_values(*parts[k]);
  return sum;
}

constexpr std::uint64_t kHeaderBytes = 128;  ///< before the first variable

/// An anonymous file in memory, with a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("dic", MFD_CLOEXEC)) {}
  ~MemoryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  /// Returns bytes from `offset` on; fewer at the end of the file.
  std::string_view read(std::uint64_t offset, std::span<char> buffer) const {
    const ssize_t bytes = ::pread(descriptor_, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    return {buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
  }

 private:
  int descriptor_;
};

/// Writes a file with one variable. Returns false if the file is not whole.
bool encode(matvar_t& variable, const MemoryFile& memory) {
  mat_t* file = Mat_CreateVer(memory.path().c_str(), "MATLAB 5.0 MAT-file, by dic", MAT_FT_MAT5);
  if (file == nullptr) return false;
  const bool is_written = Mat_VarWrite(file, &variable, MAT_COMPRESSION_NONE) == 0;
  if (Mat_Close(file) != 0 || !is_written) return false;
  std::array<std::uint32_t, 2> tag{};  // type and bytes of the element
  const std::span<char> bytes(reinterpret_cast<char*>(tag.data()), sizeof tag);
  if (memory.read(kHeaderBytes, bytes).size() != sizeof tag || tag[1] < bytes_of_values(variable))
    return false;
  char byte = 0;
  const std::uint64_t end = kHeaderBytes + sizeof tag + tag[1];
  return !memory.read(end - 1, {&byte, 1}).empty() && memory.read(end, {&byte, 1}).empty();
}

}  // namespace

MatVariable mat_number(double value) { return mat_array(nullptr, {1, 1}, &value); }
MatVariable mat_empty() { return mat_array<double>(nullptr, {0, 0}, nullptr); }

MatVariable mat_text(const std::string& text) {
  std::size_t size[] = {1, text.size()};
  return MatVariable(
      Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UTF8, 2, size, const_cast<char*>(text.data()), 0));
}

MatVariable mat_texts(const char* name, const std::vector<std::string>& texts) {
  std::size_t shape[] = {texts.size(), 1};
  MatVariable cells(Mat_VarCreate(name, MAT_C_CELL, MAT_T_CELL, 2, shape, nullptr, 0));
  for (std::size_t k = 0; cells && k < texts.size(); ++k)
    Mat_VarSetCell(cells.get(), static_cast<int>(k), mat_text(texts[k]).release());
  return cells;
}

MatStructs::MatStructs(const char* name, std::size_t count, std::initializer_list<const char*> fields) {
  std::size_t shape[] = {1, count};
  std::vector<const char*> names(fields);
  structs_.reset(Mat_VarCreateStruct(name, 2, shape, names.data(), static_cast<unsigned>(names.size())));
  if (!structs_) throw std::bad_alloc();
}

void MatStructs::set(std::size_t index, const char* field, MatVariable value) {
  if (!value) throw std::bad_alloc();
  Mat_VarSetStructFieldByName(structs_.get(), field, index, value.release());
}

void MatFile::put(const MatVariable& variable) {
  const MemoryFile memory;
  if (!variable || !encode(*variable, memory))
    throw_cannot_write(file_.path(), "no space or memory for a variable");
  std::vector<char> buffer(std::size_t{1} << 20);
  std::uint64_t at = std::exchange(is_begun_, true) ? kHeaderBytes : 0;
  for (;;) {
    const std::string_view bytes = memory.read(at, buffer);
    if (bytes.empty()) return;
    file_.write(bytes);
    at += bytes.size();
  }
}

}  // namespace dic::exporting
