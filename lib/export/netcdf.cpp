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
    file_.attach_scales("/" + array.name, {"/frame", "/y", "/x"});
    file_.check_written();
  }

  void write_coordinates() {
    const Grid& grid = selection_.result.grid();
    const hdf5::Shape nodes = {static_cast<std::uint64_t>(grid.ny), static_cast<std::uint64_t>(grid.nx)};
    std::string names = "file inside";
    file_.write_texts("/file", selection_.files());
    file_.attach_scales("/file", {"/frame"});
    file_.write("/inside", nodes, grid.inside.data());
    file_.attach_scales("/inside", {"/y", "/x"});
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
