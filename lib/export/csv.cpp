#include <cstddef>
#include <string>
#include <vector>

#include "export/selection.hpp"
#include "io/text_rows.hpp"
#include "query/table.hpp"

namespace dic::exporting {
namespace {

constexpr int kDigits = 10, kFloatDigits = 8;

std::string with_unit(const std::string& name, const std::string& unit) {
  return unit.empty() || unit == "1" ? name : name + " [" + unit + "]";
}

std::string header_row(const Selection& selection) {
  std::string text;
  query::TableRows header(text);
  const std::string unit = selection.result.info().length_unit();
  header.cell("frame");
  if (selection.has_seconds()) header.cell("time [s]");
  header.cell("file");
  header.cell(with_unit("x", unit));
  header.cell(with_unit("y", unit));
  for (const ResultArray& array : selection.arrays) header.cell(with_unit(array.name, array.unit));
  header.end_row();
  return text;
}

/// A frame, as all rows of its CSV file need it.
struct Frame {
  double number = 0, time = 0;
  std::string file;
  std::vector<std::vector<double>> values;  ///< by array, then by point
};

void append_row(query::TableRows& table, const Selection& selection, const Frame& frame, std::size_t k) {
  const Position at = selection.position(k);
  table.cell(frame.number);
  if (selection.has_seconds()) table.cell(frame.time);
  table.cell(frame.file);
  table.cell(at.x);
  table.cell(at.y);
  for (std::size_t a = 0; a < frame.values.size(); ++a) {
    const ResultArray& array = selection.arrays[a];
    const double value = frame.values[a][k];
    if (array.name == "status" && value < kStatusCount)
      table.cell(to_string(static_cast<Status>(value)));
    else
      table.cell(value, array.type == ScalarType::f32 ? kFloatDigits : kDigits);
  }
  table.end_row();
}

}  // namespace

void write_csv_table(const std::filesystem::path& path, const Selection& selection, core::ThreadPool& threads,
                     Steps& steps) {
  const std::vector<std::size_t> nodes = selection.nodes();
  const std::vector<double> numbers = selection.frame_numbers(), times = selection.times();
  const std::vector<std::string> files = selection.files();
  PendingText file(path);
  file.write(header_row(selection));
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    Frame frame{numbers[f], times[f], files[f], {}};
    for (const ResultArray& array : selection.arrays)
      frame.values.push_back(selection.result.values(array.name, selection.frames[f]));
    io::write_rows(file, std::ssize(nodes), threads,
                   [&](std::int64_t begin, std::int64_t end, std::string& text) {
                     query::TableRows table(text);
                     for (std::int64_t row = begin; row < end; ++row)
                       append_row(table, selection, frame, nodes[row]);
                   });
  }
  file.commit();
}

}  // namespace dic::exporting
