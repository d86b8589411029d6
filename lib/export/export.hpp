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
/// netcdf: netCDF-4. vtu: ParaView, a mesh per frame. ply: a mesh per frame of a surface. nodemap, matchid,
/// ncorr: what scripts for these programs read.
enum class Format : std::uint8_t { csv, npz, mat, netcdf, vtu, ply, nodemap, matchid, ncorr };
}  // namespace dic::exporting

namespace dic {

template <>
struct EnumNames<exporting::Format> {
  static constexpr EnumName<exporting::Format> table[] = {
      {exporting::Format::csv, "csv"},         {exporting::Format::npz, "npz"},
      {exporting::Format::mat, "mat"},         {exporting::Format::netcdf, "netcdf"},
      {exporting::Format::vtu, "vtu"},         {exporting::Format::ply, "ply"},
      {exporting::Format::nodemap, "nodemap"}, {exporting::Format::matchid, "matchid"},
      {exporting::Format::ncorr, "ncorr"}};
};

}  // namespace dic

namespace dic::exporting {
/// The name that an export has if none is given: "table.csv", "ncorr.mat", or a folder, "nodemaps".
std::string_view default_name(Format format);
/// True for formats with a file per frame: their output is a folder.
bool is_folder(Format format);

struct ExportJob {
  std::filesystem::path result;  ///< file, or folder of `dic track`
  Format format = Format::csv;
  std::filesystem::path output;     ///< a file, or a folder; see is_folder
  std::vector<std::string> arrays;  ///< names of the arrays; empty = all with one component. Formats of other
                                    ///< programs have theirs
  std::vector<int> frames;          ///< numbers of frames, 1 is the first after the reference; empty = all
};

/// Writes the file; one of that name is replaced when the new one is whole. A folder is made; files of other
/// exports in it are not removed, but refused. Returns sentences for the user: what the format cannot say.
/// Throws UsageError (names, numbers), FileError, Cancelled.
std::vector<std::string> export_result(const ExportJob& job, const ProgressCallback& progress = {},
                                       std::stop_token stop = {});

}  // namespace dic::exporting
