#pragma once

#include <hdf5.h>

namespace dic::hdf5 {

/// Registers a file driver that writes as HDF5's own does, but keeps failures from HDF5: once a flush has
/// failed, HDF5 1.10 can neither close the file nor survive the end of the process. After a failure the
/// driver ignores further writes; the caller looks at the error that it recorded.
///
/// Returns the driver's identifier, to be released with H5FDunregister, or a negative number.
hid_t register_forgiving_driver();

/// Selects the driver for a file access list. `error` receives the first errno (0 = none) and must outlive
/// the file.
herr_t use_forgiving_driver(hid_t access, hid_t driver, int* error);

}  // namespace dic::hdf5
