#include <dic/field_schema.hpp>

#include "export/selection.hpp"
#include "io/hdf5_file.hpp"
#include "io/pending_file.hpp"

namespace dic::exporting {
namespace {

/// netCDF-4 is HDF5 with dimension scales.
class NetcdfFile {
 public:
  NetcdfFile(const std::filesystem::path& path, const Selection& selection)
      : target_(path), file_(target_.temporary()), selection_(selection) {}

  void write(Steps& steps) {
    const std::string unit = selection_.result.info().length_unit();
    scale("frame", selection_.frame_numbers(), "1", "number of the frame after the reference");
    scale("y", selection_.y(), unit, "y of the node in the reference image");
    scale("x", selection_.x(), unit, "x of the node in the reference image");
    for (const ResultArray& array : selection_.arrays) {
      steps.next();
      write_array(array);
    }
    write_coordinates();
    const ResultInfo& info = selection_.result.info();
    file_.set_attribute("/", "source", "dic " + info.version);
    file_.set_attribute("/", "subset", static_cast<std::int64_t>(info.subset));
    file_.set_attribute("/", "step", static_cast<std::int64_t>(selection_.result.grid().step));
    file_.set_attribute("/", "strain_measure", to_string(info.strain.measure));
    file_.set_attribute("/", "strain_window", static_cast<std::int64_t>(info.strain.window));
    file_.set_attribute("/", "length_unit", unit);
    file_.set_attribute("/", "scale_mm_per_px", info.scale_mm_per_px);
    file_.close();
    target_.commit();
  }

 private:
  void describe(const std::string& name, std::string_view unit, std::string_view description) {
    file_.set_attribute("/" + name, "units", unit);
    file_.set_attribute("/" + name, "long_name", description);
  }

  void scale(const std::string& name, const std::vector<double>& values, std::string_view unit,
             std::string_view description) {
    file_.write("/" + name, {values.size()}, values.data());
    file_.make_scale("/" + name);
    describe(name, unit, description);
  }

  void write_array(const ResultArray& array) {
    const Grid& grid = selection_.result.grid();
    visit_scalar(array.type, [&]<typename T>(T) {
      if constexpr (!std::is_same_v<T, std::uint16_t>) {  // a type that no array has
        file_.create_series<T>("/" + array.name,
                               {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)});
        for (const int frame : selection_.frames)
          file_.append("/" + array.name, selection_.result.values<T>(array.name, frame).data());
      }
    });
    describe(array.name, array.unit, array.description);
    if (!array.measure.empty()) file_.set_attribute("/" + array.name, "measure", array.measure);
    if (array.name == "status") describe_status();
    file_.attach_scales("/" + array.name, {"/frame", "/y", "/x"});
    file_.check_written();
  }

  /// Names of the statuses by number, as the CF conventions of netCDF write them.
  void describe_status() {
    std::vector<std::uint8_t> numbers;
    std::string meanings;
    for (const auto& [status, name] : EnumNames<Status>::table) {
      numbers.push_back(static_cast<std::uint8_t>(status));
      meanings.append(meanings.empty() ? "" : " ").append(name);
    }
    file_.set_attribute("/status", "flag_values", numbers);
    file_.set_attribute("/status", "flag_meanings", meanings);
  }

  void write_coordinates() {
    const Grid& grid = selection_.result.grid();
    const hdf5::Shape nodes = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    std::string names = "file inside";
    file_.write_texts("/file", selection_.files());
    file_.attach_scales("/file", {"/frame"});
    file_.write("/inside", nodes, grid.inside.data());
    file_.attach_scales("/inside", {"/y", "/x"});
    describe("file", "1", "file of the frame");
    describe("inside", "1", "1 where the node is inside the ROI");
    if (const auto& positions = selection_.result.positions()) {
      for (const PositionArray& array : kPositionArrays) {
        const std::string name(array.name);
        std::vector<double> values((*positions.*array.member).begin(), (*positions.*array.member).end());
        for (double& value : values) value *= selection_.result.info().length_factor();
        file_.write("/" + name, nodes, values.data());
        describe(name, selection_.result.info().length_unit(), array.description);
        file_.attach_scales("/" + name, {"/y", "/x"});
        names += " " + name;
      }
    }
    if (selection_.has_seconds()) {
      const std::vector<double> times = selection_.times();
      file_.write("/time", {times.size()}, times.data());
      describe("time", "s", "time");
      file_.attach_scales("/time", {"/frame"});
      names += " time";
    }
    file_.set_attribute("/", "coordinates", names);
  }

  PendingFile target_;
  hdf5::OutputFile file_;
  const Selection& selection_;
};

}  // namespace

void write_netcdf(const std::filesystem::path& path, const Selection& selection, Steps& steps) {
  NetcdfFile(path, selection).write(steps);
}

}  // namespace dic::exporting
