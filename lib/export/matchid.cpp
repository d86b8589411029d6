#include <cmath>
#include <limits>

#include "export/selection.hpp"
#include "query/table.hpp"

namespace dic::exporting {

/// The columns of MatchID 2024 with its header "category.name [unit]", in the axes of the image.
void write_matchid(const std::filesystem::path& folder, const Selection& selection, Steps& steps) {
  const Grid& grid = selection.result.grid();
  const ResultInfo& info = selection.result.info();
  const bool has_mm = info.length_unit() == "mm";
  const std::string unit = has_mm ? " [mm]" : " [Pixel]";
  const std::vector<std::string> stems = selection.stems();
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    const NodeFrame frame(selection, selection.frames[f]);
    query::Table table(folder / (stems[f] + ".csv"));
    table.cell("Coordinates.Image X [Pixel]");
    table.cell("Coordinates.Image Y [Pixel]");
    if (has_mm) table.cell("coor.X [mm]");
    if (has_mm) table.cell("coor.Y [mm]");
    table.cell("disp.Horizontal Displacement U" + unit);
    table.cell("disp.Vertical Displacement V" + unit);
    for (const char* name : {"strain.Strain-global frame: Exx [ ]", "strain.Strain-global frame: Eyy [ ]",
                             "strain.Strain-global frame: Exy [ ]", "strain.Maximum Principal Strain: EI [ ]",
                             "strain.Minimum Principal Strain: EII [ ]"})
      table.cell(name);
    table.end_row();
    for (std::size_t k = 0; k < grid.inside.size(); ++k) {
      if (grid.inside[k] == 0) continue;
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
    table.commit();
  }
}

}  // namespace dic::exporting
