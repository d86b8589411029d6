#include <algorithm>
#include <cmath>
#include <cstddef>
#include <dic/error.hpp>
#include <dic/probe.hpp>
#include <dic/shared/tears.hpp>
#include <utility>

#include "query/space.hpp"

namespace dic {
namespace {

constexpr double kNone = ProbeValues::kNone;
constexpr float kNoSigma = std::numeric_limits<float>::quiet_NaN();

constexpr std::string_view kNormalStrain = kStrainComponents.front().name;

/// The nodes around a position that take part in its bilinear interpolation: four, two on a line of the grid,
/// one on a node.
struct Cell {
  struct Corner {
    int i, j;
    double weight;
  };
  std::vector<Corner> corners;  // empty outside the grid

  Cell(const Grid& grid, Position at) {
    const double x = (at.x - grid.x0) / grid.step, y = (at.y - grid.y0) / grid.step;
    constexpr double kRounding = 1e-9;  // rounding errors of computed positions
    if (!(x >= -kRounding && y >= -kRounding && x <= grid.nx - 1 + kRounding && y <= grid.ny - 1 + kRounding))
      return;
    const int i = std::clamp(static_cast<int>(std::floor(x + kRounding)), 0, grid.nx - 1);
    const int j = std::clamp(static_cast<int>(std::floor(y + kRounding)), 0, grid.ny - 1);
    const double fx = std::max(x - i, 0.0), fy = std::max(y - j, 0.0);
    for (const int dj : {0, 1})
      for (const int di : {0, 1}) {
        const double weight = (di == 1 ? fx : 1 - fx) * (dj == 1 ? fy : 1 - fy);
        if (weight > kRounding && i + di < grid.nx && j + dj < grid.ny)
          corners.push_back({i + di, j + dj, weight});
      }
  }
};

std::size_t node_of(const Grid& grid, const Cell::Corner& corner) {
  return static_cast<std::size_t>(corner.j) * grid.nx + corner.i;
}

bool is_beside_tear(const Field& field, const Cell::Corner& corner) {
  const Grid& grid = field.grid();
  const auto at = [&](int di, int dj) -> strain::TearNode {
    const int i = corner.i + di, j = corner.j + dj;
    if (i < 0 || j < 0 || i >= grid.nx || j >= grid.ny) return {kNone, kNone, kNoSigma, kNoSigma};
    const std::size_t k = node_of(grid, {i, j, 1});
    if (field.status[k] != Status::ok) return {kNone, kNone, kNoSigma, kNoSigma};
    return {field.u[k], field.v[k], field.sigma_u[k], field.sigma_v[k]};
  };
  return strain::is_beside_tear(at, grid.step);
}

/// Why a position has no values; empty: it has.
std::string problem_of(const Field& field, const Cell& cell) {
  const Grid& grid = field.grid();
  if (cell.corners.empty()) return "outside the grid of points";
  for (const Cell::Corner& corner : cell.corners) {
    const Status status = field.status[node_of(grid, corner)];
    if (status == Status::ok) continue;
    return "the point (" + std::to_string(grid.x(corner.i)) + ", " + std::to_string(grid.y(corner.j)) +
           ") beside it is " + std::string(to_string(status)) +
           (status == Status::out_of_image ? ": its subset reaches beyond the border of the image" : "");
  }
  if (cell.corners.size() > 1)
    for (const Cell::Corner& corner : cell.corners)
      if (is_beside_tear(field, corner)) return "beside a crack";
  return {};
}

/// Position on the specimen, px: in corrected coordinates, if the field is. NaN outside of the grid.
Position on_specimen(const Field& field, Position at) {
  if (!field.positions) return at;
  const Cell cell(field.grid(), at);
  Position position{cell.corners.empty() ? kNone : 0, cell.corners.empty() ? kNone : 0};
  for (const Cell::Corner& corner : cell.corners) {
    position.x += corner.weight * field.x(corner.i, corner.j);
    position.y += corner.weight * field.y(corner.i, corner.j);
  }
  return position;
}

double distance(Position a, Position b) { return std::hypot(b.x - a.x, b.y - a.y); }

void scale_lengths(ProbeValues& values, double factor) {
  for (std::size_t q = 0; q < kProbeArrays.size(); ++q)
    if (kProbeArrays[q].is_length()) values[q] *= factor;
}

std::string text_of(Position at) {
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    return std::string(text);
  };
  return number(at.x) + "," + number(at.y);
}

void check_inside(Position at, Size image) {
  if (at.x >= 0 && at.y >= 0 && at.x <= image.width - 1 && at.y <= image.height - 1) return;
  throw UsageError("The position " + text_of(at) + " is outside the reference of " +
                   std::to_string(image.width) + "x" + std::to_string(image.height) +
                   " px: positions are in px, from the top left pixel.");
}

void check_ends(const char* what, const std::array<Position, 2>& ends, Size image) {
  for (const Position& end : ends) check_inside(end, image);
  if (distance(ends[0], ends[1]) < 1)
    throw UsageError(std::string("The ends of the ") + what + " " + text_of(ends[0]) + "," +
                     text_of(ends[1]) + " are less than 1 px apart.");
}

PointValues scaled(PointValues point, double factor) {
  scale_lengths(point.values, factor);
  return point;
}
ExtensometerValues scaled(ExtensometerValues values, double factor) {
  for (double* length : {&values.gauge_length, &values.change, &values.sigma_change}) *length *= factor;
  return values;
}
std::vector<LinePoint> scaled(std::vector<LinePoint> line, double factor) {
  for (LinePoint& point : line) {
    point.distance *= factor;
    scale_lengths(point.point.values, factor);
  }
  return line;
}
AreaValues scaled(AreaValues area, double factor) {
  scale_lengths(area.mean, factor);
  scale_lengths(area.sd, factor);
  return area;
}

}  // namespace

std::size_t ProbeValues::index_of(std::string_view name) {
  const auto found = std::ranges::find(kProbeArrays, name, &FieldArray::name);
  if (found == kProbeArrays.end()) throw UsageError("Probes have no values of " + std::string(name) + ".");
  return static_cast<std::size_t>(found - kProbeArrays.begin());
}

PointValues probe_point(const Field& field, Position at) {
  PointValues result;
  const Cell cell(field.grid(), at);
  result.problem = problem_of(field, cell);
  if (!result.problem.empty()) return result;
  for (std::size_t q = 0; q < kProbeArrays.size(); ++q) {
    result.values[q] = 0;
    for (const Cell::Corner& corner : cell.corners)
      result.values[q] += corner.weight * value_at(field, kProbeArrays[q], node_of(field.grid(), corner));
  }
  if (std::isnan(result.values[kNormalStrain]))
    result.problem = "no strain: too few points in the strain window";
  return result;
}

ExtensometerValues probe_extensometer(const Field& field, Position a, Position b) {
  ExtensometerValues result;
  const bool in_space = query::is_in_space(field);
  const Position from = on_specimen(field, a), to = on_specimen(field, b);
  if (!in_space) result.gauge_length = distance(from, to);
  const PointValues first = probe_point(field, a), second = probe_point(field, b);
  const auto problem_at = [](const PointValues& end, const char* name) {
    return std::isnan(end.values["u"]) ? std::string(name) + ": " + end.problem : std::string();
  };
  result.problem = problem_at(first, "first end");
  if (result.problem.empty()) result.problem = problem_at(second, "second end");
  if (!result.problem.empty()) return result;
  if (in_space)
    return query::distance_in_space(query::SpacePoint(first.values), query::SpacePoint(second.values));
  const Position moved_from{from.x + first.values["u"], from.y + first.values["v"]};
  const Position moved_to{to.x + second.values["u"], to.y + second.values["v"]};
  const double length = distance(moved_from, moved_to);
  result.change = length - result.gauge_length;
  result.strain = result.change / result.gauge_length;
  const double along_x = (moved_to.x - moved_from.x) / length, along_y = (moved_to.y - moved_from.y) / length;
  const auto variance = [&](const ProbeValues& end) {
    return std::pow(along_x * end["sigma_u"], 2) + std::pow(along_y * end["sigma_v"], 2);
  };
  result.sigma_change = std::sqrt(variance(first.values) + variance(second.values));
  result.sigma_strain = result.sigma_change / result.gauge_length;
  return result;
}

SurfacePoint probe_surface_point(const Field& field, Position at) {
  const StereoField& all = field.stereo;
  if (all.x.empty()) throw UsageError("The field is that of one camera: it has no positions in space.");
  SurfacePoint point;
  const Cell cell(field.grid(), at);
  point.problem = problem_of(field, cell);
  if (!point.problem.empty()) return point;
  const auto value = [&](const auto& values) {
    double sum = 0;
    for (const Cell::Corner& corner : cell.corners)
      sum += corner.weight * values[node_of(field.grid(), corner)];
    return sum;
  };
  point.position = {value(all.x), value(all.y), value(all.z)};
  point.displacement = {value(all.u), value(all.v), value(all.w)};
  point.sigma_position = {value(all.sigma_x), value(all.sigma_y), value(all.sigma_z)};
  point.sigma_displacement = {value(all.sigma_u), value(all.sigma_v), value(all.sigma_w)};
  point.epipolar = value(all.epipolar);
  return point;
}

ExtensometerValues probe_surface_extensometer(const Field& field, Position a, Position b) {
  const std::array<SurfacePoint, 2> ends = {probe_surface_point(field, a), probe_surface_point(field, b)};
  ExtensometerValues result;
  for (std::size_t k = 0; k < ends.size() && result.problem.empty(); ++k)
    if (!ends[k].problem.empty())
      result.problem = (k == 0 ? "first end: " : "second end: ") + ends[k].problem;
  if (!result.problem.empty()) return result;
  std::array<double, 3> before{}, after{};  // from the first end to the second
  for (std::size_t c = 0; c < before.size(); ++c) {
    before[c] = ends[1].position[c] - ends[0].position[c];
    after[c] = before[c] + ends[1].displacement[c] - ends[0].displacement[c];
  }
  const double length = std::hypot(after[0], after[1], after[2]);
  result.gauge_length = std::hypot(before[0], before[1], before[2]);
  result.change = length - result.gauge_length;
  result.strain = result.change / result.gauge_length;
  double variance = 0;
  for (const SurfacePoint& end : ends)
    for (std::size_t c = 0; c < after.size(); ++c)
      variance += std::pow(after[c] / length * end.sigma_displacement[c], 2);
  result.sigma_change = std::sqrt(variance);
  result.sigma_strain = result.sigma_change / result.gauge_length;
  return result;
}

std::vector<LinePoint> probe_line(const Field& field, Position a, Position b) {
  const int parts = std::max(1, static_cast<int>(std::ceil(distance(a, b) / field.grid().step - 1e-9)));
  const Position begin = on_specimen(field, a);
  std::vector<LinePoint> line;
  for (int k = 0; k <= parts; ++k) {
    const double share = static_cast<double>(k) / parts;
    const Position at{a.x + share * (b.x - a.x), a.y + share * (b.y - a.y)};
    line.push_back({distance(begin, on_specimen(field, at)), at, probe_point(field, at)});
  }
  return line;
}

LineShape probe_line_shape(const Field& field, std::vector<LinePoint>& line) {
  return query::is_in_space(field) ? query::shape_in_space(field, line) : LineShape();
}

std::vector<std::size_t> nodes_in(const Grid& grid, Size image, const Roi::Polygon& area) {
  Roi roi;
  roi.polygons = {area};
  const Image mask = rasterize(roi, image);
  std::vector<std::size_t> nodes;
  for (int j = 0; j < grid.ny; ++j)
    for (int i = 0; i < grid.nx; ++i) {
      const std::size_t k = node_of(grid, {i, j, 1});
      const bool is_in_image =
          grid.x(i) >= 0 && grid.y(j) >= 0 && grid.x(i) < image.width && grid.y(j) < image.height;
      if (is_in_image && grid.inside[k] && mask.row<std::uint8_t>(grid.y(j))[grid.x(i)] != 0)
        nodes.push_back(k);
    }
  if (nodes.empty())
    throw UsageError("No point of the grid (one each " + std::to_string(grid.step) +
                     " px) lies in the area that begins at " +
                     (area.empty() ? std::string() : text_of(area.front())) + ".");
  return nodes;
}

AreaValues probe_area(const Field& field, std::span<const std::size_t> nodes) {
  AreaValues result;
  result.nodes = std::ssize(nodes);
  for (std::size_t q = 0; q < kProbeArrays.size(); ++q) {
    // Differences from the first value: sums of squares of large displacements would lose digits.
    double n = 0, first = 0, sum = 0, squares = 0;
    for (const std::size_t k : nodes) {
      const double value = field.status[k] == Status::ok ? value_at(field, kProbeArrays[q], k) : kNone;
      if (std::isnan(value)) continue;
      if (n == 0) first = value;
      n += 1, sum += value - first, squares += (value - first) * (value - first);
    }
    const double mean = sum / n;  // NaN where there is none
    result.mean[q] = first + mean;
    result.sd[q] = std::sqrt(std::max(squares / n - mean * mean, 0.0));
    if (kProbeArrays[q].name == "u") result.points = static_cast<std::int64_t>(n);
    if (kProbeArrays[q].name == kNormalStrain) result.strain_points = static_cast<std::int64_t>(n);
  }
  return result;
}

std::vector<FieldArray> ProbeHistory::displacements() const {
  if (has_two_cameras) return {*find_field_array("U"), *find_field_array("V"), *find_field_array("W")};
  const auto& arrays = kArraysOf<ArrayRole::displacement>;
  return {arrays.begin(), arrays.end()};
}

Probe::Probe(const Grid& grid, const ResultInfo& info, ProbeRequest request)
    : length_factor_(info.length_factor()) {
  if (request.empty())
    throw UsageError("Nothing was asked for: name a point, an extensometer, a line or an area.");
  for (const auto& ends : request.extensometers) check_ends("extensometer", ends, info.image);
  for (const auto& ends : request.lines) check_ends("line", ends, info.image);
  for (const Position& point : request.points) check_inside(point, info.image);
  for (const Roi::Polygon& area : request.areas) area_nodes_.push_back(nodes_in(grid, info.image, area));
  history_.request = std::move(request);
  history_.length_unit = info.length_unit();
  history_.time_unit = info.time_unit;
  history_.strain_measure = to_string(info.strain.measure);
}

void Probe::add(const Field& field, const std::string& file, double time, std::int64_t number) {
  ProbeFrame& frame = history_.frames.emplace_back();
  frame.file = file;
  frame.time = time;
  frame.number = number;
  history_.has_two_cameras = query::is_in_space(field);
  for (const Position& point : history_.request.points)
    frame.points.push_back(scaled(probe_point(field, point), length_factor_));
  for (const auto& [a, b] : history_.request.extensometers)
    frame.extensometers.push_back(scaled(probe_extensometer(field, a, b), length_factor_));
  for (const auto& [a, b] : history_.request.lines) {
    std::vector<LinePoint> line = probe_line(field, a, b);
    frame.line_shapes.push_back(probe_line_shape(field, line));
    frame.lines.push_back(scaled(std::move(line), length_factor_));
  }
  for (const auto& nodes : area_nodes_)
    frame.areas.push_back(scaled(probe_area(field, nodes), length_factor_));
}

ProbeHistory probe_result(const Result& result, const ProbeRequest& request, const ProgressCallback& progress,
                          std::stop_token stop) {
  Probe probe(result.grid(), result.info(), request);
  std::vector<int> frames = request.frames;
  if (frames.empty())
    for (int frame = 0; frame < result.frame_count(); ++frame) frames.push_back(frame);
  int done = 0;
  for (const int frame : frames) {
    if (stop.stop_requested()) throw Cancelled("Interrupted: nothing was written.");
    if (progress) progress({"load", ++done, static_cast<int>(frames.size()), 0, 0});
    probe.add(result.field(frame), result.frame_names()[frame], result.times()[frame],
              result.frame_numbers()[frame]);
  }
  return probe.history();
}

}  // namespace dic
