#include "export/mat_file.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <dic/error.hpp>
#include <fstream>
#include <new>

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

MatFile::MatFile(const std::filesystem::path& path)
    : target_(path),
      file_(Mat_CreateVer(target_.temporary().c_str(), "MATLAB 5.0 MAT-file, by dic", MAT_FT_MAT5)) {
  if (!file_) fail(std::strerror(errno));
}

void MatFile::fail(const std::string& reason) const { throw_cannot_write(target_.path(), reason); }

void MatFile::put(const MatVariable& variable) {
  if (!variable) fail("no memory");
  if (Mat_VarWrite(file_.get(), variable.get(), MAT_COMPRESSION_NONE) != 0) fail("matio refuses it");
  values_.push_back(bytes_of_values(*variable));
}

/// matio does not tell that a write failed, and gives a variable that was cut off the size that it has: so
/// the variables have to follow each other to the end of the file, each with all of its values.
bool MatFile::is_whole() const {
  constexpr std::uint64_t header = 128;
  constexpr std::uint32_t matrix = 14;  // the type of an element that is a variable
  std::ifstream stream(target_.temporary(), std::ios::binary);
  std::uint64_t at = header;
  for (const std::uint64_t values : values_) {
    std::array<std::uint32_t, 2> tag{};  // type, bytes
    stream.seekg(static_cast<std::streamoff>(at));
    if (!stream.read(reinterpret_cast<char*>(tag.data()), sizeof tag)) return false;
    if (tag[0] != matrix || tag[1] < values) return false;
    at += sizeof tag + tag[1];
  }
  return at == std::filesystem::file_size(target_.temporary());
}

void MatFile::commit() {
  if (Mat_Close(file_.release()) != 0) fail(std::strerror(errno));
  if (!is_whole()) fail("not everything was written");
  target_.commit();
}

}  // namespace dic::exporting
