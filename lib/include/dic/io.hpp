#pragma once

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

/// What every output file says about its run.
struct ResultInfo {
  int subset = 33;             ///< px
  Size image;                  ///< px
  double scale_mm_per_px = 0;  ///< 0 = no scale: lengths in px
  StrainOptions strain;
  std::string version, command, reference;
  std::string settings_json;    ///< all settings as a JSON object
  std::string time_unit = "1";  ///< of the time axis: "s", or "1" where times are the frames' numbers

  bool has_scale() const { return scale_mm_per_px > 0; }
  std::string length_unit() const { return has_scale() ? "mm" : "px"; }
  double length_factor() const { return has_scale() ? scale_mm_per_px : 1.0; }
};

/// Some frames of a sequence, or some rows of their grid, in a file of their own.
struct ResultPart {
  std::filesystem::path file;         ///< relative to the folder of the file that joins them
  int first_row = 0;                  ///< of its grid, in the grid of all
  int rows = 0;                       ///< of its grid
  int skip = 0, use = 0;              ///< rows of its grid that are not shown, and how many after them are
  std::vector<double> times;          ///< of its frames, on the time axis of the sequence
  std::vector<std::int64_t> numbers;  ///< of its frames after the reference
  std::vector<std::string> names;
  std::shared_ptr<const NodePositions> positions;  ///< with a camera
  std::vector<std::string> optional_arrays;        ///< names of its arrays that not every run makes
};

/// Streams the fields of a sequence into one VTKHDF 2 ImageData file with a time axis, in constant memory.
///
/// The arrays of kFieldArrays (dic/field_schema.hpp) are under /VTKHDF/PointData, each [frame, y, x]
/// (displacement [frame, y, x, 3]). Lengths in px, in mm with a scale (attribute "unit"). Rows run
/// downwards as in the image; VTK's y points up, so the spacing in y is negative, and `displacement` is (u,
/// -v, 0). The root group has the same arrays by their names alone, with dimension scales frame, y and x:
/// netCDF-4 as xarray opens it. docs/file-formats.md has the rest.
///
/// From the first frame on the file is at `path`, and readers may open it while it grows (h5py with
/// swmr=True, VTK as any file). A frame that was appended is in it also if the process is killed.
class VtkHdfWriter {
 public:
  /// grid: of all fields. Throws FileError where it cannot be created.
  VtkHdfWriter(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info);
  /// Goes on with a file that an earlier writer, perhaps killed, left with at least one frame: after the
  /// first `frames` of them. grid, info: as they were. Throws FileError.
  static VtkHdfWriter resume(const std::filesystem::path& path, std::int64_t frames, const Grid& grid,
                             const ResultInfo& info);
  /// A file that shows the frames of several as one sequence: their fields stay where they are, as virtual
  /// datasets. All are results of the same measurement. Parts follow each other by frames; those of the same
  /// frames stand together. Throws FileError.
  static void join(const std::filesystem::path& path, const Grid& grid, const ResultInfo& info,
                   std::span<const ResultPart> parts);
  ~VtkHdfWriter();
  VtkHdfWriter(VtkHdfWriter&&) noexcept;
  VtkHdfWriter& operator=(VtkHdfWriter&&) noexcept;
  /// Adds one frame and hands it to the system. `time`: its value on the time axis, in info.time_unit. name:
  /// at most 272 bytes. Throws FileError (disk full) and UsageError (another grid). After a FileError only
  /// the destructor may follow; the frames before are in the file.
  void append(const Field& field, double time, std::string_view name);
  /// The same in two steps: frames that were added are there for readers, and after a kill, from the next
  /// `publish` on. Where frames come fast, one for several of them saves time.
  void add(const Field& field, double time, std::string_view name);
  void publish();
  /// Closes; nothing may follow. With no frame appended the file is still valid. Throws FileError.
  void finish();

 private:
  struct Impl;
  explicit VtkHdfWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Column layout of CSV files: ours, or as other programs write and read them (docs/file-formats.md).
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
/// temporary name, then renames. Throws FileError.
void write_csv(const std::filesystem::path& path, const ResultInfo& info, const Field& field,
               CsvStyle style = CsvStyle::native);

/// Writes text to a temporary name beside `path`, then renames: the file is whole or not there. Throws
/// FileError.
void write_text_file(const std::filesystem::path& path, std::string_view text);

}  // namespace dic
