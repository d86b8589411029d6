#include "fields.hpp"

#include <dic/error.hpp>
#include <utility>

namespace dic::python {

namespace {

template <typename T>
using Nodes = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
void take(NodeValues<T>& target, const nb::dict& arrays, const char* name, const Grid& grid) {
  if (!arrays.contains(name)) return;
  const auto array = nb::cast<Nodes<T>>(arrays[name]);
  if (array.shape(0) != static_cast<std::size_t>(grid.ny) ||
      array.shape(1) != static_cast<std::size_t>(grid.nx))
    throw UsageError("Arrays of the same nodes have the same shape [y, x].");
  target = NodeValues<T>(std::span<const T>(array.data(), array.size()));
}

void take_status(Field& field, const nb::dict& arrays) {
  NodeValues<std::uint8_t> numbers;
  take(numbers, arrays, "status", field.grid());
  field.status = NodeValues<Status>(numbers.size());
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (numbers[k] >= kStatusCount)
      throw UsageError("A status is a number from 0 to " + std::to_string(kStatusCount - 1) + ".");
    field.status[k] = static_cast<Status>(numbers[k]);
  }
}

}  // namespace

std::shared_ptr<const Grid> grid_of(const Array& inside, int x0, int y0, int step) {
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
  for (const auto& [name, member] : {std::pair{"u", &Field::u}, std::pair{"v", &Field::v}})
    take(field.*member, arrays, name, grid);
  for (const auto& [name, member] :
       {std::pair{"zncc", &Field::zncc}, std::pair{"sigma_u", &Field::sigma_u},
        std::pair{"sigma_v", &Field::sigma_v}, std::pair{"resolution", &Field::resolution},
        std::pair{"subset_sigma_u", &Field::subset_sigma_u},
        std::pair{"subset_sigma_v", &Field::subset_sigma_v}})
    take(field.*member, arrays, name, grid);
  for (const auto& [name, member] :
       {std::pair{"exx", &StrainField::exx}, std::pair{"eyy", &StrainField::eyy},
        std::pair{"exy", &StrainField::exy}, std::pair{"e1", &StrainField::e1},
        std::pair{"e2", &StrainField::e2}, std::pair{"von_mises", &StrainField::von_mises},
        std::pair{"sigma_exx", &StrainField::sigma_exx}, std::pair{"sigma_eyy", &StrainField::sigma_eyy},
        std::pair{"sigma_exy", &StrainField::sigma_exy}})
    take(field.strain.*member, arrays, name, grid);
  take(field.order, arrays, "order", grid);
  take_status(field, arrays);
  if (arrays.contains("X") && arrays.contains("Y")) {
    NodePositions positions;
    take(positions.x, arrays, "X", grid);
    take(positions.y, arrays, "Y", grid);
    field.positions = std::make_shared<const NodePositions>(std::move(positions));
  }
  return field;
}

}  // namespace dic::python
