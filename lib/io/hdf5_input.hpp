#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "io/hdf5_handle.hpp"

namespace dic::hdf5 {

/// An HDF5 file that is read, perhaps a stranger's: sizes and types are checked before memory is taken, and
/// nothing outside the file is opened (external links, external storage), but for parts of the result in
/// files below its folder (virtual datasets). Every failure is a FileError with the file's name.
class InputFile {
 public:
  DIC_INTERNAL_API explicit InputFile(std::filesystem::path path);

  /// True where a group or dataset of that path is there.
  bool has(const std::string& name) const;
  /// True if the values of a dataset lie in other files, of which it is a view.
  bool is_virtual(const std::string& name) const;
  /// Names of the datasets of a group, sorted.
  std::vector<std::string> datasets(const std::string& group) const;
  /// Shape of a dataset; a scalar has no dimensions.
  DIC_INTERNAL_API Shape shape(const std::string& name) const;
  bool is_floating(const std::string& name) const;
  /// Bytes of an element in the file.
  std::size_t element_size(const std::string& name) const;

  /// All elements of a dataset of numbers, row-major, converted to T.
  template <typename T>
  void read(const std::string& name, std::vector<T>& values) const {
    read_numbers(name, native_type<T>(), [&](std::size_t count) {
      values.resize(count);
      return static_cast<void*>(values.data());
    });
  }
  /// `count` elements along each dimension from `start` on, converted to T.
  template <typename T>
  std::vector<T> read_part(const std::string& name, const Shape& start, const Shape& count) const {
    std::vector<T> values(elements(name, count));
    read_block(name, start, count, native_type<T>(), values.data());
    return values;
  }
  /// A dataset of text: of every element.
  std::vector<std::string> texts(const std::string& name) const;

  /// Attributes of a group or dataset; none where there is no such attribute of that kind.
  std::optional<std::string> text_attribute(const std::string& object, const std::string& name) const;
  std::optional<double> number_attribute(const std::string& object, const std::string& name) const;

  /// Throws the FileError of this file: `what` is wrong with it.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  Handle open_object(const std::string& name) const;
  Handle open_dataset(const std::string& name) const;
  void check_parts(const std::string& name, const Handle& creation) const;
  std::unique_ptr<InputFile> open_part(const std::filesystem::path& file) const;
  DIC_INTERNAL_API std::size_t elements(const std::string& name, const Shape& count) const;
  template <typename Allocate>
  void read_numbers(const std::string& name, hid_t type, const Allocate& allocate) const {
    const Shape all = shape(name);
    void* values = allocate(elements(name, all));
    read_block(name, Shape(all.size(), 0), all, type, values);
  }
  DIC_INTERNAL_API void read_block(const std::string& name, const Shape& start, const Shape& count,
                                   hid_t type, void* values) const;

  std::filesystem::path path_;
  mutable std::uintmax_t bytes_ = 0;  // size of the file and of its parts
  mutable std::map<std::string, std::unique_ptr<InputFile>> parts_;
  bool is_part_ = false;
  Handle links_, file_;  // links_: properties by which objects are looked up
};

}  // namespace dic::hdf5
