#include <dic/error.hpp>

#include "bindings.hpp"

namespace dic::python {

namespace nb = nanobind;

namespace {

// A translator that is registered later is asked first: bases before what derives from them.
template <typename T>
void add_error(nb::module_& module, const char* name, const nb::object& bases, const char* doc) {
  nb::exception<T> error(module, name, bases);
  error.attr("__doc__") = doc;
}

}  // namespace

void add_errors(nb::module_& module) {
  add_error<Error>(module, "Error", nb::borrow(PyExc_Exception),
                   "Base of everything that dic raises: one sentence says what is wrong and what to do.");
  const nb::object base = module.attr("Error");
  const auto with = [&](PyObject* standard) { return nb::make_tuple(base, nb::borrow(standard)); };
  add_error<UsageError>(module, "UsageError", with(PyExc_ValueError),
                        "A value, or a combination of values, that makes no sense.");
  add_error<FileError>(module, "FileError", with(PyExc_OSError),
                       "A file is missing, unreadable, damaged or not writable.");
  add_error<DeviceError>(module, "DeviceError", with(PyExc_RuntimeError),
                         "A compute device is missing or failed.");
  add_error<Cancelled>(module, "Cancelled", base, "A call ended because it was cancelled.");
}

}  // namespace dic::python
