#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/hdf5_handle.hpp"

namespace dic::hdf5 {

/// Reads elements of a dataset or an attribute in a type of memory into a buffer.
using ReadElements = std::function<herr_t(hid_t, void*)>;

/// Texts of fixed or variable length: those that `read` yields of elements of `type`, stored in `file`, which
/// is `path`. Texts of variable length lie in the file's global heaps. HDF5 1.10 trusts the lengths in these,
/// so that a damaged or malicious one crashes it; here they are checked. None if something of it is damaged.
std::optional<std::vector<std::string>> read_texts(const std::filesystem::path& path, hid_t file, hid_t type,
                                                   hid_t space, const ReadElements& read);

}  // namespace dic::hdf5
