#include <nanobind/stl/string.h>

#include <dic/info.hpp>

#include "bindings.hpp"

NB_MODULE(_dic, module) {
  nanobind::set_leak_warnings(false);  // an interpreter that ends leaves objects behind, which is no leak
  module.doc() = "The C++ library under the package dic: see there.";
  module.def("version", &dic::version, "Version of the library.");
  dic::python::add_errors(module);
  dic::python::add_images(module);
  dic::python::add_track(module);
  dic::python::add_stream(module);
  dic::python::add_stereo(module);
  dic::python::add_live(module);
  dic::python::add_strain(module);
  dic::python::add_probe(module);
  dic::python::add_report(module);
  dic::python::add_match(module);
  dic::python::add_correlate(module);
  dic::python::add_synth(module);
}
