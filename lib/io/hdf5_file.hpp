#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "io/hdf5_handle.hpp"

/// The part of HDF5 that writing needs, with owned handles and exceptions.
namespace dic::hdf5 {

/// A file that has some items of series, or some rows of items.
struct SeriesPart {
  std::filesystem::path file;  ///< relative to the folder of the file that joins them
  std::uint64_t first = 0,
                items = 0;  ///< all of the file are items first, first + 1, ... of the joined series
  std::uint64_t rows = 0;   ///< size of an item in the file: the first extent
  std::uint64_t skip = 0, use = 0, to = 0;  ///< rows skip, skip + 1, ... of the file are rows to, to + 1, ...
};

/// How the items of a series are stored.
enum class Storage : std::uint8_t {
  plain,
  deflated  ///< for items of mostly equal values; plain where HDF5 was built without deflate
};

/// An HDF5 file that is being written. Objects are named by their path ("/group/dataset"); groups on the way
/// are made as needed. Every failure (no rights, disk full) is a FileError with the file's name and the
/// system's reason, at the latest from the next `check_written` or from `close`.
class OutputFile {
 public:
  /// Creates the file; one of that name is replaced.
  /// `shown`: the name in messages, where the file has a temporary one.
  DIC_INTERNAL_API explicit OutputFile(const std::filesystem::path& path,
                                       const std::filesystem::path& shown = {});

  /// Opens one that is there, to change it.
  static OutputFile open(std::filesystem::path path);

  /// The same two for a file that others read while series of it grow: in the format of HDF5 1.10.
  static OutputFile create_growing(const std::filesystem::path& path, const std::filesystem::path& shown);
  static OutputFile open_growing(const std::filesystem::path& path);
  /// Creates a file whose series of non-scalar items are virtual datasets: they show those of other files,
  /// one part after the other, as one. Needs HDF5 1.10 to be read.
  static OutputFile create_joined(const std::filesystem::path& path, const std::filesystem::path& shown,
                                  std::vector<SeriesPart> parts);
  /// Begins growing: from now on, whenever the process or the disk ends, the file is as whole as the last
  /// `publish` left it, or more. No object can be created any more; series of numbers and of text of fixed
  /// length grow, and attributes get other values of their type.
  void begin_growing();
  /// Everything so far is there for readers. Throws FileError.
  void publish();

  bool has(const std::string& name) const;
  void create_group(const std::string& name);

  /// Attributes of the group or dataset `object`; one of that name is replaced. Text is UTF-8 of variable
  /// length, which h5py and MATLAB hand out as strings.
  DIC_INTERNAL_API void set_attribute(const std::string& object, const std::string& name,
                                      std::string_view text);
  void set_attribute(const std::string& object, const std::string& name, std::span<const std::string> texts);
  /// Text of fixed length, not empty: for readers that insist.
  void set_ascii_attribute(const std::string& object, const std::string& name, std::string_view text);
  template <typename T>
  requires std::is_arithmetic_v<T>
  void set_attribute(const std::string& object, const std::string& name, T value) {
    write_attribute(object, name, {}, native_type<T>(), &value);
  }
  template <typename T>
  void set_attribute(const std::string& object, const std::string& name, const std::vector<T>& values) {
    write_attribute(object, name, {values.size()}, native_type<T>(), values.data());
  }

  /// A dataset of fixed shape, written at once; `values` holds the product of `shape` elements, row-major.
  template <typename T>
  void write(const std::string& name, const Shape& shape, const T* values) {
    write_dataset(name, shape, native_type<T>(), values);
  }

  /// An item of a dataset [n, item...] that is there, of the size that it has; values row-major.
  template <typename T>
  void write_item(const std::string& name, std::uint64_t index, const T* values) {
    write_block(name, index, native_type<T>(), values);
  }

  /// A scalar dataset of text, in place of one of that name; attributes end at 64 KiB, this does not.
  void write_text(const std::string& name, std::string_view text);

  /// A dataset [n] of text.
  DIC_INTERNAL_API void write_texts(const std::string& name, const std::vector<std::string>& texts);

  /// A dataset [unlimited, item...] with no items yet.
  template <typename T>
  void create_series(const std::string& name, const Shape& item, Storage storage = Storage::plain) {
    create_series(name, item, native_type<T>(), storage);
  }
  /// Text of at most this many bytes, UTF-8: growing files cannot have text of any length.
  void create_text_series(const std::string& name, std::size_t bytes);
  /// Opens an existing dataset to append to it, with its first items only.
  void open_series(const std::string& name, std::uint64_t items);
  /// Adds an item, row-major, to a series.
  template <typename T>
  void append(const std::string& name, const T* item) {
    append_item(name, native_type<T>(), item);
  }
  /// Adds an item to a series of scalars.
  template <typename T>
  requires std::is_arithmetic_v<T>
  void append(const std::string& name, T item) { append_item(name, native_type<T>(), &item); }
  void append(const std::string& name, std::string_view text);

  /// A dataset [unlimited], or [unlimited, components], with no rows yet; rows are added in blocks of any
  /// size.
  template <typename T>
  void create_rows(const std::string& name, std::uint64_t components = 1) {
    create_rows(name, components, native_type<T>());
  }
  /// Adds rows; values: the product of rows and components, row-major.
  template <typename T>
  void append_rows(const std::string& name, const std::vector<T>& values) {
    append_rows(name, native_type<T>(), values.data(), values.size());
  }

  /// Adds another name of an existing dataset.
  void link(const std::string& dataset, const std::string& name);
  /// A dataset [n] becomes a dimension scale: what the positions along a dimension of other datasets are.
  DIC_INTERNAL_API void make_scale(const std::string& dataset);
  /// The scales of the first dimensions of a dataset.
  DIC_INTERNAL_API void attach_scales(const std::string& dataset, const std::vector<std::string>& scales);

  /// Gives an attribute of numbers that is there another value.
  template <typename T>
  void change_attribute(const std::string& object, const std::string& name, T value) {
    rewrite_attribute(object, name, native_type<T>(), &value);
  }
  /// Throws FileError where a write has failed so far. The arrays of appended items have been written by
  /// then; HDF5 may write its own small records later, up to `publish` or `close`.
  DIC_INTERNAL_API void check_written();
  /// Flushes and closes. Nothing else may be called after it.
  DIC_INTERNAL_API void close();

 private:
  DIC_INTERNAL_API void write_attribute(const std::string& object, const std::string& name,
                                        const Shape& shape, hid_t type, const void* values);
  DIC_INTERNAL_API void write_dataset(const std::string& name, const Shape& shape, hid_t type,
                                      const void* values);
  void write_block(const std::string& name, std::uint64_t index, hid_t type, const void* values);
  void rewrite_attribute(const std::string& object, const std::string& name, hid_t type, const void* value);
  DIC_INTERNAL_API void create_series(const std::string& name, const Shape& item, hid_t type,
                                      Storage storage);
  void create_joined_series(const std::string& name, const Shape& item, hid_t type);
  DIC_INTERNAL_API void append_item(const std::string& name, hid_t type, const void* item);
  void create_rows(const std::string& name, std::uint64_t components, hid_t type);
  void append_rows(const std::string& name, hid_t type, const void* values, std::uint64_t count);
  Handle access_list(bool grows);

  struct Series {
    Handle dataset;  ///< stays open: opening one takes longer than many an append
    bool items_are_plain_chunks = false;
  };

  OutputFile() : error_(std::make_unique<int>(0)) {}

  std::filesystem::path path_;
  std::unique_ptr<int> error_;  // errno of the first write that failed; its address is the driver's
  Handle driver_, file_;
  std::map<std::string, Series> series_;
  std::vector<SeriesPart> parts_;  // parts of a joined file
};

}  // namespace dic::hdf5
