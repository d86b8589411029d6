#pragma once

#include <hdf5.h>

#include <cstdint>
#include <dic/export.hpp>
#include <type_traits>
#include <vector>

/// Functions shared by reading and writing of HDF5 files.
namespace dic::hdf5 {

/// Owns one HDF5 identifier.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);

  Handle() = default;
  Handle(hid_t id, Close closer) : id_(id), close_(closer) {}
  DIC_INTERNAL_API ~Handle();
  Handle(Handle&& other) noexcept;
  Handle& operator=(Handle&& other) noexcept;

  operator hid_t() const { return id_; }  // NOLINT: it stands in for the identifier in every HDF5 call
  bool valid() const { return id_ >= 0; }
  /// Closes now; false where HDF5 could not (what was still to be written is lost).
  bool close();

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

/// Keeps HDF5 from printing its error stack while a call may fail.
class SilentErrors {
 public:
  SilentErrors();
  ~SilentErrors();
  SilentErrors(const SilentErrors&) = delete;
  SilentErrors& operator=(const SilentErrors&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

/// The HDF5 type of a C++ element type.
template <typename T>
hid_t native_type() {
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return H5T_NATIVE_UINT16;
  if constexpr (std::is_same_v<T, std::int16_t>) return H5T_NATIVE_INT16;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
}

using Shape = std::vector<std::uint64_t>;

}  // namespace dic::hdf5
