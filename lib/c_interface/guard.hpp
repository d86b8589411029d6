#pragma once

#include <dic/dic.h>

#include <dic/error.hpp>
#include <new>
#include <string>

namespace dic::c_interface {

/// The message that dic_last_error returns on this thread.
std::string& last_error();

dic_status failed(dic_status status, const char* text) noexcept;

/// Calls work() and turns its exceptions into a status and the text of dic_last_error.
template <typename Work>
dic_status guarded(Work&& work) noexcept {
  try {
    work();
    return DIC_OK;
  } catch (const UsageError& e) {
    return failed(DIC_USAGE_ERROR, e.what());
  } catch (const FileError& e) {
    return failed(DIC_FILE_ERROR, e.what());
  } catch (const DeviceError& e) {
    return failed(DIC_DEVICE_ERROR, e.what());
  } catch (const Cancelled& e) {
    return failed(DIC_CANCELLED, e.what());
  } catch (const std::bad_alloc&) {
    return failed(DIC_OUT_OF_MEMORY, "Not enough memory: use a larger step or a smaller region of interest.");
  } catch (const std::exception& e) {
    return failed(DIC_OTHER_ERROR, e.what());
  } catch (...) {
    return failed(DIC_OTHER_ERROR, "An unknown failure.");
  }
}

/// The object that a pointer points to. Throws UsageError for NULL.
template <typename T>
T& checked(T* pointer, const char* name) {
  if (!pointer) throw UsageError(std::string("The pointer \"") + name + "\" is NULL.");
  return *pointer;
}

}  // namespace dic::c_interface
