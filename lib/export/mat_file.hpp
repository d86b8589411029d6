#pragma once

#include <matio.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "io/pending_file.hpp"

namespace dic::exporting {

struct MatCloser {
  void operator()(matvar_t* variable) const { Mat_VarFree(variable); }
};
/// A variable of a MATLAB file: an array, text, or a struct that owns its fields.
using MatVariable = std::unique_ptr<matvar_t, MatCloser>;

constexpr std::uint64_t kLargestMatVariable = (std::uint64_t{1} << 31) - 1024;  // bytes, of MATLAB 5's format

template <typename T>
constexpr matio_classes mat_class() {
  if constexpr (std::is_same_v<T, double>) return MAT_C_DOUBLE;
  if constexpr (std::is_same_v<T, float>) return MAT_C_SINGLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MAT_C_INT32;
  return MAT_C_UINT8;
}
template <typename T>
constexpr matio_types mat_type() {
  if constexpr (std::is_same_v<T, double>) return MAT_T_DOUBLE;
  if constexpr (std::is_same_v<T, float>) return MAT_T_SINGLE;
  if constexpr (std::is_same_v<T, std::int32_t>) return MAT_T_INT32;
  return MAT_T_UINT8;
}

/// An array with the first index fastest. name: null inside a struct.
template <typename T>
MatVariable mat_array(const char* name, std::vector<std::size_t> shape, const T* values, int flags = 0) {
  return MatVariable(Mat_VarCreate(name, mat_class<T>(), mat_type<T>(), static_cast<int>(shape.size()),
                                   shape.data(), const_cast<T*>(values), flags));  // matio copies them
}
MatVariable mat_number(double value);
MatVariable mat_text(const std::string& text);
MatVariable mat_empty();
MatVariable mat_texts(const char* name, const std::vector<std::string>& texts);

/// An array [1 x count] of structs with these fields.
class MatStructs {
 public:
  MatStructs(const char* name, std::size_t count, std::initializer_list<const char*> fields);
  /// Sets a field of one of the structs.
  void set(std::size_t index, const char* field, MatVariable value);
  MatVariable take() { return std::move(structs_); }

 private:
  MatVariable structs_;
};

/// A file of MATLAB 5: a header, then one element for each variable. matio does not report that a disk is
/// full: it writes each variable into memory, and the bytes go from there to the disk. Throws FileError.
class MatFile {
 public:
  explicit MatFile(const std::filesystem::path& path) : file_(path) {}

  template <typename T>
  void write(const std::string& name, std::vector<std::size_t> shape, const std::vector<T>& values) {
    put(mat_array(name.c_str(), std::move(shape), values.data()));
  }
  void write(const std::string& name, const std::vector<double>& column) {
    write(name, {column.size(), 1}, column);
  }
  void write(const std::string& name, const std::vector<std::string>& texts) {
    put(mat_texts(name.c_str(), texts));
  }
  void put(const MatVariable& variable);
  void commit() { file_.commit(); }

 private:
  PendingText file_;
  bool is_begun_ = false;  ///< the header is written
};

}  // namespace dic::exporting
