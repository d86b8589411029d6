#include "io/hdf5_driver.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "io/hdf5_superblock.hpp"

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

namespace dic::hdf5 {
namespace {

/// An open file. HDF5 fills in the base.
struct DriverFile : H5FD_t {
  int descriptor = -1;
  haddr_t allocated = 0;                 // end of what HDF5 has given out
  haddr_t written = 0;                   // end of what it has written
  haddr_t taken = 0;                     // end of the blocks that the file has, or may have
  haddr_t told = 0;                      // end of the file as its superblock tells it
  std::optional<Superblock> superblock;  // last superblock that HDF5 wrote; readers look at it during writing
  int* error = nullptr;

  void fail() {
    if (*error == 0) *error = errno;
  }
};

DriverFile& self(H5FD_t* file) { return *static_cast<DriverFile*>(file); }
const DriverFile& self(const H5FD_t* file) { return *static_cast<const DriverFile*>(file); }

/// HDF5 first tries whether the file can be opened without being emptied.
H5FD_t* open_file(const char* name, unsigned flags, hid_t access, haddr_t) {
  auto file = std::make_unique<DriverFile>();
  file->error = *static_cast<int* const*>(H5Pget_driver_info(access));
  const int made =
      ((flags & H5F_ACC_CREAT) != 0 ? O_CREAT : 0) | ((flags & H5F_ACC_TRUNC) != 0 ? O_TRUNC : 0);
  file->descriptor = ::open(name, O_RDWR | made | O_NOFOLLOW | O_CLOEXEC, 0666);
  struct stat found {};
  if (file->descriptor < 0 || ::fstat(file->descriptor, &found) != 0) {
    file->fail();
    if (file->descriptor >= 0) ::close(file->descriptor);
    return nullptr;
  }
  *file->error = 0;
  file->written = file->taken = static_cast<haddr_t>(found.st_size);
  return file.release();
}

/// Blocks that are taken before they are needed, many at once, shorten the writing of large fields by a
/// tenth. A system that cannot do this takes them one by one.
void take_blocks(DriverFile& file, haddr_t end) {
  constexpr haddr_t most = haddr_t{64} << 20;
  if (end <= file.taken) return;
  const haddr_t from = std::exchange(file.taken, end + std::min(end, most));
  ::fallocate(file.descriptor, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(from),
              static_cast<off_t>(file.taken - from));
}

herr_t close_file(H5FD_t* file) {
  const std::unique_ptr<DriverFile> owned(&self(file));
  // This gives blocks back that were not needed. What was written before a failure stays readable.
  struct stat found {};
  const bool keeps_length = *owned->error != 0 && ::fstat(owned->descriptor, &found) == 0;
  const auto length = keeps_length ? found.st_size : static_cast<off_t>(owned->written);
  if (length > 0 && ::ftruncate(owned->descriptor, length) != 0) owned->fail();
  if (::close(owned->descriptor) != 0) owned->fail();
  return 0;
}

herr_t query_features(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
              H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_SUPPORTS_SWMR_IO;
  return 0;
}

haddr_t get_allocated(const H5FD_t* file, H5FD_mem_t) { return self(file).allocated; }
herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  self(file).allocated = end;
  return 0;
}
haddr_t get_written(const H5FD_t* file, H5FD_mem_t) { return self(file).written; }

/// Reads what was written before; zeros beyond, as HDF5 expects.
herr_t read_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, void* bytes) {
  auto* to = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t n = ::pread(self(file).descriptor, to, size, static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) self(file).fail();
    if (n <= 0) break;
    to += n, address += n, size -= n;
  }
  std::memset(to, 0, size);
  return 0;
}

void write_at(DriverFile& target, haddr_t address, const char* from, size_t size) {
  target.written = std::max(target.written, address + size);
  while (size > 0 && *target.error == 0) {
    const ssize_t n = ::pwrite(target.descriptor, from, size, static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) target.fail();
    if (n > 0) from += n, address += n, size -= n;
  }
}

void set_length(DriverFile& target, haddr_t length) {
  if (*target.error == 0 && ::ftruncate(target.descriptor, static_cast<off_t>(length)) != 0) target.fail();
  target.written = length;
}

/// The superblock tells the new end of the file before anything refers to what is there.
void tell_end(DriverFile& target) {
  if (!target.superblock || target.allocated <= target.told) return;
  if (target.written < target.allocated) set_length(target, target.allocated);
  target.told = target.allocated;
  target.superblock->set_end_of_file(target.told);
  const auto& bytes = target.superblock->bytes();
  write_at(target, 0, bytes.data(), bytes.size());
}

herr_t write_bytes(H5FD_t* file, H5FD_mem_t kind, hid_t, haddr_t address, size_t size, const void* bytes) {
  DriverFile& target = self(file);
  const auto* from = static_cast<const char*>(bytes);
  take_blocks(target, address + size);
  if (kind != H5FD_MEM_DRAW) tell_end(target);
  if (auto superblock = address == 0 ? Superblock::in({from, size}) : std::nullopt) {
    superblock->set_unmarked();
    target.told = superblock->end_of_file();
    target.superblock = superblock;
    const auto& own = superblock->bytes();
    write_at(target, 0, own.data(), own.size());
    address += own.size(), from += own.size(), size -= own.size();
  }
  write_at(target, address, from, size);
  return 0;
}

herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  DriverFile& target = self(file);
  if (target.written != target.allocated) set_length(target, target.allocated);
  return 0;
}

H5FD_class_t forgiving_driver() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(300);  // within the range reserved for users of HDF5
#endif
  driver.name = "dic_forgiving";
  driver.maxaddr = static_cast<haddr_t>(1) << 62;
  driver.fc_degree = H5F_CLOSE_STRONG;
  driver.fapl_size = sizeof(int*);
  driver.open = open_file;
  driver.close = close_file;
  driver.query = query_features;
  driver.get_eoa = get_allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = get_written;
  driver.read = read_bytes;
  driver.write = write_bytes;
  driver.truncate = truncate_file;
  constexpr H5FD_mem_t kSpaces[] = H5FD_FLMAP_DICHOTOMY;
  std::copy(std::begin(kSpaces), std::end(kSpaces), driver.fl_map);
  return driver;
}

}  // namespace

hid_t register_forgiving_driver() {
  static const H5FD_class_t driver = forgiving_driver();
  return H5FDregister(&driver);
}

herr_t use_forgiving_driver(hid_t access, hid_t driver, int* error) {
  return H5Pset_driver(access, driver, &error);
}

}  // namespace dic::hdf5
