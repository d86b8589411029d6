#include <dic/error.hpp>
#include <type_traits>

#include "export/mat_file.hpp"
#include "export/selection.hpp"

namespace dic::exporting {
namespace {

/// [ny x nx] row by row to column by column, at `to`.
template <typename T>
void transpose(const std::vector<T>& values, const Grid& grid, T* to) {
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i)
      to[static_cast<std::size_t>(i) * grid.ny + j] = values[static_cast<std::size_t>(j) * grid.nx + i];
}

void write_array(MatFile& file, const Selection& selection, const ResultArray& array) {
  const Grid& grid = selection.result.grid();
  const std::size_t nodes = grid.nodes(), frames = selection.frames.size(), nx = grid.nx, ny = grid.ny;
  if (nodes * frames * size_of(array.type) > kLargestMatVariable)
    throw UsageError("The array " + array.name +
                     " is too large for MATLAB's format: choose some --frames, or --to netcdf.");
  visit_scalar(array.type, [&]<typename T>(T) {
    if constexpr (!std::is_same_v<T, std::uint16_t>) {  // a type that no array has
      std::vector<T> values(nodes * frames);
      for (std::size_t f = 0; f < frames; ++f)
        transpose(selection.result.values<T>(array.name, selection.frames[f]), grid,
                  values.data() + f * nodes);
      file.write(array.name, {ny, nx, frames}, values);
    }
  });
}

}  // namespace

/// MATLAB's arrays have the first index fastest: (y, x, frame).
void write_mat(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const Result& result = selection.result;
  const Grid& grid = result.grid();
  const std::size_t nx = grid.nx, ny = grid.ny;
  MatFile file(path);
  for (const ResultArray& array : selection.arrays) {
    steps.next();
    write_array(file, selection, array);
  }
  file.write("frame", selection.frame_numbers());
  if (selection.has_seconds()) file.write("time", selection.times());
  file.write("file", selection.files());
  file.write("x", selection.x());
  file.write("y", selection.y());
  std::vector<std::uint8_t> inside(grid.inside.size());
  transpose(grid.inside, grid, inside.data());
  file.write("inside", {ny, nx}, inside);
  file.write("length_unit", std::vector<std::string>{result.info().length_unit()});
  file.commit();
}

}  // namespace dic::exporting
