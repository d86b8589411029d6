#pragma once

#include <dic/field_schema.hpp>
#include <dic/fields.hpp>
#include <memory>

#include "arrays.hpp"

namespace dic::python {

/// The arrays that a measurement with one camera has: its X and Y are positions (kPositionArrays).
inline constexpr auto& kOneCameraArrays =
    kArraysIf<[](const FieldArray& array) { return array.is_in_field() && array.made_by != MadeBy::stereo; }>;

/// A grid whose nodes begin at (x0, y0), from a mask [y, x] of those inside.
std::shared_ptr<const Grid> grid_of(const Array& inside, int x0, int y0, int step);

/// The field of arrays [y, x] by the names that they have in result.vtkhdf; lengths in px. Those that are not
/// given stay empty. Throws UsageError: another shape, a status that is none.
Field field_of(const nb::dict& arrays, std::shared_ptr<const Grid> grid);

}  // namespace dic::python
