#include "fields.hpp"

#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace dic::python {

namespace {

template <typename T>
using Nodes = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

/// Copies the array of this name, if the dictionary has it.
template <typename T>
void take(NodeValues<T>& target, const nb::dict& arrays, std::string_view name, const Grid& grid) {
  const std::string key(name);
  if (!arrays.contains(key.c_str())) return;
  const auto array = nb::cast<Nodes<T>>(arrays[key.c_str()]);
  if (array.shape(0) != static_cast<std::size_t>(grid.ny) ||
      array.shape(1) != static_cast<std::size_t>(grid.nx))
    throw UsageError("Arrays of the same nodes have the same shape [y, x].");
  target = NodeValues<T>(std::span<const T>(array.data(), array.size()));
}

void take(NodeValues<Status>& target, const nb::dict& arrays, std::string_view name, const Grid& grid) {
  NodeValues<std::uint8_t> numbers;
  take(numbers, arrays, name, grid);
  target = NodeValues<Status>(numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] >= kStatusCount)
      throw UsageError("A status is a number from 0 to " + std::to_string(kStatusCount - 1) + ".");
    target[k] = static_cast<Status>(numbers[k]);
  }
}

}  // namespace

std::shared_ptr<const Grid> grid_of(const Array& inside, int x0, int y0, int step) {
  if (step < 1) throw UsageError("The step of the grid is a whole number of px above 0.");
  Grid grid;
  grid.x0 = x0, grid.y0 = y0, grid.step = step;
  const ImageView mask = view_of(inside);
  if (mask.type != ScalarType::u8) throw UsageError("The mask of the nodes inside is of uint8.");
  grid.nx = mask.width, grid.ny = mask.height;
  for (int y = 0; y < mask.height; ++y)
    grid.inside.insert(grid.inside.end(), mask.row<std::uint8_t>(y), mask.row<std::uint8_t>(y) + mask.width);
  return std::make_shared<const Grid>(std::move(grid));
}

Field field_of(const nb::dict& arrays, std::shared_ptr<const Grid> nodes) {
  Field field = Field::without_arrays(std::move(nodes));
  const Grid& grid = field.grid();
  const bool has_two_cameras = arrays.contains("Z");
  for (const FieldArray& array : kMeasuredArrays)
    if (has_two_cameras || array.made_by != MadeBy::stereo)
      visit_values(field, array, [&](auto& values) { take(values, arrays, array.name, grid); });
  if (has_two_cameras) return field;
  NodePositions positions;
  for (const PositionArray& array : kPositionArrays) take(positions.*array.member, arrays, array.name, grid);
  if (!positions.x.empty() && !positions.y.empty())
    field.positions = std::make_shared<const NodePositions>(std::move(positions));
  return field;
}

}  // namespace dic::python
