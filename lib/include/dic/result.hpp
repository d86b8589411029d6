#pragma once

#include <cstdint>
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
  std::string name;         ///< "u", "exx", "status"
  std::string unit;         ///< "px" or "mm" of lengths, "1" of others
  std::string description;  ///< a few words for a legend
  std::string measure;      ///< of strains: "green-lagrange", ...; else empty
  /// The type that takes every value: u8, i32, f32 or f64.
  ScalarType type = ScalarType::f64;
  int components = 1;  ///< 3 of `displacement`
};

/// A result.vtkhdf as `dic track` writes it, opened to be read. Opening reads the grid and the names; fields
/// come into memory frame by frame, as they are asked for. The file may be a stranger's: sizes and types are
/// checked, and nothing outside the file is opened.
///
/// Calls on one Result from several threads wait for each other. Libraries of HDF5 that were built without
/// thread safety want that no other thread uses HDF5 meanwhile (another Result, VtkHdfWriter).
class Result {
 public:
  /// Opens the file, or result.vtkhdf in the folder `path`. Throws FileError: missing, damaged, no result of
  /// dic.
  explicit Result(const std::filesystem::path& path);
  ~Result();
  Result(Result&&) noexcept;
  Result& operator=(Result&&) noexcept;

  /// Of the file.
  const std::filesystem::path& path() const;
  /// In px of the reference image, whatever the unit of the result.
  const Grid& grid() const;
  const std::shared_ptr<const Grid>& shared_grid() const;
  /// Subset, image size, scale, strain options, version, command, reference, settings, unit of the times.
  const ResultInfo& info() const;

  int frame_count() const;
  /// Names of the current frames, one for each.
  const std::vector<std::string>& frame_names() const;
  /// Of each frame on the time axis, in `time_unit`.
  const std::vector<double>& times() const;
  /// "s", or "1" where the times are the frames' numbers (1 is the first frame after the reference).
  const std::string& time_unit() const { return info().time_unit; }

  /// In the order of the names. Empty in a result without frames.
  const std::vector<ResultArray>& arrays() const;
  bool has(std::string_view array) const;
  /// Throws UsageError where there is no such array: the message names those that are there.
  const ResultArray& array(std::string_view name) const;

  /// With a camera, where the nodes are in corrected coordinates, px; else null.
  const std::shared_ptr<const NodePositions>& positions() const;

  /// An array in one frame, [ny x nx] or [ny x nx x components] row-major, in the array's unit; NaN where
  /// there is no value. T: double, float, std::int32_t or std::uint8_t; NaN does not fit into the last two.
  /// frame: from 0. Throws UsageError (name, frame), FileError.
  template <typename T = double>
  std::vector<T> values(std::string_view array, int frame) const;

  /// A rectangle of nodes: columns i to i + nx - 1, rows j to j + ny - 1.
  struct Nodes {
    int i = 0, j = 0, nx = 1, ny = 1;
  };
  /// The same of a part of the nodes; little more than that part is read. Throws also UsageError where the
  /// part reaches beyond the grid.
  template <typename T = double>
  std::vector<T> values(std::string_view array, int frame, const Nodes& part) const;

  /// What was measured in one frame, in px, as `Tracker::track` returned it: to the bit without a scale, else
  /// up to rounding. Of a result with a camera, `positions` is set, but not the displacement in the image.
  /// Strains that were not stored are empty. Throws UsageError, FileError.
  Field field(int frame) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic
