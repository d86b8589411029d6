#include <nanobind/stl/string.h>

#include <dic/info.hpp>

#include "bindings.hpp"

NB_MODULE(_dic, module) {
  module.doc() = "The C++ library under the package dic: see there.";
  module.attr("__version__") = dic::version();
  dic::python::add_errors(module);
  dic::python::add_images(module);
  dic::python::add_track(module);
  dic::python::add_stream(module);
  dic::python::add_strain(module);
  dic::python::add_match(module);
  dic::python::add_correlate(module);
  dic::python::add_synth(module);
}
