#pragma once

#include <array>
#include <cstdint>
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

/// Values of a field at places that a user names: points, extensometers, lines, areas. Places are positions
/// in the reference image, px, whatever the unit of the values.
namespace dic {

/// A position in the reference image, px.
using Position = Roi::Vertex;

/// The arrays that probes have: displacement, quality and strain with their sigmas, lengths first.
inline constexpr auto kProbeArrays = [] {
  auto arrays = kArraysIf<[](const FieldArray& array) {
    return array.is_in_field() && array.role != ArrayRole::status && array.role != ArrayRole::detail;
  }>;
  std::size_t next = 0;
  auto sorted = arrays;
  for (const bool is_length : {true, false})
    for (const FieldArray& array : arrays)
      if (array.is_length() == is_length) sorted[next++] = array;
  return sorted;
}();

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
  static std::size_t index_of(std::string_view name);

  std::array<double, kProbeArrays.size()> values_;
};

struct PointValues {
  ProbeValues values;
  std::string problem;  ///< why values are missing, a few words; else empty
};
/// Bilinear between the four nodes around a position, all of which must be `ok` and on one side of every
/// tear. The errors of neighbours are taken to be alike, so that sigma is at most too large. Lengths in px.
PointValues probe_point(const Field& field, Position at);

/// An extensometer: two points of the specimen whose distance changes.
struct ExtensometerValues {
  double gauge_length =
      ProbeValues::kNone;  ///< distance in the reference; in corrected coordinates, if the field is
  double change = ProbeValues::kNone;  ///< of the distance
  double strain = ProbeValues::kNone;  ///< engineering: change / gauge_length
  double sigma_change = ProbeValues::kNone, sigma_strain = ProbeValues::kNone;  ///< predicted
  std::string problem;
};
/// Lengths in px. The errors of the ends are taken as independent: at a distance below a subset sigma is too
/// large.
ExtensometerValues probe_extensometer(const Field& field, Position a, Position b);

struct LinePoint {
  double distance = 0;  ///< from the line's begin in the reference; in corrected coordinates, if the field is
  Position at;          ///< px
  PointValues point;
};
/// Points on a line from a to b, a step of the grid apart or a little less, both ends among them. Lengths in
/// px.
std::vector<LinePoint> probe_line(const Field& field, Position a, Position b);

/// Nodes of the grid inside a polygon or on its outline, and inside the ROI. Throws UsageError where there
/// are fewer than three corners, or no node. `image`: size of the reference.
std::vector<std::size_t> nodes_in(const Grid& grid, Size image, const Roi::Polygon& area);
struct AreaValues {
  std::int64_t nodes = 0;          ///< inside the area
  std::int64_t points = 0;         ///< of them `ok`
  std::int64_t strain_points = 0;  ///< of these with strain
  ProbeValues mean, sd;            ///< of the `ok` nodes that have the value; of sigma too
};
/// Lengths in px.
AreaValues probe_area(const Field& field, std::span<const std::size_t> nodes);

/// What is asked of every frame of a result.
struct ProbeRequest {
  std::vector<Position> points;
  std::vector<std::array<Position, 2>> extensometers, lines;
  std::vector<Roi::Polygon> areas;
  std::vector<int> frames;  ///< indices from 0, in any order; empty = all
  bool empty() const { return points.empty() && extensometers.empty() && lines.empty() && areas.empty(); }
};

struct ProbeFrame {
  std::string file;
  double time = 0;  ///< on the time axis of the result
  std::vector<PointValues> points;
  std::vector<ExtensometerValues> extensometers;
  std::vector<std::vector<LinePoint>> lines;
  std::vector<AreaValues> areas;
};

/// Answers over the frames; lengths in length_unit, but positions in px.
struct ProbeHistory {
  ProbeRequest request;
  std::string length_unit, time_unit, strain_measure;
  std::vector<ProbeFrame> frames;
  std::string load_name, load_unit;  ///< as in the table of loads
  std::vector<double> loads;         ///< one per frame, NaN where there is none; empty: not asked for
  double section_mm2 = 0;            ///< for the stress; 0 = none
  /// load / section_mm2, MPa; empty without both.
  std::vector<double> stresses() const;
};

/// Asks one field after the other: of a result, or of an experiment that runs.
class Probe {
 public:
  /// grid: of the fields. info: image, scale, unit of the times, strain. Throws UsageError: nothing is asked
  /// for, a place makes no sense.
  Probe(const Grid& grid, const ResultInfo& info, ProbeRequest request);
  /// time: on the time axis of info.
  void add(const Field& field, const std::string& file, double time);
  /// Of the fields so far.
  const ProbeHistory& history() const { return history_; }

 private:
  double length_factor_;
  ProbeHistory history_;
  std::vector<std::vector<std::size_t>> area_nodes_;
};
/// Throws UsageError (a place that makes no sense, a frame that is not there), FileError, Cancelled.
ProbeHistory probe_result(const Result& result, const ProbeRequest& request,
                          const ProgressCallback& progress = {}, std::stop_token stop = {});

/// Forces (or whatever else) that were recorded beside the images.
struct LoadTable {
  enum class Key : std::uint8_t { row, frame, time };
  Key key = Key::row;      ///< what rows are found by: their order, the number of a frame, or the time in s
  std::string name, unit;  ///< of the loads, from the header "name [unit]"; kN and MN were made N
  std::vector<double> keys, loads;
};
/// Reads a CSV table with a header line: separated by commas, semicolons or tabs; numbers with a decimal
/// comma where it does not separate. A column `frame` or `time` is the key, else rows belong to frames in
/// order. `column`: the name of the loads; empty = the first other column. Throws FileError (what is wrong in
/// which line).
LoadTable read_loads(const std::filesystem::path& path, const std::string& column = {});
/// The load of each frame of the history: of its number; interpolated between the times beside its own; NaN
/// where there is none. Throws UsageError where a table by time meets a result without times.
void add_loads(ProbeHistory& history, const LoadTable& table, double section_mm2 = 0);

/// Writes history.csv (a row per frame), lines.csv (a row per point of a line and frame), history.png and
/// probe.json (all of it) into a folder that exists or is made; docs/file-formats.md has the columns. Returns
/// the names. Throws FileError.
std::vector<std::string> write_probe(const std::filesystem::path& folder, const ProbeHistory& history);

}  // namespace dic
