/// Input: changes to a result of dic track, 10 bytes each. The file stays valid HDF5, because forged HDF5
/// records are not the subject here (libhdf5 1.10 crashes on some). It is read as by dic report.
#include <hdf5.h>

#include <cstring>
#include <dic/error.hpp>
#include <dic/result.hpp>
#include <fstream>
#include <iterator>
#include <vector>

#include "io/hdf5_handle.hpp"
#include "memory_file.hpp"
#include "view/report.hpp"

namespace dic {
namespace {

using hdf5::Handle;

struct Change {
  std::uint8_t kind, object;
  std::uint8_t bytes[8];

  double number() const {
    double value = 0;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};

/// The contents of a result.
struct Seed {
  std::vector<std::uint8_t> bytes;
  std::vector<std::string> datasets;
  std::vector<std::pair<std::string, std::string>> attributes;  // object, name
};

herr_t add_attribute(hid_t object, const char* name, const H5A_info_t*, void* seed) {
  char path[256];
  H5Iget_name(object, path, sizeof path);
  static_cast<Seed*>(seed)->attributes.emplace_back(path, name);
  return 0;
}

herr_t add_object(hid_t file, const char* name, const H5O_info_t* info, void* seed) {
  if (info->type == H5O_TYPE_DATASET) static_cast<Seed*>(seed)->datasets.emplace_back(name);
  const Handle object(H5Oopen(file, name, H5P_DEFAULT), H5Oclose);
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, add_attribute, seed);
  return 0;
}

Seed read_seed(const char* path) {
  Seed seed;
  std::ifstream stream(path, std::ios::binary);
  seed.bytes.assign(std::istreambuf_iterator<char>(stream), {});
  const MemoryFile file(seed.bytes);
  const Handle opened(H5Fopen(file.path().c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  H5Ovisit2(opened, H5_INDEX_NAME, H5_ITER_INC, add_object, &seed, H5O_INFO_BASIC);
  require(seed.datasets.size() > 20 && seed.attributes.size() > 20);
  require(Result(file.path()).frame_count() == 2);
  return seed;
}

/// One of the types that a dataset or attribute may get, at most 8 bytes.
Handle type_of(int which) {
  const hid_t numbers[] = {H5T_NATIVE_DOUBLE, H5T_NATIVE_FLOAT, H5T_NATIVE_INT32, H5T_NATIVE_UINT8,
                           H5T_NATIVE_INT64};
  const Handle text(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(text, 8);
  return {H5Tcopy(which % 6 == 5 ? static_cast<hid_t>(text) : numbers[which % 6]), H5Tclose};
}

void replace_attribute(hid_t file, const std::pair<std::string, std::string>& which, const Change& change) {
  const auto& [path, name] = which;
  H5Adelete_by_name(file, path.c_str(), name.c_str(), H5P_DEFAULT);
  const int type = change.kind / 8;
  if (type % 7 == 6) return;
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose), stored = type_of(type);
  const Handle made(H5Acreate_by_name(file, path.c_str(), name.c_str(), stored, space, H5P_DEFAULT,
                                      H5P_DEFAULT, H5P_DEFAULT),
                    H5Aclose);
  if (type % 6 == 0 || type % 6 == 5)
    H5Awrite(made, stored, change.bytes);
  else {
    const double value = change.bytes[0] - 1.0;
    H5Awrite(made, H5T_NATIVE_DOUBLE, &value);
  }
}

/// Replaces a dataset by one of another shape and type without stored elements.
void replace_dataset(hid_t file, const std::string& name, const Change& change) {
  H5Ldelete(file, name.c_str(), H5P_DEFAULT);
  const int rank = change.bytes[0] % 5;
  if (rank == 4 && change.bytes[1] > 128) return;
  hsize_t size[4], chunk[4] = {1, 1, 1, 1};
  for (int k = 0; k < 4; ++k)
    size[k] = static_cast<hsize_t>(change.bytes[k + 1]) << (change.bytes[5] >> (2 * k) & 3) * 10;
  const Handle space(rank == 0 ? H5Screate(H5S_SCALAR) : H5Screate_simple(rank, size, nullptr), H5Sclose);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose), type = type_of(change.bytes[6]);
  if (rank > 0) H5Pset_chunk(creation, rank, chunk);
  Handle(H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT), H5Dclose);
}

void replace_element(hid_t file, const std::string& name, const Change& change) {
  const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (H5Dget_storage_size(dataset) == 0) return;  // HDF5 1.10.8 may crash when it writes the first element
  const Handle all(H5Dget_space(dataset), H5Sclose), one(H5Screate(H5S_SCALAR), H5Sclose);
  hsize_t size[8] = {}, at[8] = {};
  const int rank = H5Sget_simple_extent_ndims(all);
  if (rank < 1 || rank > 4) return;
  H5Sget_simple_extent_dims(all, size, nullptr);
  for (int k = 0; k < rank; ++k) {
    if (size[k] == 0) return;
    at[k] = change.bytes[k] % size[k];
  }
  const double value = change.number();
  H5Sselect_elements(all, H5S_SELECT_SET, 1, at);
  H5Dwrite(dataset, H5T_NATIVE_DOUBLE, one, all, H5P_DEFAULT, &value);
}

void apply(hid_t file, const Seed& seed, const Change& change) {
  const std::string& name = seed.datasets[change.object % seed.datasets.size()];
  const std::string& other = seed.datasets[change.bytes[0] % seed.datasets.size()];
  switch (change.kind % 5) {
    case 0:
    case 1:
      return replace_attribute(file, seed.attributes[change.object % seed.attributes.size()], change);
    case 2:
      return replace_dataset(file, name, change);
    case 3:
      return replace_element(file, name, change);
    default:
      H5Ldelete(file, name.c_str(), H5P_DEFAULT);
      H5Lcreate_hard(file, other.c_str(), file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
  }
}

void read_all(const Result& result, bool with_report) {
  for (int frame = 0; frame < result.frame_count(); ++frame) {
    result.field(frame);
    app::result_json(result, {}, {frame});
    for (const std::string& array : app::page_arrays(result)) app::field_bytes(result, array, frame);
  }
  // slower, because it makes the whole compressed page
  if (with_report) app::report_html(result, {}, {}, {});
}

void read_changed(const Seed& seed, std::span<const std::uint8_t> input, bool with_report) {
  const MemoryFile file(seed.bytes);
  {
    const Handle opened(H5Fopen(file.path().c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
    for (; input.size() >= sizeof(Change); input = input.subspan(sizeof(Change))) {
      Change change;
      std::memcpy(&change, input.data(), sizeof change);
      apply(opened, seed, change);
    }
  }
  try {
    read_all(Result(file.path()), with_report);
  } catch (const Error&) {
  }
}

}  // namespace
}  // namespace dic

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const dic::Seed plain = dic::read_seed(DIC_FUZZ_RESULTS "/plain.vtkhdf"),
                         camera = dic::read_seed(DIC_FUZZ_RESULTS "/camera.vtkhdf");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  if (size > 0) dic::read_changed(data[0] % 2 == 0 ? plain : camera, {data + 1, size - 1}, data[0] % 8 >= 6);
  return 0;
}
