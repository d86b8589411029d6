#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <dic/error.hpp>
#include <dic/fields.hpp>
#include <dic/track_options.hpp>
#include <memory>
#include <optional>

#include "arrays.hpp"
#include "bindings.hpp"
#include "interruptible.hpp"

namespace dic::python {

namespace {

template <typename T>
using Nodes = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

StrainOptions options_of(const std::string& window, const std::string& measure) {
  TrackJob job;
  track_option("strain-window").set(job, window);
  track_option("strain-measure").set(job, measure);
  return job.options.strain;
}

NumpyArray array_of(NodeValues<float> values, const Grid& grid) {
  const float* const data = values.data();
  return numpy_of(std::move(values), data,
                  {static_cast<std::size_t>(grid.ny), static_cast<std::size_t>(grid.nx)});
}

template <typename T>
NodeValues<T> checked(const Nodes<T>& array, const Grid& grid) {
  if (array.shape(0) != static_cast<std::size_t>(grid.ny) ||
      array.shape(1) != static_cast<std::size_t>(grid.nx))
    throw UsageError("Arrays of the same nodes have the same shape [y, x].");
  return node_values(array);
}

nb::dict strain(const Nodes<double>& u, const Nodes<double>& v, const Nodes<std::uint8_t>& status,
                const Nodes<float>& sigma_u, const Nodes<float>& sigma_v, const Nodes<std::uint8_t>& inside,
                int step, const std::string& window, const std::string& measure, int subset, int order,
                const std::optional<Nodes<double>>& x, const std::optional<Nodes<double>>& y, int threads) {
  const StrainOptions options = options_of(window, measure);
  Grid grid;
  grid.step = step;
  grid.ny = static_cast<int>(u.shape(0));
  grid.nx = static_cast<int>(u.shape(1));
  const NodeValues<std::uint8_t> is_inside = checked(inside, grid);
  grid.inside.assign(is_inside.begin(), is_inside.end());
  Field field(grid);
  field.u = checked(u, grid);
  field.v = checked(v, grid);
  field.sigma_u = checked(sigma_u, grid);
  field.sigma_v = checked(sigma_v, grid);
  const NodeValues<std::uint8_t> numbers = checked(status, grid);
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] >= kStatusCount) throw UsageError("A status is a number from 0 to 8.");
    field.status[k] = static_cast<Status>(numbers[k]);
  }
  if (x && y)
    field.positions =
        std::make_shared<NodePositions>(NodePositions{.x = checked(*x, grid), .y = checked(*y, grid)});
  std::optional<MeasuredSubsets> subsets;
  if (subset > 0) subsets = {.size = subset, .order = order};
  StrainField result =
      interruptible([&](const std::stop_token&) { return compute_strain(field, options, threads, subsets); });
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
  module.def("strain", &strain, "u"_a, "v"_a, "status"_a, "sigma_u"_a, "sigma_v"_a, "inside"_a, "step"_a,
             "window"_a, "measure"_a, "subset"_a = 0, "order"_a = 1, "x"_a = nb::none(), "y"_a = nb::none(),
             "threads"_a = 0,
             "Strain of one frame from arrays [y, x]; lengths in px. subset = 0: no standard deviations.");
  module.def("status_names", &status_names, "The number of each status by its name.");
}

}  // namespace dic::python
