#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dic/error.hpp>
#include <dic/field_schema.hpp>
#include <dic/result.hpp>
#include <limits>
#include <mutex>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>

#include "io/hdf5_input.hpp"
#include "io/vtkhdf_layout.hpp"

namespace dic {
namespace {

using namespace io;
namespace fs = std::filesystem;

constexpr int kLargestCoordinate = 1 << 30;  // px

fs::path file_of(const fs::path& path) {
  std::error_code unknown;
  return fs::is_directory(path, unknown) ? path / "result.vtkhdf" : path;
}

/// Reads what does not change from frame to frame.
class Description {
 public:
  explicit Description(const hdf5::InputFile& file) : file_(file) {
    if (!file.has(kAbout) || !file.has(kRoot))
      file.fail("it is HDF5, but no result of dic track: it has no group " +
                (file.has(kRoot) ? kAbout : kRoot));
  }

  ResultInfo info() const {
    ResultInfo info;
    info.subset = whole_number("subset", 1, 1 << 16);
    info.image.width = whole_number("image_width", 1, kLargestCoordinate);
    info.image.height = whole_number("image_height", 1, kLargestCoordinate);
    info.scale_mm_per_px = file_.number_attribute(kAbout, "scale_mm_per_px").value_or(0);
    if (!std::isfinite(info.scale_mm_per_px) || info.scale_mm_per_px < 0)
      file_.fail("its scale is no number of at least 0");
    const auto measure =
        from_name<StrainMeasure>(file_.text_attribute(kAbout, "strain_measure").value_or(""));
    if (!measure) file_.fail("its strain_measure is not one that dic knows");
    info.strain = {whole_number("strain_window", 1, 1 << 16), *measure};
    info.version = file_.text_attribute(kAbout, "version").value_or("");
    info.command = text("command");
    info.settings_json = text("settings");
    info.reference = text("reference");
    if (file_.has(kTimes)) info.time_unit = file_.text_attribute(kTimes, "unit").value_or(info.time_unit);
    return info;
  }

  Grid grid(double length_factor) const {
    const std::vector<double> x = coordinates("/x"), y = coordinates("/y");
    Grid grid;
    grid.step = whole_number("step", 1, kLargestCoordinate);
    grid.nx = static_cast<int>(x.size()), grid.ny = static_cast<int>(y.size());
    grid.x0 = first_node(x, grid.step, length_factor);
    grid.y0 = first_node(y, grid.step, length_factor);
    if (file_.shape(kAbout + "/inside") != hdf5::Shape{y.size(), x.size()})
      file_.fail("/dic/inside has not the size of the grid");
    file_.read(kAbout + "/inside", grid.inside);
    for (std::uint8_t& is_inside : grid.inside) is_inside = is_inside != 0;
    return grid;
  }

  /// Null in a result without a camera.
  std::shared_ptr<const NodePositions> positions(const Grid& grid, double length_factor) const {
    for (const PositionArray& array : kPositionArrays)
      if (!file_.has(path_of(array))) return nullptr;
    const hdf5::Shape shape = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    NodePositions positions;
    for (const PositionArray& array : kPositionArrays) {
      auto values = file_.read_part<double>(path_of(array), {0, 0}, shape);
      for (double& value : values) value /= length_factor;
      positions.*array.member = NodeValues<double>(std::span<const double>(values));
    }
    return std::make_shared<NodePositions>(std::move(positions));
  }

  /// A file that grows, or whose writer was killed, may have a part of some more.
  std::vector<std::string> frame_names() const {
    std::vector<std::string> names = file_.texts(kAbout + "/frames");
    const auto whole = file_.has(kSteps) ? file_.number_attribute(kSteps, "NSteps") : std::nullopt;
    if (whole && *whole >= 0 && *whole < static_cast<double>(names.size()))
      names.resize(static_cast<std::size_t>(*whole));
    if (names.size() > known_times()) names.resize(known_times());
    return names;
  }

  std::size_t known_times() const {
    const hdf5::Shape shape = file_.has(kTimes) ? file_.shape(kTimes) : hdf5::Shape{};
    return shape.empty() ? 0 : static_cast<std::size_t>(shape[0]);
  }

  /// Times of all frames.
  std::vector<double> times(std::size_t frames) const {
    std::vector<double> times;
    if (frames > 0) file_.read(kTimes, times);
    times.resize(frames);
    return times;
  }

  /// Numbers of all frames; files of early versions have none and are counted.
  std::vector<std::int64_t> frame_numbers(const std::vector<double>& times, bool has_seconds) const {
    std::vector<double> numbers = times;
    if (const hdf5::Shape shape = file_.has("/frame") ? file_.shape("/frame") : hdf5::Shape{};
        shape.size() == 1 && shape[0] >= times.size() && !times.empty())
      numbers = file_.read_part<double>("/frame", {0}, {times.size()});
    else if (has_seconds)
      std::iota(numbers.begin(), numbers.end(), 1.0);
    std::vector<std::int64_t> whole;
    for (const double number : numbers) {
      if (!(std::abs(number) <= kLargestCoordinate) || number != std::floor(number))
        file_.fail("its frames have numbers that are no numbers of frames");
      whole.push_back(static_cast<std::int64_t>(number));
    }
    return whole;
  }

  std::vector<ResultArray> arrays(const Grid& grid, std::size_t frames) const {
    std::vector<ResultArray> arrays;
    if (frames == 0 || !file_.has(kRoot + "/PointData")) return arrays;
    for (const std::string& name : file_.datasets(kRoot + "/PointData")) {
      const std::string path = kPointData + name;
      hdf5::Shape shape = file_.shape(path);
      int components = 1;
      if (shape.size() == 4 && shape[3] >= 1 && shape[3] <= 9) {
        components = static_cast<int>(shape[3]);
        shape.pop_back();
      }
      if (!shape.empty()) shape[0] = std::min<std::uint64_t>(shape[0], frames);
      if (shape !=
          hdf5::Shape{frames, static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)})
        file_.fail("the array " + name + " has not a value for each node of each frame");
      const auto attribute = [&](const char* what) { return file_.text_attribute(path, what).value_or(""); };
      arrays.push_back({name, attribute("unit"), attribute("description"), attribute("measure"),
                        type_of(path), components});
    }
    return arrays;
  }

 private:
  int whole_number(const std::string& name, int least, int most) const {
    const double value =
        file_.number_attribute(kAbout, name).value_or(std::numeric_limits<double>::quiet_NaN());
    if (!(value >= least && value <= most && value == std::floor(value)))
      file_.fail("its attribute " + name + " is missing or makes no sense");
    return static_cast<int>(value);
  }

  std::string text(const std::string& name) const {
    const std::vector<std::string> texts = file_.texts(kAbout + "/" + name);
    return texts.empty() ? std::string() : texts.front();
  }

  std::vector<double> coordinates(const std::string& name) const {
    if (const hdf5::Shape shape = file_.shape(kAbout + name);
        shape.size() != 1 || shape[0] > kLargestCoordinate)
      file_.fail("/dic" + name + " is no list of positions");
    std::vector<double> values;
    file_.read(kAbout + name, values);
    return values;
  }

  /// px; all nodes are `step` apart.
  int first_node(const std::vector<double>& positions, int step, double length_factor) const {
    if (positions.empty()) return 0;
    const double first = std::round(positions.front() / length_factor);
    const double last = first + static_cast<double>(positions.size() - 1) * step;
    bool fits = first >= -kLargestCoordinate && last <= kLargestCoordinate;
    for (std::size_t k = 0; fits && k < positions.size(); ++k)
      fits = std::abs(positions[k] / length_factor - (first + static_cast<double>(k) * step)) < 0.01;
    if (!fits) file_.fail("its nodes are not " + std::to_string(step) + " px apart");
    return static_cast<int>(first);
  }

  ScalarType type_of(const std::string& path) const {
    const std::size_t size = file_.element_size(path);
    if (file_.is_floating(path)) return size > 4 ? ScalarType::f64 : ScalarType::f32;
    return size == 1 ? ScalarType::u8 : ScalarType::i32;
  }

  const hdf5::InputFile& file_;
};

}  // namespace

struct Result::Impl {
  fs::path path;
  hdf5::InputFile file;
  ResultInfo info;
  std::shared_ptr<const Grid> grid;
  std::shared_ptr<const NodePositions> positions;
  std::vector<std::string> frame_names;
  std::vector<double> times;
  std::vector<std::int64_t> frame_numbers;
  std::vector<ResultArray> arrays;
  mutable std::mutex reading;

  explicit Impl(const fs::path& given) : path(file_of(given)), file(path) {
    const Description description(file);
    info = description.info();
    grid = std::make_shared<const Grid>(description.grid(info.length_factor()));
    positions = description.positions(*grid, info.length_factor());
    frame_names = description.frame_names();
    times = description.times(frame_names.size());
    frame_numbers = description.frame_numbers(times, info.time_unit == "s");
    arrays = description.arrays(*grid, frame_names.size());
  }

  const ResultArray* find(std::string_view name) const {
    const auto found = std::ranges::find(arrays, name, &ResultArray::name);
    return found == arrays.end() ? nullptr : &*found;
  }

  const ResultArray& array(std::string_view name) const {
    if (const ResultArray* found = find(name)) return *found;
    std::string names;
    for (const ResultArray& array : arrays) names += (names.empty() ? "" : ", ") + array.name;
    throw UsageError("'" + path.string() + "' has no array \"" + std::string(name) + "\": it has " +
                     (names.empty() ? "no frames, and so no arrays" : names) + ".");
  }

  void check_frame(int frame) const {
    if (frame >= 0 && frame < std::ssize(frame_names)) return;
    throw UsageError("'" + path.string() + "' has no frame with the index " + std::to_string(frame) +
                     ": there are " + std::to_string(frame_names.size()) + ", counted from 0.");
  }

  template <typename T>
  std::vector<T> read(std::string_view name, int frame, const Nodes& part) const {
    const ResultArray& wanted = array(name);
    check_frame(frame);
    const bool fits = part.i >= 0 && part.j >= 0 && part.nx >= 0 && part.ny >= 0 &&
                      part.nx <= grid->nx - part.i && part.ny <= grid->ny - part.j;
    if (!fits)
      throw UsageError("The part of the nodes reaches beyond the grid of " + std::to_string(grid->nx) + "x" +
                       std::to_string(grid->ny) + ".");
    const auto size = [](int value) { return static_cast<std::uint64_t>(value); };
    hdf5::Shape start = {size(frame), size(part.j), size(part.i)}, count = {1, size(part.ny), size(part.nx)};
    if (wanted.components > 1) start.push_back(0), count.push_back(size(wanted.components));
    const std::scoped_lock lock(reading);
    return file.read_part<T>(kPointData + wanted.name, start, count);
  }

  template <typename T>
  std::vector<T> read(std::string_view name, int frame) const {
    return read<T>(name, frame, {0, 0, grid->nx, grid->ny});
  }

  /// Loads an array as it was measured: lengths in px. Throws if it is missing or has several components.
  template <typename T>
  void load(NodeValues<T>& target, const FieldArray& array, int frame) const {
    const std::string name(array.name);
    const ResultArray* stored = find(name);
    if (stored == nullptr || stored->components != 1)
      file.fail("it lacks the array " + name + ", which every result of dic track has");
    const double length_factor = array.is_length() ? info.length_factor() : 1;
    constexpr bool is_short = std::is_same_v<T, std::int16_t>;
    const auto values = read<std::conditional_t<is_short, std::int32_t, T>>(name, frame);
    target = NodeValues<T>(values.size());
    std::ranges::transform(values, target.begin(), [&](auto value) {
      if constexpr (is_short) {
        if (!std::in_range<T>(value))
          file.fail("its array " + name + " has a value of " + std::to_string(value));
        return static_cast<T>(value);
      } else {
        return static_cast<T>(length_factor == 1 ? value : value / length_factor);
      }
    });
  }

  void load(NodeValues<Status>& target, const FieldArray& array, int frame) const {
    NodeValues<std::uint8_t> numbers;
    load(numbers, array, frame);
    target = NodeValues<Status>(numbers.size());
    for (std::size_t k = 0; k < numbers.size(); ++k) {
      if (numbers[k] >= kStatusCount)
        file.fail("it has a status " + std::to_string(numbers[k]) +
                  ", which this version of dic does not know");
      target[k] = static_cast<Status>(numbers[k]);
    }
  }

  Field field(int frame) const {
    check_frame(frame);
    Field field = Field::without_arrays(grid);
    for (const FieldArray& array : kMeasuredArrays) {
      const bool is_required = !array.is_optional() && !array.is_strain();
      if (is_required || find(array.name) != nullptr)
        visit_values(field, array, [&](auto& values) { load(values, array, frame); });
    }
    field.positions = positions;
    return field;
  }
};

Result::Result(const fs::path& path) : impl_(std::make_unique<Impl>(path)) {}
Result::~Result() = default;
Result::Result(Result&&) noexcept = default;
Result& Result::operator=(Result&&) noexcept = default;

const fs::path& Result::path() const { return impl_->path; }
const Grid& Result::grid() const { return *impl_->grid; }
const std::shared_ptr<const Grid>& Result::shared_grid() const { return impl_->grid; }
const ResultInfo& Result::info() const { return impl_->info; }
int Result::frame_count() const { return static_cast<int>(impl_->frame_names.size()); }
const std::vector<std::string>& Result::frame_names() const { return impl_->frame_names; }
const std::vector<std::int64_t>& Result::frame_numbers() const { return impl_->frame_numbers; }
const std::vector<double>& Result::times() const { return impl_->times; }
const std::vector<ResultArray>& Result::arrays() const { return impl_->arrays; }
bool Result::has(std::string_view array) const { return impl_->find(array) != nullptr; }
const ResultArray& Result::array(std::string_view name) const { return impl_->array(name); }
const std::shared_ptr<const NodePositions>& Result::positions() const { return impl_->positions; }

template <typename T>
std::vector<T> Result::values(std::string_view array, int frame) const {
  return impl_->read<T>(array, frame);
}
template <typename T>
std::vector<T> Result::values(std::string_view array, int frame, const Nodes& part) const {
  return impl_->read<T>(array, frame, part);
}
template std::vector<double> Result::values(std::string_view, int) const;
template std::vector<float> Result::values(std::string_view, int) const;
template std::vector<std::int32_t> Result::values(std::string_view, int) const;
template std::vector<std::uint8_t> Result::values(std::string_view, int) const;
template std::vector<double> Result::values(std::string_view, int, const Nodes&) const;
template std::vector<float> Result::values(std::string_view, int, const Nodes&) const;
template std::vector<std::int32_t> Result::values(std::string_view, int, const Nodes&) const;
template std::vector<std::uint8_t> Result::values(std::string_view, int, const Nodes&) const;

Field Result::field(int frame) const { return impl_->field(frame); }

}  // namespace dic
