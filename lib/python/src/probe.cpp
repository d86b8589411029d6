#include <nanobind/stl/array.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <dic/probe.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "bindings.hpp"
#include "fields.hpp"

namespace dic::python {

namespace {

using Places = std::vector<std::array<double, 4>>;
using Corners = std::vector<std::pair<double, double>>;

/// Values [frame, place].
class Matrix {
 public:
  Matrix(std::size_t frames, std::size_t places) : frames_(frames), places_(places) {}
  void add(double value) { values_.push_back(value); }
  NumpyArray array() {
    const double* const data = values_.data();
    return numpy_of(std::move(values_), data, {frames_, places_});
  }

 private:
  std::size_t frames_, places_;
  std::vector<double> values_;
};

/// value(frame, place)
NumpyArray matrix(const ProbeHistory& history, std::size_t places,
                  const std::function<double(const ProbeFrame&, std::size_t)>& value) {
  Matrix out(history.frames.size(), places);
  for (const ProbeFrame& frame : history.frames)
    for (std::size_t k = 0; k < places; ++k) out.add(value(frame, k));
  return out.array();
}

nb::list problems(const ProbeHistory& history, std::size_t places,
                  const std::function<const std::string&(const ProbeFrame&, std::size_t)>& problem) {
  nb::list frames;
  for (const ProbeFrame& frame : history.frames) {
    nb::list row;
    for (std::size_t k = 0; k < places; ++k) row.append(problem(frame, k));
    frames.append(row);
  }
  return frames;
}

nb::dict points_of(const ProbeHistory& history) {
  const std::size_t count = history.request.points.size();
  nb::dict out;
  for (const FieldArray& quantity : history.arrays())
    out[std::string(quantity.name).c_str()] =
        matrix(history, count,
               [&](const ProbeFrame& frame, std::size_t k) { return frame.points[k].values[quantity.name]; });
  out["problem"] = problems(history, count, [](const ProbeFrame& frame, std::size_t k) -> const std::string& {
    return frame.points[k].problem;
  });
  return out;
}

nb::dict extensometers_of(const ProbeHistory& history) {
  const std::size_t count = history.request.extensometers.size();
  nb::dict out;
  for (const auto& [name, member] :
       {std::pair{"gauge_length", &ExtensometerValues::gauge_length},
        std::pair{"change", &ExtensometerValues::change}, std::pair{"strain", &ExtensometerValues::strain},
        std::pair{"sigma_change", &ExtensometerValues::sigma_change},
        std::pair{"sigma_strain", &ExtensometerValues::sigma_strain}})
    out[name] = matrix(history, count, [member = member](const ProbeFrame& frame, std::size_t k) {
      return frame.extensometers[k].*member;
    });
  out["problem"] = problems(history, count, [](const ProbeFrame& frame, std::size_t k) -> const std::string& {
    return frame.extensometers[k].problem;
  });
  return out;
}

nb::dict areas_of(const ProbeHistory& history) {
  const std::size_t count = history.request.areas.size();
  nb::dict out;
  for (const auto& [name, member] :
       {std::pair{"nodes", &AreaValues::nodes}, std::pair{"points", &AreaValues::points},
        std::pair{"strain_points", &AreaValues::strain_points}})
    out[name] = matrix(history, count, [member = member](const ProbeFrame& frame, std::size_t k) {
      return static_cast<double>(frame.areas[k].*member);
    });
  for (const auto& [prefix, member] :
       {std::pair{"mean_", &AreaValues::mean}, std::pair{"sd_", &AreaValues::sd}})
    for (const FieldArray& quantity : history.arrays())
      out[(prefix + std::string(quantity.name)).c_str()] =
          matrix(history, count, [&, member = member](const ProbeFrame& frame, std::size_t k) {
            return (frame.areas[k].*member)[quantity.name];
          });
  return out;
}

/// Arrays [frame] of a line's shape, and their units.
nb::dict shape_of(const ProbeHistory& history, std::size_t line) {
  nb::dict out;
  for (const LineQuantity& quantity : kLineQuantities) {
    std::vector<double> values;
    for (const ProbeFrame& frame : history.frames) values.push_back(frame.line_shapes[line].*quantity.member);
    out[std::string(quantity.name).c_str()] =
        nb::make_tuple(numpy_of(std::move(values)), std::string(quantity.unit));
  }
  return out;
}

/// Points of a line: where they are, and their values [frame, point].
nb::dict line_of(const ProbeHistory& history, std::size_t line) {
  const std::vector<LinePoint> none;
  const std::vector<LinePoint>& places = history.frames.empty() ? none : history.frames.front().lines[line];
  std::vector<double> distance, x, y;
  for (const LinePoint& place : places) {
    distance.push_back(place.distance);
    x.push_back(place.at.x);
    y.push_back(place.at.y);
  }
  nb::dict out;
  out["distance"] = numpy_of(std::move(distance));
  out["position_x"] = numpy_of(std::move(x));
  out["position_y"] = numpy_of(std::move(y));
  for (const FieldArray& quantity : history.arrays())
    out[std::string(quantity.name).c_str()] =
        matrix(history, places.size(), [&](const ProbeFrame& frame, std::size_t k) {
          return frame.lines[line][k].point.values[quantity.name];
        });
  if (history.has_two_cameras) {
    out["offset"] = matrix(history, places.size(), [&](const ProbeFrame& frame, std::size_t k) {
      return frame.lines[line][k].offset;
    });
    out["shape"] = shape_of(history, line);
  }
  out["problem"] =
      problems(history, places.size(), [&](const ProbeFrame& frame, std::size_t k) -> const std::string& {
        return frame.lines[line][k].point.problem;
      });
  return out;
}

/// A dic::Probe, and the loads beside its fields.
class FieldProbe {
 public:
  FieldProbe(const Array& inside, int x0, int y0, int step, std::pair<int, int> image, double scale,
             const std::string& time_unit, const Corners& points, const Places& extensometers,
             const Places& lines, const std::vector<Corners>& areas)
      : grid_(grid_of(inside, x0, y0, step)) {
    ResultInfo info;
    info.image = {image.first, image.second};
    info.scale_mm_per_px = scale;
    info.time_unit = time_unit;
    ProbeRequest request;
    request.points = positions(points);
    request.extensometers = ends(extensometers);
    request.lines = ends(lines);
    for (const Corners& corners : areas) request.areas.push_back(positions(corners));
    probe_.emplace(*grid_, info, std::move(request));
  }

  void add(const nb::dict& arrays, const std::string& file, double time, std::int64_t number,
           const std::string& measure) {
    probe_->add(field_of(arrays, grid_), file, time, number);
    measure_ = measure;
  }

  /// Returns the history after the last field.
  void add_loads_of_file(const std::filesystem::path& path, const std::string& column, double section) {
    loads_ = read_loads(path, column);
    section_ = section;
  }
  void add_loads(std::vector<double> values, double section) {
    loads_.emplace();
    loads_->unit = "N";
    loads_->is_force = true;
    loads_->loads = std::move(values);
    for (std::size_t k = 0; k < loads_->loads.size(); ++k) loads_->keys.push_back(static_cast<double>(k) + 1);
    section_ = section;
  }

  std::vector<std::string> write(const std::filesystem::path& folder) const {
    const nb::gil_scoped_release others_run;
    return write_probe(folder, history());
  }

  nb::dict answers() const {
    const ProbeHistory all = history();
    nb::dict out;
    out["points"] = points_of(all);
    out["extensometers"] = extensometers_of(all);
    out["areas"] = areas_of(all);
    nb::list lines;
    for (std::size_t line = 0; line < all.request.lines.size(); ++line) lines.append(line_of(all, line));
    out["lines"] = lines;
    out["extensometer_unit"] = all.extensometer_unit();
    out["load_name"] = all.load_name;
    out["load_unit"] = all.load_unit;
    out["load_note"] = all.load_note;
    out["loads"] = all.loads;
    out["stresses"] = all.stresses();
    return out;
  }

 private:
  static std::vector<Position> positions(const Corners& corners) {
    std::vector<Position> out;
    for (const auto& [x, y] : corners) out.push_back({x, y});
    return out;
  }
  static std::vector<std::array<Position, 2>> ends(const Places& places) {
    std::vector<std::array<Position, 2>> out;
    for (const auto& [x1, y1, x2, y2] : places) out.push_back({Position{x1, y1}, Position{x2, y2}});
    return out;
  }
  ProbeHistory history() const {
    ProbeHistory all = probe_->history();
    all.strain_measure = measure_;
    if (loads_) dic::add_loads(all, *loads_, section_);
    return all;
  }

  std::shared_ptr<const Grid> grid_;
  std::optional<Probe> probe_;
  std::optional<LoadTable> loads_;
  double section_ = 0;
  std::string measure_;
};

}  // namespace

void add_probe(nb::module_& module) {
  using namespace nb::literals;
  nb::class_<FieldProbe>(module, "FieldProbe")
      .def(nb::init<const Array&, int, int, int, std::pair<int, int>, double, const std::string&,
                    const Corners&, const Places&, const Places&, const std::vector<Corners>&>(),
           "inside"_a, "x0"_a, "y0"_a, "step"_a, "image"_a, "scale"_a, "time_unit"_a, "points"_a,
           "extensometers"_a, "lines"_a, "areas"_a)
      .def("add", &FieldProbe::add, "arrays"_a, "file"_a, "time"_a, "number"_a, "measure"_a,
           "A field: arrays [y, x] by name, lengths in px.")
      .def("add_loads", &FieldProbe::add_loads, "values"_a, "section"_a, "N, one for each field.")
      .def("add_loads_of_file", &FieldProbe::add_loads_of_file, "path"_a, "column"_a, "section"_a)
      .def("write", &FieldProbe::write, "folder"_a, "The files of `dic probe`; returns their names.")
      .def("answers", &FieldProbe::answers, "Values by kind of place.");
}

}  // namespace dic::python
