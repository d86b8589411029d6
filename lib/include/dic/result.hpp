#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dic {

/// A quantity of a result: `components` values for each node of each frame.
struct ResultArray {
  std::string name;         ///< "u", "status"
  std::string unit;         ///< "px" or "mm" for lengths, "1" for others
  std::string description;  ///< a few words for a legend
  std::string measure;      ///< strain measure ("green-lagrange", ...); empty for other quantities
  /// The smallest type that holds every value: u8, i32, f32 or f64.
  ScalarType type = ScalarType::f64;
  int components = 1;  ///< 3 for `displacement`
};

/// Reads a result.vtkhdf written by `dic track`. Opening reads the grid and the names; fields are read frame
/// by frame, on request. The file need not be trusted: sizes and types are checked, and no other file is
/// opened.
///
/// Calls on one Result from several threads wait for each other. If the HDF5 library was built without thread
/// safety, no other thread may use HDF5 at the same time (another Result, VtkHdfWriter).
class Result {
 public:
  /// Opens the file `path`, or result.vtkhdf in the folder `path`. Throws FileError: missing, damaged, not a
  /// result of dic.
  DIC_API explicit Result(const std::filesystem::path& path);
  DIC_API ~Result();
  DIC_API Result(Result&&) noexcept;
  DIC_API Result& operator=(Result&&) noexcept;

  /// Path of the file.
  DIC_API const std::filesystem::path& path() const;
  /// The grid, always in px of the reference image, regardless of the unit of the result.
  DIC_API const Grid& grid() const;
  DIC_API const std::shared_ptr<const Grid>& shared_grid() const;
  /// Subset, image size, scale, strain options, version, command, reference, settings, unit of the times.
  DIC_API const ResultInfo& info() const;

  DIC_API int frame_count() const;
  /// Names of the current frames, one for each.
  DIC_API const std::vector<std::string>& frame_names() const;
  /// Number of each frame: 1 is the first after the reference. A frame that could not be read has left a gap.
  DIC_API const std::vector<std::int64_t>& frame_numbers() const;
  /// Time of each frame, in `time_unit`.
  DIC_API const std::vector<double>& times() const;
  /// "s", or "1" where the times are the frames' numbers (1 is the first frame after the reference).
  const std::string& time_unit() const { return info().time_unit; }

  /// The stored quantities, sorted by name. Empty in a result without frames.
  DIC_API const std::vector<ResultArray>& arrays() const;
  DIC_API bool has(std::string_view array) const;
  /// The array of this name. Throws UsageError if it does not exist; the message lists the existing ones.
  DIC_API const ResultArray& array(std::string_view name) const;

  /// Positions of the nodes in corrected coordinates, px; null without a camera.
  DIC_API const std::shared_ptr<const NodePositions>& positions() const;

  /// An array in one frame, [ny x nx] or [ny x nx x components] row-major, in the array's unit; NaN if a
  /// value is missing. T: double, float, std::int32_t or std::uint8_t; NaN does not fit into the last two.
  /// frame: from 0. Throws UsageError (name, frame), FileError.
  template <typename T = double>
  DIC_API std::vector<T> values(std::string_view array, int frame) const;

  /// A rectangle of nodes: columns i to i + nx - 1, rows j to j + ny - 1.
  struct Nodes {
    int i = 0, j = 0, nx = 1, ny = 1;
  };
  /// Values of a part of the nodes; little more than that part is read. Also throws UsageError if the part
  /// reaches beyond the grid.
  template <typename T = double>
  DIC_API std::vector<T> values(std::string_view array, int frame, const Nodes& part) const;

  /// The measurement of one frame (from 0), in px, as `Tracker::track` returned it: equal to the bit without
  /// a scale, up to rounding with one. With a camera, `positions` is set, but `image_u` and `image_v` are
  /// empty. Strains that were not stored are empty. Throws UsageError, FileError.
  DIC_API Field field(int frame) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
