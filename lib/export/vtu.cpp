#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/number_text.hpp"
#include "export/selection.hpp"
#include "io/pending_file.hpp"

namespace dic::exporting {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they are in memory");

constexpr std::uint8_t kQuad = 9;  // the type of a cell, VTK_QUAD

std::string base64(std::span<const unsigned char> bytes) {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    std::uint32_t three = 0;
    for (std::size_t i = 0; i < 3; ++i) three = three << 8 | (k + i < bytes.size() ? bytes[k + i] : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += k + i <= bytes.size() ? digits[three >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

template <typename T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, double>) return "Float64";
  if constexpr (std::is_same_v<T, float>) return "Float32";
  if constexpr (std::is_same_v<T, std::int64_t>) return "Int64";
  if constexpr (std::is_same_v<T, std::int32_t>) return "Int32";
  return "UInt8";
}

std::string escaped(const std::string& text) {
  std::string xml;
  for (const char c : text) {
    if (c == '&')
      xml += "&amp;";
    else if (c == '<')
      xml += "&lt;";
    else if (c == '"')
      xml += "&quot;";
    else
      xml += c;
  }
  return xml;
}

template <typename T>
void write_array(PendingText& file, const std::string& name, const std::vector<T>& values,
                 int components = 1) {
  std::vector<unsigned char> bytes(sizeof(std::uint64_t) + values.size() * sizeof(T));
  const std::uint64_t size = values.size() * sizeof(T);
  std::memcpy(bytes.data(), &size, sizeof size);
  if (!values.empty()) std::memcpy(bytes.data() + sizeof size, values.data(), size);
  file.write(std::string("<DataArray type=\"") + type_name<T>() + "\" Name=\"" + name +
             "\" NumberOfComponents=\"" + std::to_string(components) + "\" format=\"binary\">");
  file.write(base64(bytes));
  file.write("</DataArray>\n");
}

/// The nodes inside the ROI, as points, and the squares between four of them.
struct Mesh {
  explicit Mesh(const Selection& selection) {
    const Grid& grid = selection.result.grid();
    const ResultInfo& info = selection.result.info();
    const double bottom = (info.image.height - 1) * info.length_factor();
    std::vector<std::int64_t> number(grid.inside.size(), -1);
    for (std::size_t k = 0; k < grid.inside.size(); ++k) {
      if (grid.inside[k] == 0) continue;
      number[k] = static_cast<std::int64_t>(nodes.size());
      nodes.push_back(k);
      const Position at = selection.position(k);
      points.insert(points.end(), {at.x, bottom - at.y, 0});
    }
    const std::size_t nx = grid.nx;
    for (std::size_t k = 0; k + nx + 1 < grid.inside.size(); ++k) {
      const std::int64_t corners[] = {number[k], number[k + 1], number[k + nx + 1], number[k + nx]};
      if (k % nx + 1 == nx || std::ranges::min(corners) < 0) continue;
      connectivity.insert(connectivity.end(), std::begin(corners), std::end(corners));
      offsets.push_back(static_cast<std::int64_t>(connectivity.size()));
    }
  }

  std::vector<std::size_t> nodes;  ///< of the grid
  std::vector<double> points;
  std::vector<std::int64_t> connectivity, offsets;
};

void write_values(PendingText& file, const Selection& selection, const Mesh& mesh, int frame) {
  const Result& result = selection.result;
  for (const ResultArray& array : selection.arrays)
    visit_scalar(array.type, [&]<typename T>(T) {
      if constexpr (!std::is_same_v<T, std::uint16_t>) {  // a type that no array has
        const std::vector<T> all = result.values<T>(array.name, frame);
        std::vector<T> values;
        for (const std::size_t node : mesh.nodes) values.push_back(all[node]);
        write_array(file, array.name, values);
      }
    });
  const std::vector<double> u = result.values("u", frame), v = result.values("v", frame);
  std::vector<double> displacement;
  for (const std::size_t node : mesh.nodes) displacement.insert(displacement.end(), {u[node], -v[node], 0});
  write_array(file, "displacement", displacement, 3);
}

void write_frame(const std::filesystem::path& path, const Selection& selection, const Mesh& mesh,
                 std::size_t f, double time) {
  PendingText file(path);
  file.write(
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" "
      "byte_order=\"LittleEndian\" "
      "header_type=\"UInt64\">\n<UnstructuredGrid>\n<FieldData>\n<DataArray type=\"Float64\" "
      "Name=\"TimeValue\" "
      "NumberOfTuples=\"1\" format=\"ascii\">" +
      core::number_text(time) + "</DataArray>\n</FieldData>\n<Piece NumberOfPoints=\"" +
      std::to_string(mesh.nodes.size()) + "\" NumberOfCells=\"" + std::to_string(mesh.offsets.size()) +
      "\">\n<PointData>\n");
  write_values(file, selection, mesh, selection.frames[f]);
  file.write("</PointData>\n<Points>\n");
  write_array(file, "Points", mesh.points, 3);
  file.write("</Points>\n<Cells>\n");
  write_array(file, "connectivity", mesh.connectivity);
  write_array(file, "offsets", mesh.offsets);
  write_array(file, "types", std::vector<std::uint8_t>(mesh.offsets.size(), kQuad));
  file.write("</Cells>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n");
  file.commit();
}

}  // namespace

/// World coordinates as in result.vtkhdf: y points up, `displacement` is (u, -v, 0).
void write_vtu(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const std::filesystem::path folder = path.parent_path() / path.stem();
  const Mesh mesh(selection);
  const std::vector<std::string> stems = selection.stems();
  const std::vector<double> times = selection.times();
  std::string collection =
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">\n"
      "<Collection>\n";
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    write_frame(folder / (stems[f] + ".vtu"), selection, mesh, f, times[f]);
    collection += "<DataSet timestep=\"" + core::number_text(times[f]) + "\" part=\"0\" file=\"" +
                  escaped(folder.filename().string() + "/" + stems[f]) + ".vtu\"/>\n";
  }
  PendingText file(path);
  file.write(collection + "</Collection>\n</VTKFile>\n");
  file.commit();
}

}  // namespace dic::exporting
