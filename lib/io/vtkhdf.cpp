#include <algorithm>
#include <array>
#include <cmath>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/io.hpp>
#include <future>
#include <iterator>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

#include "io/hdf5_file.hpp"
#include "io/pending_file.hpp"
#include "io/vtkhdf_layout.hpp"

namespace dic {

using namespace io;

namespace {

/// Bytes of the longest name of a file, with the number of a video's frame.
constexpr std::size_t kNameBytes = 272;

/// The array whose list of offsets all others share.
constexpr std::string_view kFirstArray = kFieldArrays.front().name;

/// True if a part is the last one of those that share its frames.
bool ends_frames(const ResultPart& part, const Grid& grid) {
  return part.first_row + part.skip + part.use == grid.ny;
}

}  // namespace

struct VtkHdfWriter::Impl {
  std::unique_ptr<PendingFile> target;  ///< temporary file, until the first frame is in it; then null
  hdf5::OutputFile file;
  Grid grid;
  double length_factor;
  std::string length_unit, strain_measure, time_unit;
  std::int64_t frames = 0, published = 0;
  std::vector<FieldArray> arrays;  ///< arrays of the file; empty before the first frame
  std::vector<double> times;       ///< times of frames that are not published
  std::vector<double> vectors;     ///< displacement of a frame, three values for each node
  /// Values in the unit of the file; reused, because new memory costs more than filling it.
  std::tuple<std::vector<double>, std::vector<float>, std::vector<std::int16_t>, std::vector<std::uint8_t>>
      scratch;

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
    opened->choose_arrays([&](const FieldArray& array) { return opened->file.has(path_of(array)); });
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
    const std::vector<std::string>& optional = parts.front().optional_arrays;
    joined.choose_arrays(
        [&](const FieldArray& array) { return std::ranges::find(optional, array.name) != optional.end(); });
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

  /// Chooses the arrays of the file: those that every run makes, and optional ones for which `is_made` is
  /// true.
  template <typename IsMade>
  void choose_arrays(const IsMade& is_made) {
    for (const FieldArray& array : kFieldArrays)
      if (!array.is_optional() || is_made(array)) arrays.push_back(array);
  }

  /// Called for the first frame: VTK reads a file without a time axis, but not a time axis without steps.
  void create_arrays() {
    file.create_series<double>(kTimes, {});
    file.set_attribute(kSteps, "NSteps", std::int64_t{0});
    file.create_series<std::int64_t>(kOffsets + std::string(kFirstArray), {});
    file.set_attribute(kTimes, "unit", time_unit);
    if (has_seconds()) name_for_netcdf("time", kTimes, {"/frame"}, time_unit, "time");
    for (const FieldArray& array : arrays) create(array);
  }

  /// Paths of all datasets that have an item for each frame.
  std::vector<std::string> series() const {
    std::vector<std::string> paths = {kTimes, kOffsets + std::string(kFirstArray), "/frame",
                                      kAbout + "/frames"};
    for (const FieldArray& array : arrays) paths.push_back(path_of(array));
    return paths;
  }

  /// A few points in a large grid take hundreds of times less space deflated; whole fields take about the
  /// same, and deflating them takes longer than measuring.
  hdf5::Storage storage() const {
    constexpr std::int64_t kFewOf = 8;
    return grid.points() * kFewOf < grid.nodes() ? hdf5::Storage::deflated : hdf5::Storage::plain;
  }

  void create(const FieldArray& array) {
    const std::string name(array.name), path = path_of(array);
    const std::string unit(array.unit_in(length_unit));
    hdf5::Shape item = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    std::vector<std::string> scales = {"/frame", "/y", "/x"};
    if (array.components > 1) {
      item.push_back(static_cast<std::uint64_t>(array.components));
      scales.emplace_back("/component");
    }
    visit_element(array, [&]<typename T>(T) { file.create_series<T>(path, item, storage()); });
    file.set_attribute(path, "description", array.description);
    file.set_attribute(path, "unit", unit);
    if (array.is_strain()) file.set_attribute(path, "measure", strain_measure);
    // VTK requires a list of offsets for each array: they are the same.
    if (name != kFirstArray) file.link(kOffsets + std::string(kFirstArray), kOffsets + name);
    name_for_netcdf(name, path, scales, unit, array.description);
    if (array.role == ArrayRole::status) describe_status(path);
  }

  /// Names of the statuses by number, as we and as the CF conventions of netCDF write them.
  void describe_status(const std::string& path) {
    std::vector<std::string> names;
    std::vector<std::uint8_t> numbers;
    std::string meanings;
    for (const auto& [status, name] : EnumNames<Status>::table) {
      names.emplace_back(name);
      numbers.push_back(static_cast<std::uint8_t>(status));
      meanings.append(meanings.empty() ? "" : " ").append(name);
    }
    file.set_attribute(path, "names", std::span<const std::string>(names));
    file.set_attribute(path, "flag_values", numbers);
    file.set_attribute(path, "flag_meanings", meanings);
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

  /// Names of what the root group has besides arrays and dimensions.
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

  void add(const Field& field, double time, std::string_view name, std::optional<std::int64_t> number) {
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
    for (const FieldArray& array : arrays) {
      if (array.role == ArrayRole::vector) {
        displacement.get();
        file.append(path_of(array), vectors.data());
      }
      visit_values(field, array, [&](const auto& values) { append_values(array, values); });
    }
    const double counted = has_seconds() ? static_cast<double>(frames + 1) : time;
    append_frame(time, number ? static_cast<double>(*number) : counted, name);
  }

  void begin(const Field& field) {
    choose_arrays([&](const FieldArray& array) {
      bool is_made = false;
      visit_values(field, array, [&](const auto& values) { is_made = !values.empty(); });
      return is_made;
    });
    create_arrays();
    if (field.positions) write_positions(*field.positions);
    file.begin_growing();
  }

  /// Writes the number of frames after the frames, so that readers see whole frames only. The times come
  /// last: VTK (9.7) reads all of them into an array of NSteps, and writes beyond its end.
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
    file.append(kOffsets + std::string(kFirstArray), frames);
    ++frames;
    times.push_back(time);
    file.append("/frame", number);
    file.append(kAbout + "/frames", name);
  }

  /// Gives the temporary file its name.
  void take_place() {
    if (target) target->commit();
    target.reset();
  }

  void write_positions(const NodePositions& positions) {
    const hdf5::Shape shape = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    for (const PositionArray& array : kPositionArrays)
      file.write(path_of(array), shape, scaled(positions.*array.member, length_factor));
    for (const PositionArray& array : kPositionArrays)
      name_for_netcdf(std::string(array.name), path_of(array), {"/y", "/x"}, length_unit, array.description);
    file.set_attribute("/", "coordinates", coordinates(true));
  }

  void append_values(const FieldArray& array, const NodeValues<Status>& values) {
    static_assert(sizeof(Status) == 1);
    file.append(path_of(array), reinterpret_cast<const std::uint8_t*>(values.data()));
  }
  /// An empty array (strain that was not computed) becomes NaN, or 0 in arrays of whole numbers.
  template <typename T>
  void append_values(const FieldArray& array, const NodeValues<T>& values) {
    const double factor = array.is_length() ? length_factor : 1;
    const bool as_they_are = factor == 1 && values.size() == grid.inside.size();
    file.append(path_of(array), as_they_are ? values.data() : scaled(values, factor));
  }
  template <typename T>
  const T* scaled(const NodeValues<T>& values, double factor) {
    auto& out = std::get<std::vector<T>>(scratch);
    out.assign(grid.inside.size(),
               std::numeric_limits<T>::quiet_NaN());  // whole numbers, which have no NaN, are 0
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

void VtkHdfWriter::append(const Field& field, double time, std::string_view name,
                          std::optional<std::int64_t> number) {
  add(field, time, name, number);
  publish();
}
void VtkHdfWriter::add(const Field& field, double time, std::string_view name,
                       std::optional<std::int64_t> number) {
  impl_->add(field, time, name, number);
}
void VtkHdfWriter::publish() { impl_->publish(); }

void VtkHdfWriter::finish() { impl_->finish(); }

}  // namespace dic
