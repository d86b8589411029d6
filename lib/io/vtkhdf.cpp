#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/io.hpp>
#include <future>
#include <iterator>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "io/field_arrays.hpp"
#include "io/hdf5_file.hpp"
#include "io/pending_file.hpp"
#include "io/vtkhdf_layout.hpp"

namespace dic {

using namespace io;

namespace {

/// The longest name of a file, and what the number of a video's frame adds.
constexpr std::size_t kNameBytes = 272;

/// Of the parts of the same frames, is it the last one?
bool ends_frames(const ResultPart& part, const Grid& grid) {
  return part.first_row + part.skip + part.use == grid.ny;
}

}  // namespace

struct VtkHdfWriter::Impl {
  std::unique_ptr<PendingFile> target;  ///< until the first frame is in it: then the file takes its place
  hdf5::OutputFile file;
  Grid grid;
  double length_factor;
  std::string length_unit, strain_measure, time_unit;
  std::int64_t frames = 0, published = 0;
  bool has_order = false, has_global = false;  ///< the arrays that not all results have
  std::vector<double> times;                   // of frames that are not published
  std::vector<double> vectors;                 // of a frame's displacement
  std::tuple<std::vector<double>, std::vector<float>>
      scratch;  // reused: new memory costs more than filling it

  Impl(std::unique_ptr<PendingFile> pending, hdf5::OutputFile opened, const Grid& nodes,
       const ResultInfo& info)
      : target(std::move(pending)),
        file(std::move(opened)),
        grid(nodes),
        length_factor(info.length_factor()),
        length_unit(info.length_unit()),
        strain_measure(to_string(info.strain.measure)),
        time_unit(info.time_unit) {}

  static std::unique_ptr<Impl> create(const std::filesystem::path& path, const Grid& grid,
                                      const ResultInfo& info) {
    auto target = std::make_unique<PendingFile>(path);
    auto file = hdf5::OutputFile::create_growing(target->temporary(), target->path());
    auto created = std::make_unique<Impl>(std::move(target), std::move(file), grid, info);
    created->write_geometry(info);
    created->write_about(info);
    created->write_scales(info);
    return created;
  }

  static std::unique_ptr<Impl> resume(const std::filesystem::path& path, std::int64_t frames,
                                      const Grid& grid, const ResultInfo& info) {
    auto opened = std::make_unique<Impl>(nullptr, hdf5::OutputFile::open_growing(path), grid, info);
    opened->frames = opened->published = frames;
    opened->has_order = opened->file.has(kPointData + "order");
    opened->has_global = opened->file.has(kPointData + kGlobal[0].name);
    for (const std::string& name : opened->series()) opened->file.open_series(name, frames);
    opened->file.change_attribute(kSteps, "NSteps", frames);
    opened->file.begin_growing();
    return opened;
  }

  static void join(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info,
                   std::span<const ResultPart> parts) {
    std::vector<hdf5::SeriesPart> files;
    std::uint64_t first = 0;
    for (const ResultPart& part : parts) {
      const auto number = [](int value) { return static_cast<std::uint64_t>(value); };
      files.push_back({part.file, first, part.names.size(), number(part.rows), number(part.skip),
                       number(part.use), number(part.first_row + part.skip)});
      if (ends_frames(part, grid)) first += part.names.size();
    }
    auto target = std::make_unique<PendingFile>(path);
    auto file = hdf5::OutputFile::create_joined(target->temporary(), target->path(), std::move(files));
    Impl joined(std::move(target), std::move(file), grid, info);
    joined.write_geometry(info);
    joined.write_about(info);
    joined.write_scales(info);
    joined.has_order = parts.front().has_order;
    joined.has_global = parts.front().has_global;
    joined.create_arrays();
    if (parts.front().positions) joined.write_positions(*parts.front().positions);
    for (const ResultPart& part : parts)
      for (std::size_t k = 0; k < part.names.size() && ends_frames(part, grid); ++k)
        joined.append_frame(part.times[k], static_cast<double>(part.numbers[k]), part.names[k]);
    joined.finish();
  }

  /// VTK's y points up, the image's down. The rows stay in image order, a negative spacing turns the
  /// world upright, and the origin puts the image's bottom left pixel at (0, 0), where VTK puts that of
  /// an image that it opens. (The Direction matrix would say the same, but the reader of VTK 9.3 drops it.)
  void write_geometry(const ResultInfo& info) {
    const double step = grid.step * length_factor;
    file.create_group(kRoot);
    file.set_attribute(kRoot, "Version", std::vector<std::int64_t>{2, 0});
    file.set_ascii_attribute(kRoot, "Type", "ImageData");
    file.set_attribute(kRoot, "WholeExtent", std::vector<std::int64_t>{0, grid.nx - 1, 0, grid.ny - 1, 0, 0});
    file.set_attribute(
        kRoot, "Origin",
        std::vector<double>{grid.x0 * length_factor, (info.image.height - 1 - grid.y0) * length_factor, 0});
    file.set_attribute(kRoot, "Spacing", std::vector<double>{step, -step, step});
    file.set_attribute(kRoot, "Direction", std::vector<double>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  }

  /// Called for the first frame: VTK reads a file without a time axis, but not a time axis without steps.
  void create_arrays() {
    file.create_series<double>(kTimes, {});
    file.set_attribute(kSteps, "NSteps", std::int64_t{0});
    file.create_series<std::int64_t>(kOffsets + kDisplacements[0].name, {});
    file.set_attribute(kTimes, "unit", time_unit);
    if (has_seconds()) name_for_netcdf("time", kTimes, {"/frame"}, time_unit, "time");
    for (const auto& array : kDisplacements) create<double>(array.name, array.kind, array.description);
    create<double>("displacement", Kind::length,
                   "(u, -v, 0): in VTK's axes, y up, for Warp By Vector and Glyph", {3});
    for (const auto& array : kQualities) create<float>(array.name, array.kind, array.description);
    create<std::uint8_t>("status", Kind::plain, "how the measurement of the point ended");
    describe_status();
    create<std::int16_t>("iterations", Kind::plain, "Gauss-Newton iterations");
    for (const auto& array : kStrains) create<float>(array.name, array.kind, array.description);
    if (has_order) create<std::uint8_t>("order", Kind::plain, "order of the point's shape function");
    if (has_global)
      for (const auto& array : kGlobal) create<float>(array.name, array.kind, array.description);
  }

  /// What has an item for each frame.
  std::vector<std::string> series() const {
    std::vector<std::string> names = {kTimes,
                                      kOffsets + kDisplacements[0].name,
                                      "/frame",
                                      kAbout + "/frames",
                                      kPointData + "displacement",
                                      kPointData + "status",
                                      kPointData + "iterations"};
    for (const auto& array : kDisplacements) names.push_back(kPointData + array.name);
    for (const auto& array : kQualities) names.push_back(kPointData + array.name);
    for (const auto& array : kStrains) names.push_back(kPointData + array.name);
    if (has_order) names.push_back(kPointData + "order");
    if (has_global)
      for (const auto& array : kGlobal) names.push_back(kPointData + array.name);
    return names;
  }

  template <typename T>
  void create(const std::string& name, Kind kind, std::string_view description, hdf5::Shape components = {}) {
    hdf5::Shape item = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    item.insert(item.end(), components.begin(), components.end());
    const std::string unit = kind == Kind::length ? length_unit : "1";
    file.create_series<T>(kPointData + name, item);
    file.set_attribute(kPointData + name, "description", description);
    file.set_attribute(kPointData + name, "unit", unit);
    if (kind == Kind::strain) file.set_attribute(kPointData + name, "measure", strain_measure);
    // VTK wants a list of offsets for each array: they are the same.
    if (name != kDisplacements[0].name) file.link(kOffsets + kDisplacements[0].name, kOffsets + name);

    std::vector<std::string> scales = {"/frame", "/y", "/x"};
    if (!components.empty()) scales.emplace_back("/component");
    name_for_netcdf(name, kPointData + name, scales, unit, description);
  }

  /// Names by number, as we and as the CF conventions of netCDF write them.
  void describe_status() {
    const std::vector<std::string> status = status_names();
    std::vector<std::uint8_t> numbers(status.size());
    std::iota(numbers.begin(), numbers.end(), std::uint8_t{0});
    std::string meanings;
    for (const std::string& name : status) meanings += (meanings.empty() ? "" : " ") + name;
    file.set_attribute(kPointData + "status", "names", std::span<const std::string>(status));
    file.set_attribute(kPointData + "status", "flag_values", numbers);
    file.set_attribute(kPointData + "status", "flag_meanings", meanings);
  }

  /// Gives a dataset a name in the root group, and attributes as netCDF has them.
  void name_for_netcdf(const std::string& name, const std::string& dataset,
                       const std::vector<std::string>& scales, std::string_view unit,
                       std::string_view description) {
    file.link(dataset, "/" + name);
    file.set_attribute(dataset, "units", unit);
    file.set_attribute(dataset, "long_name", description);
    file.attach_scales(dataset, scales);
  }

  bool has_seconds() const { return time_unit != "1"; }

  /// The root group is what netCDF-4 and xarray open: the dimensions frame, y and x are datasets of these
  /// names, to which the arrays refer.
  void write_scales(const ResultInfo& info) {
    const auto make = [&](const std::string& name, std::string_view unit, std::string_view description) {
      file.make_scale("/" + name);
      file.set_attribute("/" + name, "units", unit);
      file.set_attribute("/" + name, "long_name", description);
    };
    file.create_series<double>("/frame", {});
    make("frame", "1", "number of the frame after the reference");
    for (const char* axis : {"x", "y"}) {
      file.link(kAbout + "/" + axis, std::string("/") + axis);
      make(axis, length_unit, std::string(axis) + " of the node in the reference image");
    }
    constexpr std::array<std::int64_t, 3> kComponents = {0, 1, 2};
    file.write("/component", {kComponents.size()}, kComponents.data());
    make("component", "1", "component of a vector in VTK's axes, y up");
    name_for_netcdf("file", kAbout + "/frames", {"/frame"}, "1", "file of the frame");
    name_for_netcdf("inside", kAbout + "/inside", {"/y", "/x"}, "1", "1 where the node is inside the ROI");
    file.set_attribute("/", "coordinates", coordinates(false));
    file.set_attribute("/", "source", "dic " + info.version);
    file.set_attribute("/", "subset", static_cast<std::int64_t>(info.subset));
    file.set_attribute("/", "step", static_cast<std::int64_t>(grid.step));
    file.set_attribute("/", "strain_measure", strain_measure);
    file.set_attribute("/", "strain_window", static_cast<std::int64_t>(info.strain.window));
    file.set_attribute("/", "length_unit", length_unit);
    file.set_attribute("/", "scale_mm_per_px", info.scale_mm_per_px);
  }

  /// What the root group has beside arrays and dimensions.
  std::string coordinates(bool with_positions) const {
    return std::string("file inside") + (has_seconds() ? " time" : "") + (with_positions ? " X Y" : "");
  }

  void write_about(const ResultInfo& info) {
    file.create_group(kAbout);
    file.set_attribute(kAbout, "version", info.version);
    file.set_attribute(kAbout, "length_unit", length_unit);
    file.set_attribute(kAbout, "scale_mm_per_px", info.scale_mm_per_px);
    file.set_attribute(kAbout, "subset", static_cast<std::int64_t>(info.subset));
    file.set_attribute(kAbout, "step", static_cast<std::int64_t>(grid.step));
    file.set_attribute(kAbout, "image_width", static_cast<std::int64_t>(info.image.width));
    file.set_attribute(kAbout, "image_height", static_cast<std::int64_t>(info.image.height));
    file.set_attribute(kAbout, "strain_measure", strain_measure);
    file.set_attribute(kAbout, "strain_window", static_cast<std::int64_t>(info.strain.window));
    file.write_text(kAbout + "/command", info.command);
    file.write_text(kAbout + "/settings", info.settings_json);
    file.write_text(kAbout + "/reference", info.reference);

    std::vector<double> x, y;
    for (int i = 0; i < grid.nx; ++i) x.push_back(grid.x(i) * length_factor);
    for (int j = 0; j < grid.ny; ++j) y.push_back(grid.y(j) * length_factor);
    const std::uint64_t nx = x.size(), ny = y.size();
    file.write(kAbout + "/x", {nx}, x.data());
    file.write(kAbout + "/y", {ny}, y.data());
    file.write(kAbout + "/inside", {ny, nx}, grid.inside.data());
    file.create_text_series(kAbout + "/frames", kNameBytes);
    file.set_attribute(kAbout + "/frames", "_Encoding", "utf-8");  // netCDF's word: xarray makes text of it
  }

  void add(const Field& field, double time, std::string_view name) {
    if (field.grid() != grid || std::ssize(field.status) != grid.nodes())
      throw UsageError("A field of " + std::to_string(field.grid().nx) + "x" +
                       std::to_string(field.grid().ny) + " nodes does not fit the file, whose grid has " +
                       std::to_string(grid.nx) + "x" + std::to_string(grid.ny) +
                       ", or begins elsewhere: write it to a file of its own.");
    if (name.size() > kNameBytes)
      throw UsageError("A frame's name has " + std::to_string(name.size()) + " bytes: at most " +
                       std::to_string(kNameBytes) + " fit into the file.");
    if (frames == 0 && target) begin(field);
    auto displacement = std::async(std::launch::async, [&] { fill_vectors(field); });
    for (const auto& array : kDisplacements)
      append_values<double>(array.name, array.kind, field.*array.member);
    displacement.get();
    file.append(kPointData + "displacement", vectors.data());
    for (const auto& array : kQualities) append_values<float>(array.name, array.kind, field.*array.member);
    static_assert(sizeof(Status) == 1);
    file.append(kPointData + "status", reinterpret_cast<const std::uint8_t*>(field.status.data()));
    file.append(kPointData + "iterations", field.iterations.data());
    for (const auto& array : kStrains)
      append_values<float>(array.name, array.kind, field.strain.*array.member);
    if (has_order) append_order(field);
    if (has_global)
      for (const auto& array : kGlobal) append_values<float>(array.name, array.kind, field.*array.member);
    append_frame(time, has_seconds() ? static_cast<double>(frames + 1) : time, name);
  }

  void begin(const Field& field) {
    has_order = !field.order.empty();
    has_global = !field.resolution.empty();
    create_arrays();
    if (field.positions) write_positions(*field.positions);
    file.begin_growing();
  }

  /// Readers see new frames when all of them is there: the number of frames comes after them. Only the times
  /// come later still: VTK (9.7) reads all of them into an array of NSteps, and writes beyond its end.
  void publish() {
    if (frames == published) return;
    published = frames;
    file.publish();
    file.change_attribute(kSteps, "NSteps", frames);
    file.publish();
    for (const double time : times) file.append(kTimes, time);
    times.clear();
    file.publish();
    take_place();
  }

  void append_frame(double time, double number, std::string_view name) {
    file.append(kOffsets + kDisplacements[0].name, frames);
    ++frames;
    times.push_back(time);
    file.append("/frame", number);
    file.append(kAbout + "/frames", name);
  }

  /// The file is no longer a temporary one.
  void take_place() {
    if (target) target->commit();
    target.reset();
  }

  void write_positions(const NodePositions& positions) {
    const hdf5::Shape shape = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    file.write(kAbout + "/X", shape, scaled(positions.x, length_factor));
    file.write(kAbout + "/Y", shape, scaled(positions.y, length_factor));
    for (const char* axis : {"X", "Y"})
      name_for_netcdf(axis, kAbout + "/" + axis, {"/y", "/x"}, length_unit,
                      std::string(axis) + " of the node in corrected coordinates");
    file.set_attribute("/", "coordinates", coordinates(true));
  }

  void append_order(const Field& field) {
    const NodeValues<std::uint8_t> none(field.order.empty() ? field.status.size() : 0);
    file.append(kPointData + "order", field.order.empty() ? none.data() : field.order.data());
  }

  /// An empty array (strain that was not computed) becomes NaN.
  template <typename T>
  void append_values(const std::string& name, Kind kind, const NodeValues<T>& values) {
    const double factor = kind == Kind::length ? length_factor : 1;
    const bool as_they_are = factor == 1 && values.size() == grid.inside.size();
    file.append(kPointData + name, as_they_are ? values.data() : scaled(values, factor));
  }
  template <typename T>
  const T* scaled(const NodeValues<T>& values, double factor) {
    auto& out = std::get<std::vector<T>>(scratch);
    out.assign(grid.inside.size(), std::numeric_limits<T>::quiet_NaN());
    std::ranges::transform(values, out.begin(), [&](T value) { return static_cast<T>(value * factor); });
    return out.data();
  }

  /// (u, -v, 0) of every node, NaN where nothing was measured.
  void fill_vectors(const Field& field) {
    vectors.resize(3 * field.u.size());
    for (std::size_t k = 0; k < field.u.size(); ++k) {
      vectors[3 * k] = field.u[k] * length_factor;
      vectors[3 * k + 1] = -field.v[k] * length_factor;
      vectors[3 * k + 2] = std::isnan(field.u[k]) ? field.u[k] : 0;
    }
  }

  void finish() {
    publish();
    file.close();
    take_place();
  }
};

VtkHdfWriter::VtkHdfWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VtkHdfWriter::VtkHdfWriter(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info)
    : impl_(Impl::create(path, grid, info)) {}
VtkHdfWriter VtkHdfWriter::resume(const std::filesystem::path& path, std::int64_t frames, const Grid& grid,
                                  const ResultInfo& info) {
  return VtkHdfWriter(Impl::resume(path, frames, grid, info));
}
void VtkHdfWriter::join(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info,
                        std::span<const ResultPart> parts) {
  Impl::join(path, grid, info, parts);
}
VtkHdfWriter::~VtkHdfWriter() = default;
VtkHdfWriter::VtkHdfWriter(VtkHdfWriter&&) noexcept = default;
VtkHdfWriter& VtkHdfWriter::operator=(VtkHdfWriter&&) noexcept = default;

void VtkHdfWriter::append(const Field& field, double time, std::string_view name) {
  add(field, time, name);
  publish();
}
void VtkHdfWriter::add(const Field& field, double time, std::string_view name) {
  impl_->add(field, time, name);
}
void VtkHdfWriter::publish() { impl_->publish(); }

void VtkHdfWriter::finish() { impl_->finish(); }

}  // namespace dic
