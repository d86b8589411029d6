#include <algorithm>
#include <dic/fields.hpp>
#include <limits>
#include <utility>

namespace dic {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr float kMissingFloat = std::numeric_limits<float>::quiet_NaN();

}  // namespace

std::int64_t Grid::points() const { return std::count(inside.begin(), inside.end(), std::uint8_t{1}); }

Field::Field(std::shared_ptr<const Grid> grid)
    : u(grid->nodes(), kMissing),
      v(grid->nodes(), kMissing),
      zncc(grid->nodes(), kMissingFloat),
      sigma_u(grid->nodes(), kMissingFloat),
      sigma_v(grid->nodes(), kMissingFloat),
      status(grid->nodes(), Status::masked),
      iterations(grid->nodes(), 0),
      grid_(std::move(grid)) {}

Field::Field(Grid grid) : Field(std::make_shared<const Grid>(std::move(grid))) {}

Field Field::without_arrays(std::shared_ptr<const Grid> grid) {
  Field field;
  field.grid_ = std::move(grid);
  return field;
}

const Grid& Field::grid() const {
  static const Grid none;
  return grid_ ? *grid_ : none;
}

std::array<std::int64_t, kStatusCount> Field::counts() const {
  std::array<std::int64_t, kStatusCount> counts{};
  for (std::size_t k = 0; k < status.size(); ++k)
    if (grid().inside[k]) ++counts[static_cast<std::size_t>(status[k])];
  return counts;
}

}  // namespace dic
