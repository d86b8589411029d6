#include <algorithm>
#include <dic/fields.hpp>
#include <limits>

namespace dic {
namespace {

constexpr double kMissing = std::numeric_limits<double>::quiet_NaN();
constexpr float kMissingFloat = std::numeric_limits<float>::quiet_NaN();

constexpr std::array<std::string_view, kStatusCount> kStatusNames = {
    "ok", "flat", "out_of_image", "low_correlation", "not_converged", "diverged", "masked", "outlier"};

}  // namespace

std::string_view to_string(Status status) { return kStatusNames[static_cast<std::size_t>(status)]; }

std::int64_t Grid::points() const { return std::count(inside.begin(), inside.end(), std::uint8_t{1}); }

Field::Field(std::int64_t nodes)
    : u(nodes, kMissing),
      v(nodes, kMissing),
      zncc(nodes, kMissingFloat),
      sigma_u(nodes, kMissingFloat),
      sigma_v(nodes, kMissingFloat),
      status(nodes, Status::masked),
      iterations(nodes, 0) {}

std::array<std::int64_t, kStatusCount> Field::counts(const Grid& grid) const {
  std::array<std::int64_t, kStatusCount> counts{};
  for (std::size_t k = 0; k < status.size(); ++k)
    if (grid.inside[k]) ++counts[static_cast<std::size_t>(status[k])];
  return counts;
}

}  // namespace dic
