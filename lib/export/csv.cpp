#include <algorithm>
#include <cstddef>

#include "export/selection.hpp"
#include "query/table.hpp"

namespace dic::exporting {
namespace {

constexpr int kDigits = 10, kFloatDigits = 8;

std::string header(const std::string& name, const std::string& unit) {
  return unit.empty() || unit == "1" ? name : name + " [" + unit + "]";
}

}  // namespace

void write_csv_table(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const Result& result = selection.result;
  const Grid& grid = result.grid();
  const std::string unit = result.info().length_unit();
  query::Table table(path);
  table.cell("frame");
  if (selection.has_seconds()) table.cell("time [s]");
  table.cell("file");
  table.cell(header("x", unit));
  table.cell(header("y", unit));
  for (const ResultArray& array : selection.arrays) table.cell(header(array.name, array.unit));
  table.end_row();

  const std::vector<double> numbers = selection.frame_numbers(), times = selection.times();
  const std::vector<std::string> files = selection.files();
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    std::vector<std::vector<double>> values;
    for (const ResultArray& array : selection.arrays)
      values.push_back(result.values(array.name, selection.frames[f]));
    for (std::size_t k = 0; k < grid.inside.size(); ++k) {
      if (grid.inside[k] == 0) continue;
      const Position at = selection.position(k);
      table.cell(numbers[f]);
      if (selection.has_seconds()) table.cell(times[f]);
      table.cell(files[f]);
      table.cell(at.x);
      table.cell(at.y);
      for (std::size_t a = 0; a < values.size(); ++a) {
        const ResultArray& array = selection.arrays[a];
        if (array.name == "status" && values[a][k] < kStatusCount)
          table.cell(to_string(static_cast<Status>(values[a][k])));
        else
          table.cell(values[a][k], array.type == ScalarType::f32 ? kFloatDigits : kDigits);
      }
      table.end_row();
    }
  }
  table.commit();
}

}  // namespace dic::exporting
