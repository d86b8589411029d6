#pragma once

#include <cstdint>
#include <dic/export.hpp>
#include <dic/fields.hpp>
#include <dic/image.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dic {

/// Information about a run that every output file holds.
struct ResultInfo {
  int subset = 33;             ///< px
  Size image;                  ///< px
  double scale_mm_per_px = 0;  ///< 0 = no scale: lengths in px
  StrainOptions strain;
  std::string version, command, reference;
  std::string settings_json;    ///< all settings, as a JSON object
  std::string time_unit = "1";  ///< unit of the time axis: "s", or "1" if the times are frame numbers

  bool has_scale() const { return scale_mm_per_px > 0; }
  std::string length_unit() const { return has_scale() ? "mm" : "px"; }
  double length_factor() const { return has_scale() ? scale_mm_per_px : 1.0; }
};

/// One file of a sequence that is split by frames, or by rows of the grid.
struct ResultPart {
  std::filesystem::path file;  ///< path relative to the folder of the joining file
  int first_row = 0;           ///< first row of this file's grid, counted in the whole grid
  int rows = 0;                ///< number of rows of this file's grid
  int skip = 0, use = 0;  ///< rows of this file's grid to leave out, and number of rows to show after them
  std::vector<double> times;          ///< times of this file's frames, on the time axis of the sequence
  std::vector<std::int64_t> numbers;  ///< frame numbers, counted after the reference
  std::vector<std::string> names;
  std::shared_ptr<const NodePositions> positions;  ///< corrected node positions, with a camera
  std::vector<std::string> optional_arrays;        ///< names of its arrays that not every run makes
};

/// Streams the fields of a sequence into one VTKHDF 2 ImageData file with a time axis, in constant memory.
///
/// The arrays of kFieldArrays (dic/field_schema.hpp) are under /VTKHDF/PointData, each [frame, y, x]
/// (displacement [frame, y, x, 3]). Lengths are in px, with a scale in mm (attribute "unit"). Rows run
/// downwards as in the image; VTK's y points up, so the spacing in y is negative and `displacement` is (u,
/// -v, 0). The root group has the same arrays by their names alone, with dimension scales frame, y and x: a
/// netCDF-4 layout that xarray opens. docs/file-formats.md describes the rest.
///
/// The file appears at `path` with the first frame. Readers may open it while it grows (h5py with swmr=True,
/// VTK as any file). Appended frames stay readable even if the process is killed.
class VtkHdfWriter {
 public:
  /// grid: of all fields. Throws FileError if the file cannot be created.
  DIC_API VtkHdfWriter(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info);
  /// Continues a file with at least one frame that an earlier writer left, even if it was killed. Keeps the
  /// first `frames` frames and appends after them. grid, info: as in the earlier run. Throws FileError.
  DIC_API static VtkHdfWriter resume(const std::filesystem::path& path, std::int64_t frames, const Grid& grid,
                                     const ResultInfo& info);
  /// Writes a file that shows several files of one measurement as one sequence, through virtual datasets: the
  /// fields themselves stay in the parts. parts: ordered by frames; those with the same frames (different
  /// rows) are adjacent. Throws FileError.
  DIC_API static void join(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info,
                           std::span<const ResultPart> parts);
  DIC_API ~VtkHdfWriter();
  DIC_API VtkHdfWriter(VtkHdfWriter&&) noexcept;
  DIC_API VtkHdfWriter& operator=(VtkHdfWriter&&) noexcept;
  /// Adds one frame and hands it to the system. time: on the time axis, in info.time_unit. name: at most 272
  /// bytes. number: of the frame, 1 is the first after the reference; without it, the time if that is a
  /// number, else the count of frames. Throws FileError (disk full) and UsageError (another grid). After a
  /// FileError, only the destructor may be called; the file keeps the earlier frames.
  DIC_API void append(const Field& field, double time, std::string_view name,
                      std::optional<std::int64_t> number = {});
  /// Does `append` in two steps: added frames become visible to readers, and survive a kill, with the next
  /// `publish`. One `publish` for several frames saves time if frames come fast.
  DIC_API void add(const Field& field, double time, std::string_view name,
                   std::optional<std::int64_t> number = {});
  DIC_API void publish();
  /// Closes the file; no other call may follow. The file is valid even without frames. Throws FileError.
  DIC_API void finish();

 private:
  struct Impl;
  explicit VtkHdfWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Column layout of CSV files: native, or that of other programs (docs/file-formats.md).
enum class CsvStyle : std::uint8_t { native, dice, vic, opencorr };
template <>
struct EnumNames<CsvStyle> {
  static constexpr EnumName<CsvStyle> table[] = {{CsvStyle::native, "native"},
                                                 {CsvStyle::dice, "dice"},
                                                 {CsvStyle::vic, "vic"},
                                                 {CsvStyle::opencorr, "opencorr"}};
};

/// Writes one frame as CSV, a row per node inside the ROI, in grid order. native: x, y and the arrays that
/// every run makes, without strain invariants; px, or with a scale in mm and headers like "x [mm]". Status by
/// name, missing values as "nan". The other styles keep px; vic adds columns in mm with a scale. Writes to a
/// temporary name, then renames. threads: that format numbers; 0 = one per core. Throws FileError.
DIC_API void write_csv(const std::filesystem::path& path, const ResultInfo& info, const Field& field,
                       CsvStyle style = CsvStyle::native, int threads = 0);

/// Writes one frame of two cameras as CSV, as write_csv does: x, y, u, v in px of the left image; X, Y, Z, U,
/// V, W and their sigmas in mm; epipolar in px; zncc; status; exx, eyy, exy, e1, e2 of the surface.
DIC_API void write_stereo_csv(const std::filesystem::path& path, const Field& field, int threads = 0);

/// Writes text to a temporary name beside `path`, then renames, so that the file is complete or absent.
/// Throws FileError.
DIC_API void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace dic
