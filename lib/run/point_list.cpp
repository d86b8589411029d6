#include "run/point_list.hpp"

#include <algorithm>

#include "io/text_table.hpp"

namespace dic::run {
namespace {

std::size_t column_of(const io::TextTable& table, const std::string& name, std::size_t without_headings) {
  const auto& headings = table.headings();
  if (headings.empty() && table.width() == 2) return without_headings;
  const auto found = std::ranges::find_if(
      headings, [&](const io::Heading& heading) { return io::same_name(heading.name, name); });
  if (found == headings.end())
    table.fail("has no column " + name + ": a list of points has the columns x and y, in px");
  return static_cast<std::size_t>(found - headings.begin());
}

}  // namespace

std::vector<Roi::Vertex> read_points(const std::filesystem::path& file) {
  const io::TextTable table(file, "x");
  const std::vector<double> x = table.numbers(column_of(table, "x", 0)),
                            y = table.numbers(column_of(table, "y", 1));
  std::vector<Roi::Vertex> points;
  for (std::size_t k = 0; k < x.size(); ++k) points.push_back({x[k], y[k]});
  return points;
}

}  // namespace dic::run
