#include "io/hdf5_driver.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <memory>
#include <utility>

#if H5_VERSION_GE(1, 14, 0)
#include <H5FDdevelop.h>
#endif

namespace dic::hdf5 {
namespace {

/// An open file. HDF5 fills in the base.
struct DriverFile : H5FD_t {
  int descriptor = -1;
  haddr_t allocated = 0;  // end of what HDF5 has given out
  haddr_t written = 0;    // end of what it has written
  haddr_t taken = 0;      // end of the blocks that the file has, or may have
  int* error = nullptr;

  void fail() {
    if (*error == 0) *error = errno;
  }
};

DriverFile& self(H5FD_t* file) { return *static_cast<DriverFile*>(file); }
const DriverFile& self(const H5FD_t* file) { return *static_cast<const DriverFile*>(file); }

H5FD_t* open_file(const char* name, unsigned, hid_t access, haddr_t) {
  auto file = std::make_unique<DriverFile>();
  file->error = *static_cast<int* const*>(H5Pget_driver_info(access));
  file->descriptor = ::open(name, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file->descriptor >= 0) return file.release();
  file->fail();
  return nullptr;
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
  if (owned->written > 0 && ::ftruncate(owned->descriptor, static_cast<off_t>(owned->written)) != 0)
    owned->fail();  // this gives blocks back that were not needed
  if (::close(owned->descriptor) != 0) owned->fail();
  return 0;
}

herr_t query_features(const H5FD_t*, unsigned long* features) {
  *features = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
              H5FD_FEAT_AGGREGATE_SMALLDATA;
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

herr_t write_bytes(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t address, size_t size, const void* bytes) {
  DriverFile& target = self(file);
  const auto* from = static_cast<const char*>(bytes);
  target.written = std::max(target.written, address + size);
  take_blocks(target, address + size);
  while (size > 0 && *target.error == 0) {
    const ssize_t n = ::pwrite(target.descriptor, from, size, static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) target.fail();
    if (n > 0) from += n, address += n, size -= n;
  }
  return 0;
}

herr_t truncate_file(H5FD_t* file, hid_t, hbool_t) {
  DriverFile& target = self(file);
  if (target.written == target.allocated) return 0;
  if (::ftruncate(target.descriptor, static_cast<off_t>(target.allocated)) != 0) target.fail();
  target.written = target.allocated;
  return 0;
}

H5FD_class_t forgiving_driver() {
  H5FD_class_t driver{};
#ifdef H5FD_CLASS_VERSION
  driver.version = H5FD_CLASS_VERSION;
  driver.value = static_cast<H5FD_class_value_t>(300);  // from the range that HDF5 leaves to its users
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
