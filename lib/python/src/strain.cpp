#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dic/field_schema.hpp>
#include <dic/result_strain.hpp>
#include <utility>

#include "bindings.hpp"
#include "fields.hpp"
#include "interruptible.hpp"
#include "options.hpp"

namespace dic::python {

namespace {

NumpyArray array_of(NodeValues<float> values, const Grid& grid) {
  const float* const data = values.data();
  return numpy_of(std::move(values), data,
                  {static_cast<std::size_t>(grid.ny), static_cast<std::size_t>(grid.nx)});
}

/// Says how the errors of a field's points are related. measured: the options that it was measured with.
ResultStrain basis_of(const Field& field, const TrackOptions& measured) {
  ResultStrain basis;
  basis.global = measured.global;
  if (measured.global.enabled && field.resolution.empty()) return basis;
  const RefineOptions& refine = measured.refine;
  basis.subsets = {refine.subset, measured.automatic_order ? 2 : refine.order, refine.weights};
  return basis;
}

nb::dict strain(const nb::dict& arrays, const Array& inside, int step, const OptionValues& measured,
                const OptionValues& wanted) {
  const Field field = field_of(arrays, grid_of(inside, 0, 0, step));
  const ResultStrain basis = basis_of(field, job_with(measured, {}).options);
  const TrackOptions options = job_with(wanted, {}).options;
  StrainField result = interruptible(
      [&](const std::stop_token&) { return field_strain(field, basis, options.strain, options.threads); });
  const Grid& grid = field.grid();
  nb::dict out;
  for (const FieldArray& array : kStrainArrays)
    out[std::string(array.name).c_str()] = array_of(std::move(strain_values(result, array)), grid);
  return out;
}

nb::dict status_names() {
  nb::dict names;
  for (const auto& [status, name] : EnumNames<Status>::table)
    names[std::string(name).c_str()] = static_cast<int>(status);
  return names;
}

/// kFieldArrays without those that no Field holds.
nb::list field_arrays() {
  nb::list arrays;
  for (const FieldArray& array : kMeasuredArrays) {
    nb::dict entry;
    entry["name"] = std::string(array.name);
    entry["type"] = std::string(element_type(array));
    entry["unit"] = std::string(to_string(array.unit));
    entry["optional"] = array.is_optional();
    entry["made_by"] = std::string(to_string(array.made_by));
    entry["description"] = std::string(array.description);
    arrays.append(entry);
  }
  return arrays;
}

}  // namespace

void add_strain(nb::module_& module) {
  using namespace nb::literals;
  module.def("strain", &strain, "arrays"_a, "inside"_a, "step"_a, "measured"_a, "wanted"_a,
             "Strain of one frame from arrays [y, x] by their names, lengths in px. measured: options of the "
             "measurement; wanted: strain-window, strain-measure, threads.");
  module.def(
      "field_arrays", &field_arrays,
      "The arrays of a result in order: a list of dictionaries with name, type (as numpy calls it), unit "
      "(length, strain, none, or a unit itself), optional (not every run makes it), made_by and "
      "description.");
  module.def("status_names", &status_names, "The number of each status by its name.");
}

}  // namespace dic::python
