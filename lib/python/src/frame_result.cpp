#include "frame_result.hpp"

#include <nanobind/stl/string.h>

#include <cctype>
#include <dic/field_schema.hpp>
#include <string>

#include "arrays.hpp"
#include "fields.hpp"

namespace dic::python {

namespace {

std::vector<int> columns(const Grid& grid) {
  std::vector<int> x;
  for (int i = 0; i < grid.nx; ++i) x.push_back(grid.x(i));
  return x;
}

std::vector<int> rows(const Grid& grid) {
  std::vector<int> y;
  for (int j = 0; j < grid.ny; ++j) y.push_back(grid.y(j));
  return y;
}

std::pair<std::size_t, std::size_t> shape_of(const Grid& grid) {
  return {static_cast<std::size_t>(grid.ny), static_cast<std::size_t>(grid.nx)};
}

NumpyArray inside(nb::handle self) {
  auto& grid = nb::cast<Grid&>(self);
  const auto [ny, nx] = shape_of(grid);
  return numpy_view(reinterpret_cast<bool*>(grid.inside.data()), {ny, nx}, self);
}

/// The values of a member as an array [y, x] that is a view of the result; None where there are none, as in a
/// frame with an error.
template <typename T>
NumpyArray nodes(nb::handle self, NodeValues<T>& values) {
  if (values.empty()) return nb::borrow<NumpyArray>(nb::none());
  const auto [ny, nx] = shape_of(nb::cast<FrameResult&>(self).field.grid());
  return numpy_view(values.data(), {ny, nx}, self);
}

/// Statuses are numbers in Python.
NumpyArray nodes(nb::handle self, NodeValues<Status>& values) {
  if (values.empty()) return nb::borrow<NumpyArray>(nb::none());
  const auto [ny, nx] = shape_of(nb::cast<FrameResult&>(self).field.grid());
  return numpy_view(reinterpret_cast<std::uint8_t*>(values.data()), {ny, nx}, self);
}

NumpyArray values_of(nb::handle self, const FieldArray& array) {
  NumpyArray found;
  visit_values(nb::cast<FrameResult&>(self).field, array, [&](auto& values) { found = nodes(self, values); });
  return found;
}

/// "Displacement along x (right), px: float64 [y, x].", with the option that makes the array.
std::string doc_of(const FieldArray& array) {
  std::string text(array.description);
  text.front() = static_cast<char>(std::toupper(text.front()));
  if (array.is_length()) text += ", px";
  if (array.role == ArrayRole::status) text += ", a value of dic.Status";
  text += ": " + std::string(element_type(array)) + " [y, x]";
  if (array.is_optional()) text += "; None without " + std::string(to_string(array.made_by));
  return text + ".";
}

nb::object position(nb::handle self, NodeValues<double> NodePositions::*member) {
  const auto& positions = nb::cast<FrameResult&>(self).field.positions;
  if (!positions) return nb::none();
  return nodes(self, const_cast<NodePositions&>(*positions).*member).attr("copy")();
}

nb::dict counts(const FrameResult& result) {
  const auto numbers = result.field.counts();
  nb::dict out;
  for (const auto& [status, name] : EnumNames<Status>::table)
    out[std::string(name).c_str()] = numbers[static_cast<std::size_t>(status)];
  return out;
}

std::string text_of(const Grid& grid) {
  return std::to_string(grid.points()) + " points in " + std::to_string(grid.nx) + " x " +
         std::to_string(grid.ny) + " nodes, " + std::to_string(grid.step) + " px apart";
}

std::string grid_repr(const Grid& grid) { return "<dic.Grid: " + text_of(grid) + ">"; }

std::string result_repr(const FrameResult& result) {
  const std::string name = "<dic.FrameResult " + std::to_string(result.index) + ": ";
  if (!result.error.empty()) return name + result.error + ">";
  const auto ok = result.field.counts()[static_cast<std::size_t>(Status::ok)];
  return name + std::to_string(ok) + " ok of " + text_of(result.field.grid()) + ">";
}

/// A frame's counts as a table of a notebook.
std::string result_html(const FrameResult& result) {
  const auto counts = result.field.counts();
  std::string names, numbers;
  for (const auto& [status, name] : EnumNames<Status>::table) {
    if (counts[static_cast<std::size_t>(status)] == 0) continue;
    names += "<th>" + std::string(name) + "</th>";
    numbers += "<td>" + std::to_string(counts[static_cast<std::size_t>(status)]) + "</td>";
  }
  const std::string heading = "<b>dic.FrameResult " + std::to_string(result.index) + "</b>: ";
  if (!result.error.empty()) return heading + "not measured";  // the sentence is in `error`
  return heading + text_of(result.field.grid()) + "<table><tr>" + names + "</tr><tr>" + numbers +
         "</tr></table>";
}

/// Content of a pickle: a tuple of plain objects and arrays.
nb::tuple grid_state(nb::handle self) {
  const auto& grid = nb::cast<const Grid&>(self);
  return nb::make_tuple(grid.x0, grid.y0, grid.step, self.attr("inside").attr("astype")("uint8"));
}

nb::tuple result_state(nb::handle self) {
  const auto& result = nb::cast<const FrameResult&>(self);
  nb::dict arrays;
  for (const FieldArray& array : kOneCameraArrays)
    if (const nb::object values = self.attr(std::string(array.name).c_str()); !values.is_none())
      arrays[std::string(array.name).c_str()] = values;
  for (const PositionArray& array : kPositionArrays)
    if (const nb::object values = self.attr(std::string(array.name).c_str()); !values.is_none())
      arrays[std::string(array.name).c_str()] = values;
  return nb::make_tuple(result.index, result.noise, result.latency, result.error, result.seconds.prepare,
                        result.seconds.search, result.seconds.refine, result.seconds.strain,
                        grid_state(self.attr("grid")), arrays);
}

std::shared_ptr<const Grid> grid_from(const nb::tuple& state) {
  const auto inside = nb::cast<Array>(state[3]);
  if (inside.size() == 0) return std::make_shared<const Grid>();
  return grid_of(inside, nb::cast<int>(state[0]), nb::cast<int>(state[1]), nb::cast<int>(state[2]));
}

void set_grid_state(Grid& grid, const nb::tuple& state) { new (&grid) Grid(*grid_from(state)); }

void set_result_state(FrameResult& result, const nb::tuple& state) {
  new (&result) FrameResult();
  result.index = nb::cast<std::int64_t>(state[0]);
  result.noise = nb::cast<double>(state[1]);
  result.latency = nb::cast<double>(state[2]);
  result.error = nb::cast<std::string>(state[3]);
  result.seconds.prepare = nb::cast<double>(state[4]);
  result.seconds.search = nb::cast<double>(state[5]);
  result.seconds.refine = nb::cast<double>(state[6]);
  result.seconds.strain = nb::cast<double>(state[7]);
  if (result.error.empty())
    result.field = field_of(nb::cast<nb::dict>(state[9]), grid_from(nb::cast<nb::tuple>(state[8])));
}

nb::dict seconds(const FrameResult& result) {
  nb::dict out;
  out["prepare"] = result.seconds.prepare;
  out["search"] = result.seconds.search;
  out["refine"] = result.seconds.refine;
  out["strain"] = result.seconds.strain;
  return out;
}

void add_grid(nb::module_& module) {
  nb::class_<Grid>(module, "Grid",
                   "The points: nodes at (x0 + i * step, y0 + j * step), pixels of the reference.")
      .def_ro("x0", &Grid::x0, "x of the first column of nodes, px.")
      .def_ro("y0", &Grid::y0, "y of the first row of nodes, px.")
      .def_ro("step", &Grid::step, "Between nodes, px.")
      .def_ro("nx", &Grid::nx, "Columns.")
      .def_ro("ny", &Grid::ny, "Rows.")
      .def_prop_ro(
          "x", [](const Grid& grid) { return numpy_of(columns(grid)); },
          "x of each column of nodes, px: int32 [x].")
      .def_prop_ro(
          "y", [](const Grid& grid) { return numpy_of(rows(grid)); },
          "y of each row of nodes, px: int32 [y].")
      .def_prop_ro("inside", &inside, "Whether a node is inside the region of interest: bool [y, x].")
      .def_prop_ro("points", &Grid::points, "Nodes inside the region of interest.")
      .def("__repr__", &grid_repr)
      .def("__getstate__", [](nb::handle self) { return grid_state(self); })
      .def("__setstate__", &set_grid_state);
}

}  // namespace

void add_frame_result(nb::module_& module) {
  add_grid(module);
  nb::class_<FrameResult> result(
      module, "FrameResult",
      "Measurement of one frame. Arrays [y, x] of the grid's nodes are views of this object's memory; "
      "NaN "
      "where nothing was measured, with a status that says why. Lengths in px, whatever the scale.");
  result.def_ro("index", &FrameResult::index, "0, 1, ... in the order of the frames of one reference.")
      .def_ro("noise", &FrameResult::noise, "Standard deviation of the noise of the images, grey levels.")
      .def_ro("latency", &FrameResult::latency, "Seconds from the call to the result.")
      .def_ro("error", &FrameResult::error, "Why the frame could not be measured; empty where it was.")
      .def_prop_ro("seconds", &seconds, "Seconds that the stages took, by name.")
      .def_prop_ro("counts", &counts, "Points inside the region of interest by status.")
      .def_prop_ro(
          "grid", [](const FrameResult& r) -> const Grid& { return r.field.grid(); },
          nb::rv_policy::reference_internal, "The points.")
      .def("__repr__", &result_repr)
      .def("_repr_html_", &result_html)
      .def("__getstate__", [](nb::handle self) { return result_state(self); })
      .def("__setstate__", &set_result_state);
  for (const FieldArray& array : kOneCameraArrays)
    result.def_prop_ro(
        std::string(array.name).c_str(), [&array](nb::handle self) { return values_of(self, array); },
        doc_of(array).c_str());
  for (const PositionArray& array : kPositionArrays)
    result.def_prop_ro(
        std::string(array.name).c_str(), [&array](nb::handle self) { return position(self, array.member); },
        ("With a camera: " + std::string(array.description) + ", px: float64 [y, x]; else None.").c_str());
}

}  // namespace dic::python
