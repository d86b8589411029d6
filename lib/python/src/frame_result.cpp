#include "frame_result.hpp"

#include <nanobind/stl/string.h>

#include <string>

#include "arrays.hpp"

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

template <typename T>
auto field_member(NodeValues<T> Field::*member) {
  return [member](nb::handle self) { return nodes(self, nb::cast<FrameResult&>(self).field.*member); };
}

auto strain_member(NodeValues<float> StrainField::*member) {
  return [member](nb::handle self) { return nodes(self, nb::cast<FrameResult&>(self).field.strain.*member); };
}

NumpyArray status(nb::handle self) {
  NodeValues<Status>& values = nb::cast<FrameResult&>(self).field.status;
  if (values.empty()) return nb::borrow<NumpyArray>(nb::none());
  const auto [ny, nx] = shape_of(nb::cast<FrameResult&>(self).field.grid());
  return numpy_view(reinterpret_cast<std::uint8_t*>(values.data()), {ny, nx}, self);
}

nb::object position(nb::handle self, NodeValues<double> NodePositions::*member) {
  const auto& positions = nb::cast<FrameResult&>(self).field.positions;
  if (!positions) return nb::none();
  return nodes(self, const_cast<NodePositions&>(*positions).*member).attr("copy")();
}

nb::dict counts(const FrameResult& result) {
  const auto numbers = result.field.counts();
  nb::dict out;
  for (int k = 0; k < kStatusCount; ++k)
    out[std::string(to_string(static_cast<Status>(k))).c_str()] = numbers[k];
  return out;
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
      .def_ro("x0", &Grid::x0, "Of the first column, px.")
      .def_ro("y0", &Grid::y0, "Of the first row, px.")
      .def_ro("step", &Grid::step, "Between nodes, px.")
      .def_ro("nx", &Grid::nx, "Columns.")
      .def_ro("ny", &Grid::ny, "Rows.")
      .def_prop_ro(
          "x", [](const Grid& grid) { return numpy_of(columns(grid)); }, "Of the columns, px: int32 [x].")
      .def_prop_ro(
          "y", [](const Grid& grid) { return numpy_of(rows(grid)); }, "Of the rows, px: int32 [y].")
      .def_prop_ro("inside", &inside, "Whether a node is inside the region of interest: bool [y, x].")
      .def_prop_ro("points", &Grid::points, "Nodes inside the region of interest.");
}

}  // namespace

void add_frame_result(nb::module_& module) {
  add_grid(module);
  nb::class_<FrameResult> result(
      module, "FrameResult",
      "What was measured in one frame. Arrays [y, x] of the grid's nodes are views of this object's memory; "
      "NaN "
      "where nothing was measured, with a status that says why. Lengths in px, whatever the scale.");
  result.def_ro("index", &FrameResult::index, "0, 1, ... in the order of the frames of one reference.")
      .def_ro("noise", &FrameResult::noise, "Of the images, grey levels.")
      .def_ro("latency", &FrameResult::latency, "Seconds from the call to the result.")
      .def_ro("error", &FrameResult::error, "Why the frame could not be measured; empty where it was.")
      .def_prop_ro("seconds", &seconds, "Seconds that the stages took, by name.")
      .def_prop_ro("counts", &counts, "Points inside the region of interest by status.")
      .def_prop_ro(
          "grid", [](const FrameResult& r) -> const Grid& { return r.field.grid(); },
          nb::rv_policy::reference_internal, "The points.")
      .def_prop_ro("u", field_member(&Field::u), "Displacement along x (right), px: float64 [y, x].")
      .def_prop_ro("v", field_member(&Field::v), "Displacement along y (down), px: float64 [y, x].")
      .def_prop_ro("zncc", field_member(&Field::zncc), "Correlation of the matched subset: float32 [y, x].")
      .def_prop_ro("sigma_u", field_member(&Field::sigma_u),
                   "Predicted standard deviation of u, px: float32 [y, x].")
      .def_prop_ro("sigma_v", field_member(&Field::sigma_v),
                   "Predicted standard deviation of v, px: float32 [y, x].")
      .def_prop_ro("status", &status, "How the measurement ended, a value of dic.Status: uint8 [y, x].")
      .def_prop_ro("iterations", field_member(&Field::iterations), "Of Gauss-Newton: int16 [y, x].")
      .def_prop_ro(
          "order", field_member(&Field::order),
          "With order='auto', of the shape function, 0 where nothing was measured: uint8 [y, x]; else None.")
      .def_prop_ro(
          "resolution", field_member(&Field::resolution),
          "With global_=True, period of a displacement that keeps nine tenths of its amplitude, px: float32 "
          "[y, x]; else None.")
      .def_prop_ro("subset_sigma_u", field_member(&Field::subset_sigma_u),
                   "With global_=True, sigma_u before the global step, px: float32 [y, x]; else None.")
      .def_prop_ro("subset_sigma_v", field_member(&Field::subset_sigma_v),
                   "With global_=True, sigma_v before the global step, px: float32 [y, x]; else None.")
      .def_prop_ro(
          "X", [](nb::handle self) { return position(self, &NodePositions::x); },
          "With a camera: x of the nodes in corrected coordinates, px: float64 [y, x]; else None.")
      .def_prop_ro(
          "Y", [](nb::handle self) { return position(self, &NodePositions::y); },
          "With a camera: y of the nodes in corrected coordinates, px: float64 [y, x]; else None.");
  struct Strain {
    const char* name;
    NodeValues<float> StrainField::*member;
    const char* doc;
  };
  for (const Strain& strain : {
           Strain{"exx", &StrainField::exx, "Normal strain along x: float32 [y, x]."},
           Strain{"eyy", &StrainField::eyy, "Normal strain along y: float32 [y, x]."},
           Strain{"exy", &StrainField::exy, "Tensor shear strain (half of gamma): float32 [y, x]."},
           Strain{"e1", &StrainField::e1, "Larger principal strain: float32 [y, x]."},
           Strain{"e2", &StrainField::e2, "Smaller principal strain: float32 [y, x]."},
           Strain{"von_mises", &StrainField::von_mises, "Von Mises equivalent strain: float32 [y, x]."},
           Strain{"sigma_exx", &StrainField::sigma_exx,
                  "Predicted standard deviation of exx: float32 [y, x]."},
           Strain{"sigma_eyy", &StrainField::sigma_eyy,
                  "Predicted standard deviation of eyy: float32 [y, x]."},
           Strain{"sigma_exy", &StrainField::sigma_exy,
                  "Predicted standard deviation of exy: float32 [y, x]."},
       })
    result.def_prop_ro(strain.name, strain_member(strain.member), strain.doc);
}

}  // namespace dic::python
