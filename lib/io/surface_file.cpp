#include "io/surface_file.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <dic/field_schema.hpp>
#include <string>
#include <vector>

#include "io/hdf5_file.hpp"
#include "io/pending_file.hpp"
#include "io/vtkhdf_layout.hpp"

namespace dic::io {
namespace {

/// The kinds of cells of VTK's polygons, of which a surface has the third.
constexpr std::array<const char*, 4> kCells = {"Vertices", "Lines", "Polygons", "Strips"};
constexpr std::size_t kPolygons = 2;

/// The arrays of a surface: everything that is measured at a point.
std::vector<FieldArray> arrays_of_surface() {
  std::vector<FieldArray> arrays;
  for (const FieldArray& array : kMeasuredArrays)
    if (!array.is_optional() || array.made_by == MadeBy::stereo) arrays.push_back(array);
  return arrays;
}

std::string cells_path(std::size_t kind, const char* name) { return kRoot + "/" + kCells[kind] + "/" + name; }

}  // namespace

struct SurfaceFile::Impl {
  PendingFile target;
  hdf5::OutputFile file;
  std::vector<double> times;
  std::int64_t points = 0, cells = 0, corners = 0;  ///< totals of the frames so far

  Impl(const std::filesystem::path& path, const ResultInfo& info);
  void add(const Field& field, double time);
  void add_polygons(const Field& field, const std::vector<std::int64_t>& numbers);
  void add_arrays(const Field& field, const std::vector<std::size_t>& nodes);
  void finish();
};

SurfaceFile::Impl::Impl(const std::filesystem::path& path, const ResultInfo& info)
    : target(path), file(target.temporary(), target.path()) {
  file.create_group(kRoot);
  file.set_attribute(kRoot, "Version", std::vector<std::int64_t>{2, 0});
  file.set_ascii_attribute(kRoot, "Type", "PolyData");
  for (const char* name :
       {"/NumberOfPoints", "/Steps/PartOffsets", "/Steps/NumberOfParts", "/Steps/PointOffsets"})
    file.create_rows<std::int64_t>(kRoot + name);
  for (const char* name : {"/Steps/CellOffsets", "/Steps/ConnectivityIdOffsets"})
    file.create_rows<std::int64_t>(kRoot + name, kCells.size());
  file.create_rows<double>(kRoot + "/Points", 3);
  for (std::size_t kind = 0; kind < kCells.size(); ++kind)
    for (const char* name : {"NumberOfCells", "NumberOfConnectivityIds", "Offsets", "Connectivity"})
      file.create_rows<std::int64_t>(cells_path(kind, name));
  for (const FieldArray& array : arrays_of_surface()) {
    visit_element(array, [&]<typename T>(T) { file.create_rows<T>(path_of(array)); });
    file.set_attribute(path_of(array), "description", array.description);
    file.set_attribute(path_of(array), "unit", array.unit_in(info.length_unit()));
    if (array.is_strain()) file.set_attribute(path_of(array), "measure", to_string(info.strain.measure));
    file.create_rows<std::int64_t>(kOffsets + std::string(array.name));
  }
  file.create_group(kAbout);
  file.set_attribute(kAbout, "version", info.version);
  file.write_text(kAbout + "/command", info.command);
}

void SurfaceFile::Impl::add(const Field& field, double time) {
  const StereoField& at = field.stereo;
  std::vector<std::int64_t> numbers(field.status.size(), -1);
  std::vector<std::size_t> nodes;
  std::vector<double> positions;
  for (std::size_t k = 0; k < numbers.size(); ++k) {
    if (!has_values(field.status[k])) continue;
    numbers[k] = static_cast<std::int64_t>(nodes.size());
    nodes.push_back(k);
    positions.insert(positions.end(), {at.x[k] + at.u[k], at.y[k] + at.v[k], at.z[k] + at.w[k]});
  }
  const auto add_number = [&](const std::string& name, std::int64_t value) {
    file.append_rows<std::int64_t>(kRoot + name, {value});
  };
  add_number("/Steps/PartOffsets", std::ssize(times));
  add_number("/Steps/NumberOfParts", 1);
  add_number("/Steps/PointOffsets", points);
  file.append_rows<std::int64_t>(kRoot + "/Steps/CellOffsets", {0, 0, cells, 0});
  file.append_rows<std::int64_t>(kRoot + "/Steps/ConnectivityIdOffsets", {0, 0, corners, 0});
  add_number("/NumberOfPoints", std::ssize(nodes));
  file.append_rows(kRoot + "/Points", positions);
  add_polygons(field, numbers);
  add_arrays(field, nodes);
  points += std::ssize(nodes);
  times.push_back(time);
}

void SurfaceFile::Impl::add_polygons(const Field& field, const std::vector<std::int64_t>& numbers) {
  const std::size_t nx = field.grid().nx;
  std::vector<std::int64_t> ids, offsets{0};
  for (std::size_t k = 0; k + nx + 1 < numbers.size(); ++k) {
    const std::array square = {numbers[k], numbers[k + 1], numbers[k + nx + 1], numbers[k + nx]};
    if (k % nx + 1 == nx || std::ranges::min(square) < 0) continue;
    ids.insert(ids.end(), square.begin(), square.end());
    offsets.push_back(std::ssize(ids));
  }
  for (std::size_t kind = 0; kind < kCells.size(); ++kind) {
    const bool has_cells = kind == kPolygons;
    const std::int64_t count = has_cells ? std::ssize(offsets) - 1 : 0,
                       id_count = has_cells ? std::ssize(ids) : 0;
    file.append_rows<std::int64_t>(cells_path(kind, "NumberOfCells"), {count});
    file.append_rows<std::int64_t>(cells_path(kind, "NumberOfConnectivityIds"), {id_count});
    file.append_rows(cells_path(kind, "Offsets"), has_cells ? offsets : std::vector<std::int64_t>{0});
  }
  file.append_rows(cells_path(kPolygons, "Connectivity"), ids);
  cells += std::ssize(offsets) - 1;
  corners += std::ssize(ids);
}

void SurfaceFile::Impl::add_arrays(const Field& field, const std::vector<std::size_t>& nodes) {
  for (const FieldArray& array : arrays_of_surface()) {
    visit_element(array, [&]<typename T>(T) {
      std::vector<T> values;
      values.reserve(nodes.size());
      visit_values(field, array, [&](const auto& all) {
        for (const std::size_t k : nodes) values.push_back(all.empty() ? T{} : static_cast<T>(all[k]));
      });
      file.append_rows(path_of(array), values);
    });
    file.append_rows<std::int64_t>(kOffsets + std::string(array.name), {points});
  }
}

void SurfaceFile::Impl::finish() {
  file.set_attribute(kSteps, "NSteps", std::ssize(times));
  file.write(kTimes, {times.size()}, times.data());
  file.close();
  target.commit();
}

SurfaceFile::SurfaceFile(const std::filesystem::path& path, const ResultInfo& info)
    : impl_(std::make_unique<Impl>(path, info)) {}
SurfaceFile::~SurfaceFile() = default;
SurfaceFile::SurfaceFile(SurfaceFile&&) noexcept = default;
SurfaceFile& SurfaceFile::operator=(SurfaceFile&&) noexcept = default;
void SurfaceFile::add(const Field& field, double time) { impl_->add(field, time); }
void SurfaceFile::finish() { impl_->finish(); }

}  // namespace dic::io
