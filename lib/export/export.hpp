#pragma once

#include <cstdint>
#include <dic/progress.hpp>
#include <dic/result.hpp>
#include <dic/shared/enum_names.hpp>
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

/// A result as files of other programs.
namespace dic::exporting {

/// csv: one table, a row per frame and point. npz: NumPy. mat: MATLAB 5, which SciPy and Octave read too.
/// netcdf: netCDF-4.
enum class Format : std::uint8_t { csv, npz, mat, netcdf };
}  // namespace dic::exporting

namespace dic {

template <>
struct EnumNames<exporting::Format> {
  static constexpr EnumName<exporting::Format> table[] = {{exporting::Format::csv, "csv"},
                                                          {exporting::Format::npz, "npz"},
                                                          {exporting::Format::mat, "mat"},
                                                          {exporting::Format::netcdf, "netcdf"}};
};

}  // namespace dic

namespace dic::exporting {
/// "csv", "npz", "mat", "nc".
std::string_view ending_of(Format format);

struct ExportJob {
  std::filesystem::path result;  ///< file, or folder of `dic track`
  Format format = Format::csv;
  std::filesystem::path output;     ///< a file
  std::vector<std::string> arrays;  ///< names of the arrays; empty = all with one component
  std::vector<int> frames;          ///< numbers of frames, 1 is the first after the reference; empty = all
};

/// Writes the file; one of that name is replaced when the new one is whole. Throws UsageError (names,
/// numbers), FileError, Cancelled.
void export_result(const ExportJob& job, const ProgressCallback& progress = {}, std::stop_token stop = {});

}  // namespace dic::exporting
