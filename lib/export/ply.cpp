#include <bit>
#include <cstdint>
#include <dic/error.hpp>
#include <string>

#include "export/mesh.hpp"
#include "export/selection.hpp"
#include "io/pending_file.hpp"

namespace dic::exporting {
namespace {

static_assert(std::endian::native == std::endian::little, "values are written as they are in memory");

constexpr std::uint8_t kCorners = 4;

template <typename T>
void append_bytes(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

std::string ply_header(const Selection& selection, const Mesh& mesh) {
  std::string text = "ply\nformat binary_little_endian 1.0\ncomment lengths in mm\nelement vertex " +
                     std::to_string(mesh.nodes.size()) +
                     "\nproperty double x\nproperty double y\nproperty double z\n";
  for (const ResultArray& array : selection.arrays)
    text +=
        std::string("property ") + (array.type == ScalarType::f64 ? "double " : "float ") + array.name + "\n";
  return text + "element face " + std::to_string(mesh.squares()) +
         "\nproperty list uchar int vertex_indices\nend_header\n";
}

void write_frame(const std::filesystem::path& path, const Selection& selection, int frame) {
  const Mesh mesh = mesh_of(selection, frame);
  PendingText file(path);
  file.write(ply_header(selection, mesh));
  std::vector<std::vector<double>> arrays;
  for (const ResultArray& array : selection.arrays)
    arrays.push_back(values_at<double>(selection.result, array.name, frame, mesh.nodes));
  std::string bytes;
  for (std::size_t k = 0; k < mesh.nodes.size(); ++k) {
    for (std::size_t axis = 0; axis < 3; ++axis) append_bytes(bytes, mesh.points[3 * k + axis]);
    for (std::size_t a = 0; a < arrays.size(); ++a)
      if (selection.arrays[a].type == ScalarType::f64)
        append_bytes(bytes, arrays[a][k]);
      else
        append_bytes(bytes, static_cast<float>(arrays[a][k]));
  }
  for (std::size_t square = 0; square < mesh.squares(); ++square) {
    append_bytes(bytes, kCorners);
    for (std::size_t corner = 0; corner < kCorners; ++corner)
      append_bytes(bytes, static_cast<std::int32_t>(mesh.connectivity[kCorners * square + corner]));
  }
  file.write(bytes);
  file.commit();
}

}  // namespace

void write_ply(const std::filesystem::path& folder, const Selection& selection, Steps& steps) {
  const std::vector<std::string> stems = selection.stems();
  for (std::size_t f = 0; f < selection.frames.size(); ++f) {
    steps.next();
    write_frame(folder / (stems[f] + ".ply"), selection, selection.frames[f]);
  }
}

}  // namespace dic::exporting
