#pragma once

#include <array>
#include <cstdint>
#include <dic/draw.hpp>
#include <dic/export.hpp>
#include <dic/field_schema.hpp>
#include <dic/fields.hpp>
#include <dic/progress.hpp>
#include <dic/result.hpp>
#include <dic/track.hpp>  // Roi
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// Values of a field at places that a user chooses: points, extensometers, lines, areas. Places are always
/// positions in the reference image, px, regardless of the unit of the values.
namespace dic {

/// A position in the reference image, px.
using Position = Roi::Vertex;

/// The arrays that probes have: displacement, quality and strain with their sigmas, lengths first; at the end
/// those that two cameras measure.
inline constexpr auto kProbeArrays = [] {
  auto arrays = kArraysIf<[](const FieldArray& array) {
    const bool is_told = array.role != ArrayRole::status && array.role != ArrayRole::detail;
    return array.is_in_field() && (is_told || array.made_by == MadeBy::stereo);
  }>;
  std::size_t next = 0;
  auto sorted = arrays;
  for (const bool is_stereo : {false, true})
    for (const bool is_length : {true, false})
      for (const FieldArray& array : arrays)
        if (array.is_length() == is_length && (array.made_by == MadeBy::stereo) == is_stereo)
          sorted[next++] = array;
  return sorted;
}();
/// Those of kProbeArrays that one camera measures.
inline constexpr std::span kOneCameraProbeArrays = std::span(kProbeArrays).first<[] {
  std::size_t count = 0;
  for (const FieldArray& array : kProbeArrays) count += array.made_by == MadeBy::stereo ? 0 : 1;
  return count;
}()>();

/// The values of a field at a place, one for each of kProbeArrays; NaN for missing ones.
class ProbeValues {
 public:
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  ProbeValues() { values_.fill(kNone); }
  /// The value of the array with this index in kProbeArrays.
  double& operator[](std::size_t index) { return values_[index]; }
  double operator[](std::size_t index) const { return values_[index]; }
  /// The value of the array with this name. Throws UsageError for an unknown name.
  double& operator[](std::string_view name) { return values_[index_of(name)]; }
  double operator[](std::string_view name) const { return values_[index_of(name)]; }

 private:
  DIC_API static std::size_t index_of(std::string_view name);

  std::array<double, kProbeArrays.size()> values_;
};

struct PointValues {
  ProbeValues values;
  std::string problem;  ///< why values are missing, a few words; empty if none is
};
/// Interpolates bilinearly between the four nodes around a position, all of which must be `ok` and on one
/// side of every tear. The errors of neighbouring nodes are taken as equal, so sigma may be too large, but
/// never too small. Lengths in px.
DIC_API PointValues probe_point(const Field& field, Position at);

/// The reading of an extensometer: two points of the specimen whose distance changes. With two cameras it is
/// the straight distance in space, mm.
struct ExtensometerValues {
  double gauge_length =
      ProbeValues::kNone;  ///< distance in the reference; in corrected coordinates if the field has them
  double change = ProbeValues::kNone;  ///< change of the distance
  double strain = ProbeValues::kNone;  ///< engineering: change / gauge_length
  double sigma_change = ProbeValues::kNone,
         sigma_strain = ProbeValues::kNone;  ///< predicted standard deviations
  std::string problem;
};
/// Measures between `a` and `b`; lengths in px, with two cameras in mm. The errors of both ends are taken as
/// independent, so sigma is too large if the distance is smaller than a subset. With two cameras it is also
/// too large for a direction between the axes: errors along these may be correlated.
DIC_API ExtensometerValues probe_extensometer(const Field& field, Position a, Position b);

/// Values of a surface that two cameras measured, mm in the axes of the measurement; NaN for missing ones.
struct SurfacePoint {
  static constexpr double kNone = ProbeValues::kNone;
  std::array<double, 3> position = {kNone, kNone, kNone};      ///< in the reference
  std::array<double, 3> displacement = {kNone, kNone, kNone};  ///< since the reference
  std::array<double, 3> sigma_position = {kNone, kNone, kNone},
                        sigma_displacement = {kNone, kNone, kNone};  ///< predicted standard deviations
  double epipolar = kNone;  ///< distance from the epipolar line, with a sign, px of the right image
  std::string problem;
};
/// Interpolates as probe_point does. Throws UsageError for the field of one camera.
DIC_API SurfacePoint probe_surface_point(const Field& field, Position at);
/// Measures as probe_extensometer does, but the straight distance of two points in space; lengths in mm.
/// Throws UsageError for the field of one camera.
DIC_API ExtensometerValues probe_surface_extensometer(const Field& field, Position a, Position b);

struct LinePoint {
  double distance =
      0;  ///< from the start of the line, in the reference; in corrected coordinates if the field has them
  Position at;  ///< px
  PointValues point;
  /// With two cameras: height over the straight line through the first and the last measured point, in the
  /// frame, along the normal of the surface that points away from the cameras, mm.
  double offset = ProbeValues::kNone;
};
/// Values at points of the line from `a` to `b`, including both ends; their spacing is the step of the grid
/// or slightly less. Lengths in px.
DIC_API std::vector<LinePoint> probe_line(const Field& field, Position a, Position b);

/// The shape of a line on a surface that two cameras measured, mm; NaN with one camera, or if fewer than
/// three points were measured. Heights are `offset` of its points.
struct LineShape {
  double length = ProbeValues::kNone;      ///< length along the points in the frame
  double change = ProbeValues::kNone;      ///< change of this length since the reference
  double deflection = ProbeValues::kNone;  ///< largest height, with its sign
  /// Largest change of a height since the reference, with its sign, and its predicted standard deviation.
  double bending = ProbeValues::kNone, sigma_bending = ProbeValues::kNone;
  double flatness =
      ProbeValues::kNone;  ///< largest minus smallest distance from the straight line that fits best
  double curvature = ProbeValues::kNone;  ///< second derivative of the best parabola of the heights, 1/mm
};
/// A quantity of LineShape.
struct LineQuantity {
  std::string_view name, unit;
  double LineShape::*member;
};
inline constexpr auto kLineQuantities =
    std::to_array<LineQuantity>({{"length", "mm", &LineShape::length},
                                 {"change", "mm", &LineShape::change},
                                 {"deflection", "mm", &LineShape::deflection},
                                 {"bending", "mm", &LineShape::bending},
                                 {"sigma_bending", "mm", &LineShape::sigma_bending},
                                 {"flatness", "mm", &LineShape::flatness},
                                 {"curvature", "1/mm", &LineShape::curvature}});
/// The shape of a line of probe_line; sets `offset` of its points.
DIC_API LineShape probe_line_shape(const Field& field, std::vector<LinePoint>& line);

/// Indices of the grid's nodes that are inside a polygon or on its outline, and inside the ROI. image: size
/// of the reference. Throws UsageError if the polygon has fewer than three corners or contains no node.
DIC_API std::vector<std::size_t> nodes_in(const Grid& grid, Size image, const Roi::Polygon& area);
struct AreaValues {
  std::int64_t nodes = 0;          ///< nodes inside the area
  std::int64_t points = 0;         ///< nodes that are `ok`
  std::int64_t strain_points = 0;  ///< `ok` nodes with strain
  ProbeValues mean, sd;            ///< over the `ok` nodes that have the value; sigma_* are averaged too
};
/// Mean and standard deviation over the given nodes (see nodes_in). Lengths in px.
DIC_API AreaValues probe_area(const Field& field, std::span<const std::size_t> nodes);

/// The places to probe in every frame of a result.
struct ProbeRequest {
  std::vector<Position> points;
  std::vector<std::array<Position, 2>> extensometers, lines;
  std::vector<Roi::Polygon> areas;
  std::vector<int> frames;  ///< indices from 0, in any order; empty = all
  bool empty() const { return points.empty() && extensometers.empty() && lines.empty() && areas.empty(); }
};

struct ProbeFrame {
  std::string file;
  double time = 0;          ///< time on the time axis of the result
  std::int64_t number = 0;  ///< number of the frame: 1 is the first after the reference
  std::vector<PointValues> points;
  std::vector<ExtensometerValues> extensometers;
  std::vector<std::vector<LinePoint>> lines;
  std::vector<LineShape> line_shapes;  ///< one for each line
  std::vector<AreaValues> areas;
};

/// The probed values of all frames. Lengths are in `length_unit`, positions in px.
struct ProbeHistory {
  ProbeRequest request;
  std::string length_unit, time_unit, strain_measure;
  bool has_two_cameras = false;  ///< true if positions and displacements in space were measured
  std::vector<ProbeFrame> frames;
  std::string load_name, load_unit;  ///< from the table of loads
  std::string load_note;  ///< what was assumed about the loads, in sentences for the user; empty if nothing
  std::vector<double> loads;  ///< one per frame, NaN where a frame has none; empty: no loads were added
  double section_mm2 = 0;     ///< area of the cross-section, for the stress; 0 = unknown
  /// Those of kProbeArrays that the fields have.
  std::span<const FieldArray> arrays() const {
    return has_two_cameras ? std::span<const FieldArray>(kProbeArrays) : kOneCameraProbeArrays;
  }
  /// The displacement: u and v, with two cameras U, V and W.
  DIC_API std::vector<FieldArray> displacements() const;
  /// Unit of the lengths of extensometers.
  std::string extensometer_unit() const { return has_two_cameras ? "mm" : length_unit; }
  /// load / section_mm2, MPa; empty unless both are known.
  DIC_API std::vector<double> stresses() const;
};

/// Probes one field after the other, of a stored result or of a running experiment.
class Probe {
 public:
  /// grid: of all fields. info: gives image size, scale, unit of the times and strain measure. Throws
  /// UsageError if the request is empty or a place is invalid.
  DIC_API Probe(const Grid& grid, const ResultInfo& info, ProbeRequest request);
  /// Probes the next field. file: name of the frame; time: on the time axis of `info`; number: of the frame,
  /// 1 is the first after the reference.
  DIC_API void add(const Field& field, const std::string& file, double time, std::int64_t number);
  /// The values of all fields added so far.
  const ProbeHistory& history() const { return history_; }

 private:
  double length_factor_;
  ProbeHistory history_;
  std::vector<std::vector<std::size_t>> area_nodes_;
};
/// Probes the requested frames of a result. Throws UsageError (invalid place, unknown frame), FileError,
/// Cancelled.
DIC_API ProbeHistory probe_result(const Result& result, const ProbeRequest& request,
                                  const ProgressCallback& progress = {}, std::stop_token stop = {});

/// Forces, or other quantities, that were recorded along with the images.
struct LoadTable {
  enum class Key : std::uint8_t { row, frame, time };
  Key key = Key::row;   ///< how rows are assigned to frames: by their order, by frame number, or by time in s
  std::string heading;  ///< of the loads' column, as in the file
  std::string name;     ///< name of the loads, from the heading
  std::string unit;     ///< "N" for a force in any unit that is known, else as in the heading; may be empty
  bool is_force = false;  ///< named as a force, or in a unit of force
  std::vector<double> keys, loads;
  std::string note;  ///< what was assumed, a sentence for the user; empty if nothing
};
/// Reads a table with names above its columns, as testing machines and spreadsheets export it: see the user
/// guide for the units of time and force, decimal commas, and lines above the names. A column of frames or of
/// times is the key; without one, rows belong to frames in order. column: name of the loads' column; empty =
/// the only one that is a force by its name or unit, or the only one beside the key. Throws FileError with
/// the line and the problem, or the columns to choose from.
DIC_API LoadTable read_loads(const std::filesystem::path& path, const std::string& column = {});
/// Reads the content of such a file from memory. name: of the file, for messages.
DIC_API LoadTable parse_loads(std::string content, const std::string& name, const std::string& column = {});
/// The headings from which the column of parse_loads can be chosen. Throws FileError if they cannot be read.
DIC_API std::vector<std::string> load_columns(std::string content, const std::string& name);
/// Adds the load of each frame to the history: the load with the frame's number, or interpolated between the
/// two nearest times, NaN if there is none; or by the order of rows, with or without one for the reference.
/// Throws UsageError if no frame has a load, if rows in order are too few or too many, if the table is by
/// time but the result has no times, or if a section is given for loads that are no forces.
DIC_API void add_loads(ProbeHistory& history, const LoadTable& table, double section_mm2 = 0);

/// Writes history.csv (a row per frame), lines.csv (a row per line point and frame), history.png and
/// probe.json (everything) into a folder, which is made if needed; docs/file-formats.md describes the
/// columns. canvases: make the canvas of history.png. Returns the file names. Throws FileError.
DIC_API std::vector<std::string> write_probe(const std::filesystem::path& folder, const ProbeHistory& history,
                                             const CanvasFactory& canvases = png_canvases());

}  // namespace dic
