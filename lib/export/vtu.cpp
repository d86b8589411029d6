#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "core/number_text.hpp"
#include "export/mesh.hpp"
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
void write_data_array(PendingText& file, const std::string& name, const std::vector<T>& values,
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

/// Displacement vectors of the points, in the axes of the mesh.
std::vector<double> displacements_of(const Result& result, int frame, const Mesh& mesh) {
  const auto values = [&](const char* name) { return values_at<double>(result, name, frame, mesh.nodes); };
  const bool in_space = is_surface(result);
  const std::vector<double> u = values(in_space ? "U" : "u"), v = values(in_space ? "V" : "v");
  const std::vector<double> w = in_space ? values("W") : std::vector<double>(u.size(), 0);
  std::vector<double> displacement;
  for (std::size_t k = 0; k < u.size(); ++k)
    displacement.insert(displacement.end(), {u[k], in_space ? v[k] : -v[k], w[k]});
  return displacement;
}

void write_values(PendingText& file, const Selection& selection, const Mesh& mesh, int frame) {
  const Result& result = selection.result;
  for (const ResultArray& array : selection.arrays)
    visit_scalar(array.type, [&]<typename T>(T) {
      if constexpr (!std::is_same_v<T, std::uint16_t>) {  // a type that no array has
        write_data_array(file, array.name, values_at<T>(result, array.name, frame, mesh.nodes));
      }
    });
  write_data_array(file, "displacement", displacements_of(result, frame, mesh), 3);
}

void write_mesh(const std::filesystem::path& path, const Selection& selection, const Mesh& mesh,
                std::size_t f, double time) {
  std::vector<std::int64_t> offsets;
  for (std::size_t square = 1; square <= mesh.squares(); ++square)
    offsets.push_back(static_cast<std::int64_t>(4 * square));
  PendingText file(path);
  file.write(
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"UnstructuredGrid\" version=\"1.0\" "
      "byte_order=\"LittleEndian\" "
      "header_type=\"UInt64\">\n<UnstructuredGrid>\n<FieldData>\n<DataArray type=\"Float64\" "
      "Name=\"TimeValue\" "
      "NumberOfTuples=\"1\" format=\"ascii\">" +
      core::number_text(time) + "</DataArray>\n</FieldData>\n<Piece NumberOfPoints=\"" +
      std::to_string(mesh.nodes.size()) + "\" NumberOfCells=\"" + std::to_string(mesh.squares()) +
      "\">\n<PointData>\n");
  write_values(file, selection, mesh, selection.frames[f]);
  file.write("</PointData>\n<Points>\n");
  write_data_array(file, "Points", mesh.points, 3);
  file.write("</Points>\n<Cells>\n");
  write_data_array(file, "connectivity", mesh.connectivity);
  write_data_array(file, "offsets", offsets);
  write_data_array(file, "types", std::vector<std::uint8_t>(mesh.squares(), kQuad));
  file.write("</Cells>\n</Piece>\n</UnstructuredGrid>\n</VTKFile>\n");
  file.commit();
}

}  // namespace

/// World coordinates as in result.vtkhdf: y points up, `displacement` is (u, -v, 0). With two cameras those
/// of surface.vtkhdf, the surface in the frame, and (U, V, W).
void write_vtu(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  const std::filesystem::path folder = path.parent_path() / path.stem();
  const bool moves = is_surface(selection.result);
  Mesh mesh;
  const std::vector<std::string> stems = selection.stems();
  const std::vector<double> times = selection.times();
  std::string collection =
      "<?xml version=\"1.0\"?>\n<VTKFile type=\"Collection\" version=\"1.0\" byte_order=\"LittleEndian\">\n"
      "<Collection>\n";
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    if (f == 0 || moves) mesh = mesh_of(selection, selection.frames[f]);
    write_mesh(folder / (stems[f] + ".vtu"), selection, mesh, f, times[f]);
    collection += "<DataSet timestep=\"" + core::number_text(times[f]) + "\" part=\"0\" file=\"" +
                  escaped(folder.filename().string() + "/" + stems[f]) + ".vtu\"/>\n";
  }
  PendingText file(path);
  file.write(collection + "</Collection>\n</VTKFile>\n");
  file.commit();
}

}  // namespace dic::exporting
