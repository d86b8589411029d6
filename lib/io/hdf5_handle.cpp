#include "io/hdf5_handle.hpp"

#include <utility>

namespace dic::hdf5 {

Handle::~Handle() {
  if (!valid()) return;
  const SilentErrors silent;
  close();
}

Handle::Handle(Handle&& other) noexcept
    : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}

Handle& Handle::operator=(Handle&& other) noexcept {
  std::swap(id_, other.id_);
  std::swap(close_, other.close_);
  return *this;
}

bool Handle::close() { return close_(std::exchange(id_, H5I_INVALID_HID)) >= 0; }

SilentErrors::SilentErrors() {
  H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

SilentErrors::~SilentErrors() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }

}  // namespace dic::hdf5
