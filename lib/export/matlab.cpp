#include <matio.h>

#include <cstring>
#include <dic/error.hpp>
#include <memory>
#include <type_traits>

#include "export/selection.hpp"
#include "io/pending_file.hpp"

namespace dic::exporting {
namespace {

constexpr std::uint64_t kLargestVariable = (std::uint64_t{1} << 31) - 1024;  // bytes, of MATLAB 5's format

struct Closer {
  void operator()(mat_t* file) const { Mat_Close(file); }
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

/// MATLAB's arrays have the first index fastest: (y, x, frame).
class MatFile {
 public:
  explicit MatFile(const std::filesystem::path& path)
      : target_(path),
        file_(Mat_CreateVer(target_.temporary().c_str(), "MATLAB 5.0 MAT-file, by dic", MAT_FT_MAT5)) {
    if (!file_) throw_cannot_write(path, std::strerror(errno));
  }

  template <typename T>
  void write(const std::string& name, std::vector<std::size_t> shape, std::vector<T> values) {
    put(Variable(Mat_VarCreate(name.c_str(), class_of<T>(), type_of<T>(), static_cast<int>(shape.size()),
                               shape.data(), values.data(), 0)));
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

  void commit() {
    if (Mat_Close(file_.release()) != 0) throw_cannot_write(target_.path(), std::strerror(errno));
    target_.commit();
  }

 private:
  void put(const Variable& variable) {
    if (!variable || Mat_VarWrite(file_.get(), variable.get(), MAT_COMPRESSION_NONE) != 0)
      throw_cannot_write(target_.path(), "no space or memory");
  }

  PendingFile target_;
  std::unique_ptr<mat_t, Closer> file_;
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
