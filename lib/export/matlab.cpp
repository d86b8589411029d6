#include <matio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <dic/error.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "export/selection.hpp"
#include "io/pending_file.hpp"

namespace dic::exporting {
namespace {

constexpr std::uint64_t kLargestVariable = (std::uint64_t{1} << 31) - 1024;  // bytes, of MATLAB 5's format

struct Closer {
  void operator()(matvar_t* variable) const { Mat_VarFree(variable); }
};
using Variable = std::unique_ptr<matvar_t, Closer>;

template <typename T>
constexpr matio_classes class_of() {
  if constexpr (std::is_same_v<T, double>) return MAT_C_DOUBLE;
  if constexpr (std::is_same_v<T, float>) return MAT_C_SINGLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MAT_C_INT32;
  return MAT_C_UINT8;
}
template <typename T>
constexpr matio_types type_of() {
  if constexpr (std::is_same_v<T, double>) return MAT_T_DOUBLE;
  if constexpr (std::is_same_v<T, float>) return MAT_T_SINGLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MAT_T_INT32;
  return MAT_T_UINT8;
}

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

/// A MAT-file: a header, then one element for each variable. MATLAB's arrays have the first index fastest:
/// (y, x, frame).
///
/// matio does not report that a disk is full. It writes each variable into memory, and the bytes go from
/// there to the disk.
class MatFile {
 public:
  explicit MatFile(const std::filesystem::path& path) : file_(path) {}

  template <typename T>
  void write(const std::string& name, std::vector<std::size_t> shape, std::vector<T> values) {
    put(Variable(Mat_VarCreate(name.c_str(), class_of<T>(), type_of<T>(), static_cast<int>(shape.size()),
                               shape.data(), values.data(), MAT_F_DONT_COPY_DATA)));
  }
  void write(const std::string& name, const std::vector<double>& column) {
    write(name, {column.size(), 1}, column);
  }

  void write(const std::string& name, std::vector<std::string> texts) {
    std::size_t shape[] = {texts.size(), 1};
    Variable cells(Mat_VarCreate(name.c_str(), MAT_C_CELL, MAT_T_CELL, 2, shape, nullptr, 0));
    for (std::size_t k = 0; cells && k < texts.size(); ++k) {
      std::size_t size[] = {1, texts[k].size()};
      Mat_VarSetCell(cells.get(), static_cast<int>(k),
                     Mat_VarCreate(nullptr, MAT_C_CHAR, MAT_T_UTF8, 2, size, texts[k].data(), 0));
    }
    put(cells);
  }

  void commit() { file_.commit(); }

 private:
  void put(const Variable& variable) {
    const MemoryFile memory;
    if (!variable || !encode(*variable, memory))
      throw_cannot_write(file_.path(), "not enough memory for a variable");
    std::vector<char> buffer(std::size_t{1} << 20);
    std::uint64_t at = std::exchange(is_begun_, true) ? kHeaderBytes : 0;
    for (;;) {
      const std::string_view bytes = memory.read(at, buffer);
      if (bytes.empty()) return;
      file_.write(bytes);
      at += bytes.size();
    }
  }

  /// Writes a file with one variable. Returns false if the file is not whole.
  static bool encode(matvar_t& variable, const MemoryFile& memory) {
    mat_t* file = Mat_CreateVer(memory.path().c_str(), "MATLAB 5.0 MAT-file, by dic", MAT_FT_MAT5);
    if (file == nullptr) return false;
    const bool is_written = Mat_VarWrite(file, &variable, MAT_COMPRESSION_NONE) == 0;
    if (Mat_Close(file) != 0 || !is_written) return false;
    std::array<std::uint32_t, 2> tag{};  // type and bytes of the element
    const std::span<char> bytes(reinterpret_cast<char*>(tag.data()), sizeof tag);
    char beyond = 0;
    return memory.read(kHeaderBytes, bytes).size() == sizeof tag && tag[1] >= variable.nbytes &&
           !memory.read(kHeaderBytes + sizeof tag + tag[1] - 1, {&beyond, 1}).empty() &&
           memory.read(kHeaderBytes + sizeof tag + tag[1], {&beyond, 1}).empty();
  }

  static constexpr std::uint64_t kHeaderBytes = 128;

  PendingText file_;
  bool is_begun_ = false;  ///< the header is written
};

/// [ny x nx] row by row to column by column, at `to`.
template <typename T>
void transpose(const std::vector<T>& values, const Grid& grid, T* to) {
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      to[static_cast<std::size_t>(i) * grid.ny + j] = values[static_cast<std::size_t>(j) * grid.nx + i];
}

void write_array(MatFile& file, const Selection& selection, const ResultArray& array) {
  const Grid& grid = selection.result.grid();
  const std::size_t nodes = grid.nodes(), frames = selection.frames.size(), nx = grid.nx, ny = grid.ny;
  if (nodes * frames * size_of(array.type) > kLargestVariable)
    throw UsageError("The array " + array.name +
                     " is too large for MATLAB's format: choose some --frames, or --to netcdf.");
  visit_scalar(array.type, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, std::uint16_t>) {  // a type that no array has
      std::vector<T> values(nodes * frames);
      for (std::size_t f = 0; f < frames; ++f)
        transpose(selection.result.values<T>(array.name, selection.frames[f]), grid,
                  values.data() + f * nodes);
      file.write(array.name, {ny, nx, frames}, std::move(values));
    }
  });
}

}  // namespace

void write_mat(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const Result& result = selection.result;
  const Grid& grid = result.grid();
  const std::size_t nx = grid.nx, ny = grid.ny;
  MatFile file(path);
  for (const ResultArray& array : selection.arrays) {
    steps.next();
    write_array(file, selection, array);
  }
  file.write("frame", selection.frame_numbers());
  if (selection.has_seconds()) file.write("time", selection.times());
  file.write("file", selection.files());
  file.write("x", selection.x());
  file.write("y", selection.y());
  std::vector<std::uint8_t> inside(grid.inside.size());
  transpose(grid.inside, grid, inside.data());
  file.write("inside", {ny, nx}, std::move(inside));
  file.write("length_unit", std::vector<std::string>{result.info().length_unit()});
  file.commit();
}

}  // namespace dic::exporting
