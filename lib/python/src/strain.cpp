#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

/// How the errors of a field's points are related. measured: the options that it was measured with.
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
  out["exx"] = array_of(std::move(result.exx), grid);
  out["eyy"] = array_of(std::move(result.eyy), grid);
  out["exy"] = array_of(std::move(result.exy), grid);
  out["e1"] = array_of(std::move(result.e1), grid);
  out["e2"] = array_of(std::move(result.e2), grid);
  out["von_mises"] = array_of(std::move(result.von_mises), grid);
  out["sigma_exx"] = array_of(std::move(result.sigma_exx), grid);
  out["sigma_eyy"] = array_of(std::move(result.sigma_eyy), grid);
  out["sigma_exy"] = array_of(std::move(result.sigma_exy), grid);
  return out;
}

nb::dict status_names() {
  nb::dict names;
  for (int k = 0; k < kStatusCount; ++k) names[std::string(to_string(static_cast<Status>(k))).c_str()] = k;
  return names;
}

}  // namespace

void add_strain(nb::module_& module) {
  using namespace nb::literals;
  module.def("strain", &strain, "arrays"_a, "inside"_a, "step"_a, "measured"_a, "wanted"_a,
             "Strain of one frame from arrays [y, x] by their names, lengths in px. measured: options of the "
             "measurement; wanted: strain-window, strain-measure, threads.");
  module.def("status_names", &status_names, "The number of each status by its name.");
}

}  // namespace dic::python
