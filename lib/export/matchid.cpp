#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "export/selection.hpp"
#include "io/text_rows.hpp"
#include "query/table.hpp"

namespace dic::exporting {
namespace {

std::string matchid_header(bool has_mm) {
  const std::string unit = has_mm ? " [mm]" : " [Pixel]";
  std::string text;
  query::TableRows header(text);
  header.cell("Coordinates.Image X [Pixel]");
  header.cell("Coordinates.Image Y [Pixel]");
  if (has_mm) header.cell("coor.X [mm]");
  if (has_mm) header.cell("coor.Y [mm]");
  header.cell("disp.Horizontal Displacement U" + unit);
  header.cell("disp.Vertical Displacement V" + unit);
  for (const char* name : {"strain.Strain-global frame: Exx [ ]", "strain.Strain-global frame: Eyy [ ]",
                           "strain.Strain-global frame: Exy [ ]", "strain.Maximum Principal Strain: EI [ ]",
                           "strain.Minimum Principal Strain: EII [ ]"})
    header.cell(name);
  header.end_row();
  return text;
}

void append_point(query::TableRows& table, const Selection& selection, const NodeFrame& frame, bool has_mm,
                  std::size_t k) {
  const Grid& grid = selection.result.grid();
  table.cell(std::int64_t{grid.x(static_cast<int>(k % grid.nx))});
  table.cell(std::int64_t{grid.y(static_cast<int>(k / grid.nx))});
  const Position at = selection.position(k);
  if (has_mm) table.cell(at.x);
  if (has_mm) table.cell(at.y);
  const double mean = (frame.exx[k] + frame.eyy[k]) / 2;
  const double radius = std::hypot((frame.exx[k] - frame.eyy[k]) / 2, frame.exy[k]);
  for (const double value :
       {frame.u[k], frame.v[k], frame.exx[k], frame.eyy[k], frame.exy[k], mean + radius, mean - radius})
    table.cell(frame.is_ok(k) ? value : std::numeric_limits<double>::quiet_NaN());
  table.end_row();
}

}  // namespace

/// The columns of MatchID 2024 with its header "category.name [unit]", in the axes of the image.
void write_matchid(const std::filesystem::path& folder, const Selection& selection, core::ThreadPool& threads,
                   Steps& steps) {
  const bool has_mm = selection.result.info().length_unit() == "mm";
  const std::vector<std::size_t> nodes = selection.nodes();
  const std::vector<std::string> stems = selection.stems();
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    const NodeFrame frame(selection, selection.frames[f]);
    PendingText file(folder / (stems[f] + ".csv"));
    file.write(matchid_header(has_mm));
    io::write_rows(file, std::ssize(nodes), threads,
                   [&](std::int64_t begin, std::int64_t end, std::string& text) {
                     query::TableRows table(text);
                     for (std::int64_t row = begin; row < end; ++row)
                       append_point(table, selection, frame, has_mm, nodes[row]);
                   });
    file.commit();
  }
}

}  // namespace dic::exporting
