#include "c_interface/guard.hpp"

namespace dic::c_interface {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

dic_status failed(dic_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (...) {
    last_error().clear();
  }
  return status;
}

}  // namespace dic::c_interface
