#pragma once

#include <nanobind/nanobind.h>

/// The module dic._dic: what each file adds to it. Options travel as text, by their names; lib/python/dic has the
/// functions that people call.
namespace dic::python {

void add_errors(nanobind::module_& module);
void add_images(nanobind::module_& module);
void add_track(nanobind::module_& module);
void add_stream(nanobind::module_& module);
void add_stereo(nanobind::module_& module);
void add_live(nanobind::module_& module);
void add_strain(nanobind::module_& module);
void add_probe(nanobind::module_& module);
void add_report(nanobind::module_& module);
void add_match(nanobind::module_& module);
void add_correlate(nanobind::module_& module);
void add_synth(nanobind::module_& module);

}  // namespace dic::python
