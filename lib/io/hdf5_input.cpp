#include "io/hdf5_input.hpp"

#include <algorithm>
#include <dic/error.hpp>
#include <limits>
#include <system_error>
#include <utility>

#include "io/hdf5_texts.hpp"

namespace dic::hdf5 {
namespace {

namespace fs = std::filesystem;

// Deflate makes a file at most about this many times smaller. What claims to hold more is damaged.
constexpr std::uintmax_t kLargestCompression = 1100;

/// Called where a link leads to another file: not followed.
herr_t refuse_other_files(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

Shape shape_of_space(hid_t space) {
  const int dimensions = H5Sget_simple_extent_ndims(space);
  if (dimensions <= 0) return {};
  std::vector<hsize_t> shape(static_cast<std::size_t>(dimensions));
  H5Sget_simple_extent_dims(space, shape.data(), nullptr);
  return {shape.begin(), shape.end()};
}

bool is_number(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return kind == H5T_INTEGER || kind == H5T_FLOAT;
}

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

}  // namespace

InputFile::InputFile(fs::path path) : path_(std::move(path)) {
  const SilentErrors silent;
  std::error_code failure;
  if (!fs::is_regular_file(path_, failure)) fail("there is no such file");
  bytes_ = fs::file_size(path_, failure);
  links_ = Handle(H5Pcreate(H5P_LINK_ACCESS), H5Pclose);
  H5Pset_elink_cb(links_, refuse_other_files, nullptr);
  const hid_t file = H5Fopen(path_.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  if (file < 0) fail("it is no HDF5 file, it is damaged, or you have no right to read it");
  file_ = Handle(file, H5Fclose);
}

void InputFile::fail(const std::string& what) const {
  throw FileError("'" + path_.string() + "' cannot be read: " + what + ".");
}

bool InputFile::has(const std::string& name) const {
  const SilentErrors silent;
  for (std::size_t end = 0; end != std::string::npos;) {
    end = name.find('/', end + 1);
    if (H5Lexists(file_, name.substr(0, end).c_str(), links_) <= 0) return false;
  }
  return H5Oexists_by_name(file_, name.c_str(), links_) > 0;
}

bool InputFile::is_virtual(const std::string& name) const {
  const SilentErrors silent;
  const Handle object = open_object(name);
  if (H5Iget_type(object) != H5I_DATASET) return false;
  const Handle creation(H5Dget_create_plist(object), H5Pclose);
  return creation.valid() && H5Pget_layout(creation) == H5D_VIRTUAL;
}

std::vector<std::string> InputFile::datasets(const std::string& group) const {
  const SilentErrors silent;
  std::vector<std::string> names;
  if (H5Literate_by_name(file_, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add_name, &names,
                         links_) < 0)
    fail("it has no group " + group);
  std::erase_if(names, [&](const std::string& name) {
    const Handle object(H5Oopen(file_, (group + "/" + name).c_str(), links_), H5Oclose);
    return !object.valid() || H5Iget_type(object) != H5I_DATASET;
  });
  return names;
}

Handle InputFile::open_object(const std::string& name) const {
  const hid_t object = H5Oopen(file_, name.c_str(), links_);
  if (object < 0) fail("it has no " + name);
  return {object, H5Oclose};
}

Handle InputFile::open_dataset(const std::string& name) const {
  Handle object = open_object(name);
  if (H5Iget_type(object) != H5I_DATASET) fail(name + " is no dataset");
  const Handle creation(H5Dget_create_plist(object), H5Pclose);
  if (!creation.valid() || H5Pget_external_count(creation) != 0) fail(name + " lies in another file");
  if (H5Pget_layout(creation) == H5D_VIRTUAL) check_parts(name, creation);
  return object;
}

/// Results of a run on several machines lie in files below the folder of the result. No other files are
/// opened.
void InputFile::check_parts(const std::string& name, const Handle& creation) const {
  std::size_t count = 0;
  if (is_part_ || H5Pget_virtual_count(creation, &count) < 0) fail(name + " lies in another file");
  for (std::size_t k = 0; k < count; ++k) {
    std::vector<char> file(H5Pget_virtual_filename(creation, k, nullptr, 0) + 1);
    std::vector<char> dataset(H5Pget_virtual_dsetname(creation, k, nullptr, 0) + 1);
    H5Pget_virtual_filename(creation, k, file.data(), file.size());
    H5Pget_virtual_dsetname(creation, k, dataset.data(), dataset.size());
    const auto part = parts_.find(file.data());
    const InputFile& opened = part != parts_.end()
                                  ? *part->second
                                  : *parts_.emplace(file.data(), open_part(file.data())).first->second;
    const Handle plain = opened.open_dataset(dataset.data());
  }
}

std::unique_ptr<InputFile> InputFile::open_part(const fs::path& file) const {
  std::error_code failure;
  const fs::path folder = fs::canonical(fs::absolute(path_).parent_path(), failure);
  const fs::path place = fs::canonical(folder / file, failure);
  const fs::path inside = place.lexically_relative(folder);
  if (failure) fail("its part " + file.string() + " is missing");
  if (file.is_absolute() || inside.empty() || *inside.begin() == "..")
    fail("its part " + file.string() + " lies in another folder");
  auto part = std::make_unique<InputFile>(place);
  part->is_part_ = true;
  bytes_ += part->bytes_;
  return part;
}

Shape InputFile::shape(const std::string& name) const {
  const SilentErrors silent;
  return shape_of_space(Handle(H5Dget_space(open_dataset(name)), H5Sclose));
}

bool InputFile::is_floating(const std::string& name) const {
  const SilentErrors silent;
  return H5Tget_class(Handle(H5Dget_type(open_dataset(name)), H5Tclose)) == H5T_FLOAT;
}

std::size_t InputFile::element_size(const std::string& name) const {
  const SilentErrors silent;
  return H5Tget_size(Handle(H5Dget_type(open_dataset(name)), H5Tclose));
}

/// Number of elements of an array with `count` of them along each dimension. Throws if the file is too
/// small to hold them.
std::size_t InputFile::elements(const std::string& name, const Shape& count) const {
  std::uintmax_t product = 1;
  const std::uintmax_t most = bytes_ * kLargestCompression / std::max<std::size_t>(element_size(name), 1);
  for (const std::uint64_t along : count) {
    if (along != 0 && product > most / along) fail(name + " claims to be larger than the file can hold");
    product *= along;
  }
  return product;
}

void InputFile::read_block(const std::string& name, const Shape& start, const Shape& count, hid_t type,
                           void* values) const {
  const SilentErrors silent;
  const Handle dataset = open_dataset(name);
  const Handle stored(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  if (!is_number(stored)) fail(name + " holds no numbers");
  const Shape all = shape_of_space(space);
  bool fits = all.size() == start.size() && all.size() == count.size();
  for (std::size_t k = 0; fits && k < all.size(); ++k)
    fits = start[k] <= all[k] && count[k] <= all[k] - start[k];
  if (!fits) fail(name + " has not the size that belongs to it");
  if (std::ranges::find(count, std::uint64_t{0}) != count.end()) return;
  const std::vector<hsize_t> from(start.begin(), start.end()), number(count.begin(), count.end());
  Handle memory(H5Screate(H5S_SCALAR), H5Sclose);
  if (!number.empty()) {
    memory = Handle(H5Screate_simple(static_cast<int>(number.size()), number.data(), nullptr), H5Sclose);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, from.data(), nullptr, number.data(), nullptr);
  }
  if (H5Dread(dataset, type, memory, space, H5P_DEFAULT, values) < 0)
    fail("its dataset " + name + " is damaged");
}

std::vector<std::string> InputFile::texts(const std::string& name) const {
  const SilentErrors silent;
  const Handle dataset = open_dataset(name);
  const Handle type(H5Dget_type(dataset), H5Tclose), space(H5Dget_space(dataset), H5Sclose);
  elements(name, shape_of_space(space));
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Tis_variable_str(type) > 0 && H5Pget_layout(creation) == H5D_VIRTUAL)
    fail("the text of " + name + " lies in another file");
  const auto read = [&](hid_t memory, void* bytes) {
    return H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
  };
  auto texts = read_texts(path_, file_, type, space, read);
  if (!texts) fail("the text of " + name + " is damaged");
  return std::move(*texts);
}

std::optional<std::string> InputFile::text_attribute(const std::string& object,
                                                     const std::string& name) const {
  const SilentErrors silent;
  const Handle owner = open_object(object);
  if (H5Aexists(owner, name.c_str()) <= 0) return {};
  const Handle attribute(H5Aopen(owner, name.c_str(), H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  const auto read = [&](hid_t memory, void* bytes) { return H5Aread(attribute, memory, bytes); };
  const auto texts = read_texts(path_, file_, type, space, read);
  if (!texts || texts->size() != 1) return {};
  return texts->front();
}

std::optional<double> InputFile::number_attribute(const std::string& object, const std::string& name) const {
  const SilentErrors silent;
  const Handle owner = open_object(object);
  if (H5Aexists(owner, name.c_str()) <= 0) return {};
  const Handle attribute(H5Aopen(owner, name.c_str(), H5P_DEFAULT), H5Aclose);
  const Handle type(H5Aget_type(attribute), H5Tclose), space(H5Aget_space(attribute), H5Sclose);
  double value = std::numeric_limits<double>::quiet_NaN();
  if (!is_number(type) || H5Sget_simple_extent_npoints(space) != 1 ||
      H5Aread(attribute, H5T_NATIVE_DOUBLE, &value) < 0)
    return {};
  return value;
}

}  // namespace dic::hdf5
