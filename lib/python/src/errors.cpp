#include <algorithm>
#include <dic/error.hpp>
#include <exception>
#include <string>
#include <string_view>

#include "bindings.hpp"

namespace dic::python {

namespace nb = nanobind;

namespace {

bool is_part_of_name(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }

/// A message in the words of Python: "--strain-window" becomes strain_window, "--force" force=True, "-o"
/// output.
std::string in_python(std::string_view message) {
  std::string text;
  for (std::size_t k = 0; k < message.size();) {
    const bool begins = k == 0 || std::string_view(" (\"'`").find(message[k - 1]) != std::string_view::npos;
    const std::string_view rest = message.substr(k);
    std::size_t length = 2;
    while (length < rest.size() && is_part_of_name(rest[length])) ++length;
    if (!begins || !rest.starts_with('-') || (!rest.starts_with("--") && rest.substr(0, length) != "-o") ||
        length < 2 || rest.substr(0, length) == "--") {
      text += message[k++];
      continue;
    }
    std::string name(rest.starts_with("--") ? rest.substr(2, length - 2) : "output");
    std::ranges::replace(name, '-', '_');
    if (name == "global") name += '_';
    if (name == "force" || name == "resume") name += "=True";
    text += name;
    k += length;
  }
  return text;
}

/// A translator that is registered later is asked first: bases before what derives from them.
template <typename T>
void add_error(nb::module_& module, const char* name, const nb::object& bases, const char* doc) {
  nb::exception<T> error(module, name, bases);
  error.attr("__doc__") = doc;
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* type) {
        try {
          std::rethrow_exception(thrown);
        } catch (const T& e) {
          PyErr_SetString(static_cast<PyObject*>(type), in_python(e.what()).c_str());
        }
      },
      error.ptr());
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
