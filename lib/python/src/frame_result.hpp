#pragma once

#include <nanobind/nanobind.h>

#include <dic/track.hpp>

namespace dic::python {

/// Adds the classes Grid and FrameResult.
void add_frame_result(nanobind::module_& module);

}  // namespace dic::python
