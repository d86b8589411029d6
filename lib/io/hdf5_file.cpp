#include "io/hdf5_file.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <dic/error.hpp>
#include <functional>
#include <numeric>
#include <system_error>
#include <utility>

#include "io/hdf5_driver.hpp"
#include "io/pending_file.hpp"

namespace dic::hdf5 {
namespace {

// Scalars of a series are stored in chunks of about this many bytes; whole fields one item per chunk. A chunk
// is written again with each of its items.
constexpr hsize_t kScalarChunkBytes = 2048;

// The lowest level that looks for longer matches: runs of one value take a third of what lower levels need.
constexpr unsigned kDeflateLevel = 4;

// Fields begin on pages of the file: copied whole, these take half the time.
constexpr hsize_t kPage = 4096, kLargeObject = 16 * kPage;

/// Checks the results of HDF5 calls; negative ones mean failure.
class Calls {
 public:
  Calls(const std::filesystem::path& path, const int& error) : path_(path), error_(error) {}

  void operator()(herr_t result) const {
    if (result < 0) fail();
  }
  Handle operator()(hid_t id, Handle::Close close) const {
    if (id < 0) fail();
    return {id, close};
  }

 private:
  [[noreturn]] void fail() const {
    if (error_ != 0) throw_cannot_write(path_, error_);
    throw_cannot_write(path_, "HDF5 refused it");
  }

  SilentErrors silent_;
  const std::filesystem::path& path_;
  const int& error_;
};

Handle data_space(const Calls& check, const Shape& shape, const Shape* maximum = nullptr) {
  if (shape.empty()) return check(H5Screate(H5S_SCALAR), H5Sclose);
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  const std::vector<hsize_t> max_dims =
      maximum != nullptr ? std::vector<hsize_t>(maximum->begin(), maximum->end()) : dims;
  return check(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), max_dims.data()), H5Sclose);
}

std::vector<hsize_t> shape_of(const Calls& check, const Handle& dataset) {
  const Handle space = check(H5Dget_space(dataset), H5Sclose);
  std::vector<hsize_t> shape(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  return shape;
}

/// Extends a dataset by `count` items, and writes them there.
void write_behind(const Calls& check, const Handle& dataset, hid_t type, const void* items, hsize_t count) {
  std::vector<hsize_t> shape = shape_of(check, dataset), start(shape.size(), 0), block = shape;
  start[0] = shape[0];
  shape[0] += block[0] = count;
  check(H5Dset_extent(dataset, shape.data()));
  const Handle space = check(H5Dget_space(dataset), H5Sclose);
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, block.data(), nullptr));
  check(H5Dwrite(dataset, type, data_space(check, {block.begin(), block.end()}), space, H5P_DEFAULT, items));
}

Handle fixed_ascii_type(const Calls& check, std::string_view text) {
  Handle type = check(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type, text.size()));
  check(H5Tset_strpad(type, H5T_STR_NULLPAD));
  return type;
}

Handle fixed_utf8_type(const Calls& check, std::size_t bytes) {
  Handle type = check(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type, bytes));
  check(H5Tset_strpad(type, H5T_STR_NULLPAD));
  check(H5Tset_cset(type, H5T_CSET_UTF8));
  return type;
}

Handle utf8_type(const Calls& check) {
  Handle type = check(H5Tcopy(H5T_C_S1), H5Tclose);
  check(H5Tset_size(type, H5T_VARIABLE));
  check(H5Tset_cset(type, H5T_CSET_UTF8));
  return type;
}

Handle link_creation(const Calls& check) {
  Handle properties = check(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  check(H5Pset_create_intermediate_group(properties, 1));
  return properties;
}

/// Limits the cache of chunks for the whole file, since HDF5 opens series anew when they begin to grow:
/// scalars need it; fields go past it, because it would clear, copy and keep them.
void bound_chunk_cache(const Calls& check, const Handle& access) {
  constexpr std::size_t kSlots = 3;
  check(H5Pset_cache(access, 0, kSlots, kScalarChunkBytes, 1));
}

/// The index of a series grows with its frames, and HDF5 would keep 4 KB of it per frame in memory: a limit
/// of its own counts bytes of the file, which take five times as many in memory. Only the ends of the series
/// are needed.
void bound_index(const Calls& check, const Handle& access) {
  constexpr std::size_t kBytes = std::size_t{1} << 19;
  H5AC_cache_config_t cache{};
  cache.version = H5AC__CURR_CACHE_CONFIG_VERSION;
  check(H5Pget_mdc_config(access, &cache));
  cache.set_initial_size = true;
  cache.initial_size = cache.min_size = cache.max_size = kBytes;
  check(H5Pset_mdc_config(access, &cache));
}

}  // namespace

OutputFile::OutputFile(const std::filesystem::path& path, const std::filesystem::path& shown)
    : path_(shown.empty() ? path : shown), error_(std::make_unique<int>(0)) {
  const Calls check(path_, *error_);
  file_ = check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access_list(false)), H5Fclose);
}

OutputFile OutputFile::open(std::filesystem::path path) {
  OutputFile opened;
  opened.path_ = std::move(path);
  const Calls check(opened.path_, *opened.error_);
  opened.file_ = check(H5Fopen(opened.path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  return opened;
}

OutputFile OutputFile::create_growing(const std::filesystem::path& path, const std::filesystem::path& shown) {
  OutputFile created;
  created.path_ = shown;
  const Calls check(created.path_, *created.error_);
  created.file_ =
      check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, created.access_list(true)), H5Fclose);
  return created;
}

OutputFile OutputFile::open_growing(const std::filesystem::path& path) {
  OutputFile opened;
  opened.path_ = path;
  const Calls check(opened.path_, *opened.error_);
  opened.file_ = check(H5Fopen(path.c_str(), H5F_ACC_RDWR, opened.access_list(true)), H5Fclose);
  return opened;
}

OutputFile OutputFile::create_joined(const std::filesystem::path& path, const std::filesystem::path& shown,
                                     std::vector<SeriesPart> parts) {
  OutputFile created = create_growing(path, shown);
  created.parts_ = std::move(parts);
  return created;
}

Handle OutputFile::access_list(bool grows) {
  const Calls check(path_, *error_);
  driver_ = check(register_forgiving_driver(), H5FDunregister);
  Handle access = check(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(use_forgiving_driver(access, driver_, error_.get()));
  check(H5Pset_fclose_degree(access, H5F_CLOSE_STRONG));
  check(H5Pset_alignment(access, kLargeObject, kPage));
  bound_index(check, access);
  if (grows) {
    bound_chunk_cache(check, access);
    check(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110));
  }
  return access;
}

void OutputFile::begin_growing() {
  const Calls check(path_, *error_);
  check(H5Fstart_swmr_write(file_));
  publish();
}

void OutputFile::publish() {
  const Calls check(path_, *error_);
  check(H5Fflush(file_, H5F_SCOPE_LOCAL));
  check_written();
}

bool OutputFile::has(const std::string& name) const {
  const SilentErrors silent;
  return H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0;
}

void OutputFile::create_group(const std::string& name) {
  const Calls check(path_, *error_);
  check(H5Gcreate2(file_, name.c_str(), link_creation(check), H5P_DEFAULT, H5P_DEFAULT), H5Gclose);
}

void OutputFile::set_attribute(const std::string& object, const std::string& name, std::string_view text) {
  const Calls check(path_, *error_);
  const std::string terminated(text);
  const char* pointer = terminated.c_str();
  write_attribute(object, name, {}, utf8_type(check), &pointer);
}

void OutputFile::set_ascii_attribute(const std::string& object, const std::string& name,
                                     std::string_view text) {
  const Calls check(path_, *error_);
  write_attribute(object, name, {}, fixed_ascii_type(check, text), text.data());
}

void OutputFile::set_attribute(const std::string& object, const std::string& name,
                               std::span<const std::string> texts) {
  const Calls check(path_, *error_);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  write_attribute(object, name, {pointers.size()}, utf8_type(check), pointers.data());
}

void OutputFile::write_attribute(const std::string& object, const std::string& name, const Shape& shape,
                                 hid_t type, const void* values) {
  const Calls check(path_, *error_);
  const Handle owner = check(H5Oopen(file_, object.c_str(), H5P_DEFAULT), H5Oclose);
  if (H5Aexists(owner, name.c_str()) > 0) check(H5Adelete(owner, name.c_str()));
  const Handle attribute = check(
      H5Acreate2(owner, name.c_str(), type, data_space(check, shape), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  check(H5Awrite(attribute, type, values));
}

void OutputFile::write_dataset(const std::string& name, const Shape& shape, hid_t type, const void* values) {
  const Calls check(path_, *error_);
  const Handle dataset = check(H5Dcreate2(file_, name.c_str(), type, data_space(check, shape),
                                          link_creation(check), H5P_DEFAULT, H5P_DEFAULT),
                               H5Dclose);
  // Texts are converted: by default in two buffers of 1 MB that are cleared every time.
  const Handle transfer = check(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  check(H5Pset_buffer(transfer, 1 << 14, nullptr, nullptr));
  check(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, transfer, values));
}

void OutputFile::write_block(const std::string& name, std::uint64_t index, hid_t type, const void* values) {
  const Calls check(path_, *error_);
  const Handle dataset = check(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose);
  std::vector<hsize_t> count = shape_of(check, dataset), start(count.size(), 0);
  start[0] = index, count[0] = 1;
  const Handle space = check(H5Dget_space(dataset), H5Sclose);
  check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
  check(H5Dwrite(dataset, type, data_space(check, {count.begin(), count.end()}), space, H5P_DEFAULT, values));
}

void OutputFile::write_text(const std::string& name, std::string_view text) {
  const Calls check(path_, *error_);
  const std::string terminated(text);
  const char* pointer = terminated.c_str();
  if (H5Lexists(file_, name.c_str(), H5P_DEFAULT) > 0) check(H5Ldelete(file_, name.c_str(), H5P_DEFAULT));
  write_dataset(name, {}, utf8_type(check), &pointer);
}

void OutputFile::write_texts(const std::string& name, const std::vector<std::string>& texts) {
  const Calls check(path_, *error_);
  std::vector<const char*> pointers;
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  write_dataset(name, {pointers.size()}, utf8_type(check), pointers.data());
}

void OutputFile::create_series(const std::string& name, const Shape& item, hid_t type, Storage storage) {
  if (!parts_.empty() && !item.empty()) return create_joined_series(name, item, type);
  const Calls check(path_, *error_);
  Shape none{0}, any{H5S_UNLIMITED};
  const hsize_t scalars = std::max<hsize_t>(kScalarChunkBytes / H5Tget_size(type), 1);
  std::vector<hsize_t> chunk{item.empty() ? scalars : 1};
  for (Shape* shape : {&none, &any}) shape->insert(shape->end(), item.begin(), item.end());
  chunk.insert(chunk.end(), item.begin(), item.end());
  const Handle creation = check(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()));
  const bool is_deflated = storage == Storage::deflated && H5Zfilter_avail(H5Z_FILTER_DEFLATE) > 0;
  if (is_deflated) check(H5Pset_deflate(creation, kDeflateLevel));
  series_[name] = {check(H5Dcreate2(file_, name.c_str(), type, data_space(check, none, &any),
                                    link_creation(check), creation, H5P_DEFAULT),
                         H5Dclose),
                   !item.empty() && !is_deflated};
}

void OutputFile::create_joined_series(const std::string& name, const Shape& item, hid_t type) {
  const Calls check(path_, *error_);
  const auto shape_with = [&](std::uint64_t items, std::uint64_t rows) {
    Shape shape{items};
    shape.insert(shape.end(), item.begin(), item.end());
    shape[1] = rows;
    return shape;
  };
  const auto select = [&](const Handle& space, std::uint64_t first, std::uint64_t row, const Shape& shape) {
    std::vector<hsize_t> start(shape.size(), 0);
    const std::vector<hsize_t> count(shape.begin(), shape.end());
    start[0] = first, start[1] = row;
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr));
  };
  std::uint64_t all = 0;
  for (const SeriesPart& part : parts_) all = std::max(all, part.first + part.items);
  const Handle space = data_space(check, shape_with(all, item[0]));
  const Handle creation = check(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  for (const SeriesPart& part : parts_) {
    const Handle of_part = data_space(check, shape_with(part.items, part.rows));
    const Shape shown = shape_with(part.items, part.use);
    select(space, part.first, part.to, shown);
    select(of_part, 0, part.skip, shown);
    check(H5Pset_virtual(creation, space, part.file.c_str(), name.c_str(), of_part));
  }
  check(H5Dcreate2(file_, name.c_str(), type, data_space(check, shape_with(all, item[0])),
                   link_creation(check), creation, H5P_DEFAULT),
        H5Dclose);
}

void OutputFile::create_text_series(const std::string& name, std::size_t bytes) {
  const Calls check(path_, *error_);
  create_series(name, {}, fixed_utf8_type(check, bytes), Storage::plain);
}

void OutputFile::open_series(const std::string& name, std::uint64_t items) {
  const Calls check(path_, *error_);
  Handle dataset = check(H5Dopen2(file_, name.c_str(), H5P_DEFAULT), H5Dclose);
  std::vector<hsize_t> shape = shape_of(check, dataset);
  check(!shape.empty() && shape[0] >= items ? 0 : -1);
  shape[0] = items;
  check(H5Dset_extent(dataset, shape.data()));
  const Handle creation = check(H5Dget_create_plist(dataset), H5Pclose);
  series_[name] = {std::move(dataset), shape.size() > 1 && H5Pget_nfilters(creation) == 0};
}

void OutputFile::append_item(const std::string& name, hid_t type, const void* item) {
  const Calls check(path_, *error_);
  const auto& [dataset, items_are_plain_chunks] = series_.at(name);
  if (!items_are_plain_chunks) return write_behind(check, dataset, type, item, 1);
  std::vector<hsize_t> shape = shape_of(check, dataset);
  std::vector<hsize_t> start(shape.size(), 0);
  start[0] = shape[0]++;
  check(H5Dset_extent(dataset, shape.data()));
  const auto elements = std::accumulate(shape.begin() + 1, shape.end(), std::size_t{1}, std::multiplies<>());
  check(H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, start.data(), elements * H5Tget_size(type), item));
}

void OutputFile::append(const std::string& name, std::string_view text) {
  const Calls check(path_, *error_);
  const Handle type = check(H5Dget_type(series_.at(name).dataset), H5Tclose);
  std::string padded(text);
  padded.resize(H5Tget_size(type), '\0');
  append_item(name, type, padded.data());
}

void OutputFile::create_rows(const std::string& name, std::uint64_t components, hid_t type) {
  constexpr std::uint64_t kChunkBytes = 1 << 16;
  const Calls check(path_, *error_);
  Shape none{0}, any{H5S_UNLIMITED};
  std::vector<hsize_t> chunk{kChunkBytes / (components * H5Tget_size(type))};
  if (components > 1) none.push_back(components), any.push_back(components), chunk.push_back(components);
  const Handle creation = check(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  check(H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data()));
  series_[name] = {check(H5Dcreate2(file_, name.c_str(), type, data_space(check, none, &any),
                                    link_creation(check), creation, H5P_DEFAULT),
                         H5Dclose)};
}

void OutputFile::append_rows(const std::string& name, hid_t type, const void* values, std::uint64_t count) {
  if (count == 0) return;
  const Calls check(path_, *error_);
  const Handle& dataset = series_.at(name).dataset;
  const std::vector<hsize_t> shape = shape_of(check, dataset);
  write_behind(check, dataset, type, values, count / (shape.size() > 1 ? shape[1] : 1));
}

void OutputFile::link(const std::string& dataset, const std::string& name) {
  const Calls check(path_, *error_);
  check(H5Lcreate_hard(file_, dataset.c_str(), file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT));
}

void OutputFile::make_scale(const std::string& dataset) {
  const Calls check(path_, *error_);
  check(H5DSset_scale(check(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose), nullptr));
}

void OutputFile::attach_scales(const std::string& dataset, const std::vector<std::string>& scales) {
  const Calls check(path_, *error_);
  const Handle target = check(H5Dopen2(file_, dataset.c_str(), H5P_DEFAULT), H5Dclose);
  unsigned dimension = 0;
  for (const std::string& scale : scales)
    check(
        H5DSattach_scale(target, check(H5Dopen2(file_, scale.c_str(), H5P_DEFAULT), H5Dclose), dimension++));
}

void OutputFile::check_written() {
  const Calls check(path_, *error_);
  check(*error_ == 0 ? 0 : -1);
}

void OutputFile::rewrite_attribute(const std::string& object, const std::string& name, hid_t type,
                                   const void* value) {
  const Calls check(path_, *error_);
  // Opened by H5Aopen_by_name, it could not be written (HDF5 1.10.8).
  const Handle owner = check(H5Oopen(file_, object.c_str(), H5P_DEFAULT), H5Oclose);
  const Handle attribute = check(H5Aopen(owner, name.c_str(), H5P_DEFAULT), H5Aclose);
  check(H5Awrite(attribute, type, value));
}

void OutputFile::close() {
  const Calls check(path_, *error_);
  series_.clear();
  const bool closed = file_.close();
  check(closed && *error_ == 0 ? 0 : -1);
}

}  // namespace dic::hdf5
