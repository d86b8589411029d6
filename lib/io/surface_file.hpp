#pragma once

#include <dic/fields.hpp>
#include <dic/io.hpp>
#include <filesystem>
#include <memory>

namespace dic::io {

/// Writes the surface that two cameras measured as one VTKHDF 2 file of polygons with a time axis, in
/// constant memory: for each frame the measured nodes at their position in that frame, mm, and the squares
/// between them. Coordinates are those of the measurement. The file appears at `path` when it is finished.
class SurfaceFile {
 public:
  /// Throws FileError if the file cannot be created.
  SurfaceFile(const std::filesystem::path& path, const ResultInfo& info);
  /// Adds one frame. Throws FileError.
  void add(const Field& field, double time);
  /// Closes the file; no other call may follow. Throws FileError.
  void finish();
  ~SurfaceFile();
  SurfaceFile(SurfaceFile&&) noexcept;
  SurfaceFile& operator=(SurfaceFile&&) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace dic::io
